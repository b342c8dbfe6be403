#include <fmt/format.h>

#include <atomic>
#include <string>

#include "backend/backend.h"
#include "backend/host/host_backend.h"
#include "base/log.h"
#include "base/settings.h"
#include "iridium/errors.h"
#ifdef IRIDIUM_HAS_CUDA
#include "backend/cuda/cuda_backend.h"
#endif

namespace iridium {
namespace {

BackendInfo not_built(BackendKind kind) {
  return {.kind = kind,
          .available = false,
          .reason = fmt::format("this build has no {} backend", name(kind)),
          .devices = {},
          .capabilities = {}};
}

#ifndef IRIDIUM_HAS_CUDA
BackendInfo describe_cuda_backend() {
  return not_built(BackendKind::cuda);
}
std::string why_no_cuda() {
  return not_built(BackendKind::cuda).reason;
}
bool has_cuda_driver() {
  return false;
}
std::unique_ptr<Backend> make_cuda_backend(const BackendRequest&) {
  return nullptr;
}
#endif

void require_available(BackendKind kind, const std::string& why_not) {
  if (!why_not.empty())
    throw Error(Errc::unsupported,
                fmt::format("backend {} cannot be used: {}", name(kind), why_not));
}

/// Once per process: nobody should find out by the time it takes that the GPUs are idle.
void warn_of_idle_gpus(int rank, const std::string& why_not) {
  static std::atomic_flag has_warned;
  if (!has_cuda_driver() || has_warned.test_and_set()) return;
  log(LogLevel::warn, rank,
      "runs on the CPUs although an NVIDIA driver is loaded: {} (--backend, {} or "
      "ContextOptions::backend chooses host without this warning)",
      why_not, variables::backend);
}

}  // namespace

std::vector<BackendInfo> describe_backends() {
  return {describe_cuda_backend(), not_built(BackendKind::hip), describe_host_backend()};
}

std::unique_ptr<Backend> make_backend(const BackendRequest& request) {
  Schedule schedule = {.split = request.split_blocks, .seed = request.schedule_seed};
  // Ranks that share a seed would stall at the same places.
  if (schedule.seed)
    *schedule.seed = *schedule.seed * 1'000'003 + static_cast<unsigned>(request.rank) * 1009u;
  const Link link = request.link.value_or(Link::shared);
  if (!request.kind) {
    const std::string why_not = why_no_cuda();
    if (why_not.empty()) return make_cuda_backend(request);
    warn_of_idle_gpus(request.rank, why_not);
    return make_host_backend(schedule, link);
  }
  switch (*request.kind) {
    case BackendKind::cuda:
      require_available(BackendKind::cuda, why_no_cuda());
      return make_cuda_backend(request);
    case BackendKind::hip:
      require_available(BackendKind::hip, not_built(BackendKind::hip).reason);
      break;
    case BackendKind::host:
      break;
  }
  return make_host_backend(schedule, link);
}

}  // namespace iridium

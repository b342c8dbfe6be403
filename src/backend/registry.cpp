#include <fmt/format.h>

#include <atomic>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/host/host_backend.h"
#include "backend/nvidia_sign.h"
#include "base/log.h"
#include "base/settings.h"
#include "iridium/errors.h"
#ifdef IRIDIUM_HAS_CUDA
#include "backend/cuda/cuda_backend.h"
#endif

namespace iridium {
namespace {

BackendInfo not_built(BackendKind kind, std::string_view advice = "") {
  return {.kind = kind,
          .available = false,
          .reason = fmt::format("this build has no {} backend{}", name(kind), advice),
          .devices = {},
          .capabilities = {}};
}

#ifndef IRIDIUM_HAS_CUDA
BackendInfo describe_cuda_backend() {
  return not_built(BackendKind::cuda, ": -D IRIDIUM_CUDA=ON builds it");
}
std::string why_no_cuda() {
  return describe_cuda_backend().reason;
}
bool expects_cuda_gpus(const std::string&) {
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

/// What lets users expect that GPUs are used; empty where nothing does.
std::string why_gpus_are_expected(const std::string& why_not,
                                  const std::filesystem::path& machine_root) {
  if (expects_cuda_gpus(why_not)) return "an NVIDIA driver is loaded";
  const std::string sign = sign_of_nvidia_gpu(machine_root);
  return sign.empty() ? "" : fmt::format("this machine has an NVIDIA GPU ({})", sign);
}

/// Once per process: nobody should find out by the time it takes that the GPUs are idle.
void warn_of_idle_gpus(const BackendRequest& request, const std::string& why_not) {
  static std::atomic_flag has_looked;
  if (has_looked.test_and_set()) return;
  const std::string expectation = why_gpus_are_expected(why_not, request.machine_root);
  if (expectation.empty()) return;
  log(LogLevel::warn, request.rank,
      "runs on the CPUs although {}: {} (--backend, {} or ContextOptions::backend chooses host "
      "without this warning)",
      expectation, why_not, variables::backend);
}

}  // namespace

std::vector<DeviceInfo> BackendInfo::usable_devices() const {
  std::vector<DeviceInfo> usable = devices;
  std::erase_if(usable, [](const DeviceInfo& device) { return !device.objection.empty(); });
  return usable;
}

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
    warn_of_idle_gpus(request, why_not);
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

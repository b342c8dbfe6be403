#include "backend/cuda/gpu_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "backend/cuda/driver.h"
#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

/// Of the calling thread, also when it is not the primary one; null where there is none.
const Gpu* gpu_of_current_context(const std::vector<Gpu>& visible) {
  CUcontext context = nullptr;
  CUdevice handle = 0;
  if (driver().context_get(&context) != CUDA_SUCCESS || context == nullptr ||
      driver().context_device(&handle) != CUDA_SUCCESS)
    return nullptr;
  const auto gpu = std::ranges::find(visible, handle, &Gpu::handle);
  return gpu == visible.end() ? nullptr : &*gpu;
}

void check_processes(const std::vector<GpuPlace>& places) {
  std::map<std::string, int> ranks;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int rank = static_cast<int>(i);
    const auto [other, is_new] = ranks.emplace(places[i].process, rank);
    if (!is_new)
      throw Error(Errc::unsupported,
                  fmt::format("ranks {} and {} are threads of one process: on a CUDA device their "
                              "kernels would share its queues and could wait for each other for "
                              "ever; use processes, or the host backend",
                              other->second, rank),
                  {other->second, rank});
  }
}

}  // namespace

GpuChoice choose_gpu(const BackendRequest& request, const std::vector<Gpu>& visible) {
  const auto count = static_cast<int>(visible.size());
  if (request.device) {
    if (*request.device < 0 || *request.device >= count)
      throw Error(Errc::invalid_argument,
                  fmt::format("GPU {} does not exist: {} visible, numbered from 0 to {}",
                              *request.device, count, count - 1));
    return {visible[static_cast<std::size_t>(*request.device)],
            "ContextOptions::device or IRIDIUM_DEVICE names it", true};
  }
  if (const Gpu* const current = gpu_of_current_context(visible))
    return {*current, "the calling thread's current CUDA context is there"};
  const std::vector<Gpu> usable = usable_gpus(visible, request.placement);
  const auto take = [&](int number, const std::string& what) -> GpuChoice {
    return {usable[static_cast<std::size_t>(number) % usable.size()],
            fmt::format("its {}, and the number of usable GPUs {}", what, usable.size())};
  };
  if (request.local_rank)
    return take(*request.local_rank,
                fmt::format("local rank is {}{}", *request.local_rank,
                            request.local_rank_variable.empty()
                                ? ""
                                : fmt::format(" ({})", request.local_rank_variable)));
  return take(request.rank, fmt::format("rank is {}", request.rank));
}

std::string encode(const GpuPlace& place) {
  return fmt::format("{} {} {} {}\n{}\n{}", place.process, place.device, place.uuid,
                     place.is_explicit ? 1 : 0, place.reason, fmt::join(place.usable, " "));
}

GpuPlace parse_gpu_place(const std::string& text) {
  std::istringstream lines(text);
  GpuPlace place;
  lines >> place.process >> place.device >> place.uuid >> place.is_explicit;
  lines.ignore();
  std::getline(lines, place.reason);
  for (std::string uuid; lines >> uuid;) place.usable.push_back(uuid);
  return place;
}

void check_places(const std::vector<GpuPlace>& places) {
  check_processes(places);
  std::map<std::string, std::vector<int>> users;
  std::set<std::string> idle;
  for (std::size_t i = 0; i < places.size(); ++i) {
    users[places[i].uuid].push_back(static_cast<int>(i));
    idle.insert(places[i].usable.begin(), places[i].usable.end());
  }
  for (const auto& [uuid, ranks] : users) idle.erase(uuid);
  if (idle.empty()) return;
  for (const auto& [uuid, ranks] : users) {
    const auto place_of = [&](int rank) { return places[static_cast<std::size_t>(rank)]; };
    if (ranks.size() == 1 ||
        std::ranges::all_of(ranks, [&](int rank) { return place_of(rank).is_explicit; }))
      continue;
    std::string choices;
    for (const int rank : ranks)
      choices += fmt::format("; rank {} chose its GPU {} because {}", rank, place_of(rank).device,
                             place_of(rank).reason);
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} share {} while {} other GPU{}{}: give each rank a GPU of its own by "
                    "ContextOptions::device, IRIDIUM_DEVICE or cudaSetDevice, or name the "
                    "shared one by one of the first two",
                    list_ranks(ranks), uuid, idle.size(),
                    idle.size() == 1 ? " is idle" : "s are idle", choices),
        ranks);
  }
}

}  // namespace iridium

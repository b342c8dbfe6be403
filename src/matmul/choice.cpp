#include "matmul/choice.h"

#include <fmt/format.h>

#include <cstdint>

#include "matmul/launch.h"
#include "matmul/narrow.h"

namespace iridium {
namespace {

/// A Hopper kernel and how long it takes for as many tiles as an H200 works on at a time, with K of
/// 8192: measured on products of 64 to 16384 rows. Between the same products their ratio is what
/// counts.
struct TileCost {
  MatmulAlgorithm algorithm;
  std::size_t rows;  ///< of a cluster's tile
  std::size_t columns;
  int cluster;
  double microseconds;
};
constexpr TileCost tile_costs[] = {
    {MatmulAlgorithm::hopper_64x128, 64, 128, 1, 40},
    {MatmulAlgorithm::hopper_128x128, 256, 128, 2, 54},
    {MatmulAlgorithm::hopper_128x256, 128, 256, 1, 105},
};

/// The same for any number of rows.
constexpr MatmulAlgorithm invariant_algorithm = MatmulAlgorithm::hopper_128x128;

double estimate(const TileCost& cost, const Problem& problem) {
  const std::size_t tiles =
      parts_of(problem.rows, cost.rows) * parts_of(problem.columns, cost.columns);
  const auto at_once = static_cast<std::size_t>(problem.processors.count / cost.cluster);
  return static_cast<double>(parts_of(tiles, at_once == 0 ? 1 : at_once)) * cost.microseconds;
}

/// Why rows of a matrix cannot be accessed 16 bytes at a time; empty when they can.
std::string object_to_rows(const char* which, const void* data, std::size_t pitch) {
  constexpr std::size_t bytes = 16;
  if (const auto over = reinterpret_cast<std::uintptr_t>(data) % bytes; over != 0)
    return fmt::format("{} begins {} bytes behind a multiple of {}", which, over, bytes);
  constexpr std::size_t elements = bytes / sizeof(bf16);
  if (pitch % elements != 0)
    return fmt::format("{} has a pitch of {} elements, which is no multiple of {}", which, pitch,
                       elements);
  return {};
}

std::string object_to_inputs(const Problem& problem) {
  if (std::string a = object_to_rows("A", problem.a, problem.a_pitch); !a.empty()) return a;
  return object_to_rows("B", problem.b, problem.b_pitch);
}

Objection object_to_narrow(const Problem& problem) {
  if (problem.processors.capability == 0) return {Errc::unsupported, "narrow is for NVIDIA GPUs"};
  if (problem.layout != MatmulLayout::nk) return {.reason = "narrow is for B stored as nk"};
  constexpr std::size_t most = narrow::most_rows;
  if (problem.rows > most)
    return {.reason = fmt::format("narrow is for up to {} rows, not {}", most, problem.rows)};
  if (problem.depth % 8 != 0)
    return {.reason = fmt::format("narrow is for K that 8 divides, not {}", problem.depth)};
  return {.reason = object_to_inputs(problem)};
}

Objection object_to_hopper(MatmulAlgorithm algorithm, const Problem& problem) {
  if (problem.processors.capability != 90)
    return {Errc::unsupported,
            fmt::format("{} is for GPUs of compute capability 9.0, not {}.{}", name(algorithm),
                        problem.processors.capability / 10, problem.processors.capability % 10)};
  if (!has_hopper_kernels)
    return {Errc::unsupported,
            fmt::format("{} is not in this build: it was made without architecture 90a",
                        name(algorithm))};
  constexpr std::size_t most = 2'000'000'000;
  for (const auto& [which, extent] :
       {std::pair("M", problem.rows), {"N", problem.columns}, {"K", problem.depth}})
    if (extent > most)
      return {.reason = fmt::format("{} is for {} up to {}, not {}", name(algorithm), which, most,
                                    extent)};
  return {.reason = object_to_inputs(problem)};
}

}  // namespace

Objection object_to_algorithm(MatmulAlgorithm algorithm, const Problem& problem) {
  switch (algorithm) {
    case MatmulAlgorithm::automatic:
    case MatmulAlgorithm::simple:
      return {};
    case MatmulAlgorithm::narrow:
      return object_to_narrow(problem);
    case MatmulAlgorithm::hopper_64x128:
    case MatmulAlgorithm::hopper_128x128:
    case MatmulAlgorithm::hopper_128x256:
      return object_to_hopper(algorithm, problem);
  }
  return {.reason =
              fmt::format("there is no algorithm with number {}", static_cast<int>(algorithm))};
}

MatmulAlgorithm choose_algorithm(const Problem& problem, bool invariant) {
  const auto can = [&](MatmulAlgorithm algorithm) {
    return !object_to_algorithm(algorithm, problem);
  };
  if (!invariant && can(MatmulAlgorithm::narrow)) return MatmulAlgorithm::narrow;
  // The Hopper kernels take the same problems.
  if (!can(invariant_algorithm)) return MatmulAlgorithm::simple;
  if (invariant) return invariant_algorithm;
  const TileCost* best = tile_costs;
  for (const TileCost& cost : tile_costs)
    if (estimate(cost, problem) < estimate(*best, problem)) best = &cost;
  return best->algorithm;
}

}  // namespace iridium

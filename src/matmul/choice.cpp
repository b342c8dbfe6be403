#include "matmul/choice.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "iridium/matmul_choice.h"
#include "matmul/check.h"
#include "matmul/launch.h"
#include "matmul/narrow.h"
#include "matmul/product_type.h"
#include "matmul/row.h"

namespace iridium {
namespace {

/// A Hopper kernel, and how long it takes for as many tiles as an H200 works on at a time: measured
/// on products of 64 to 16384 rows, those with parts of K estimated. Between the same products
/// their ratio is what counts.
struct TileCost {
  MatmulAlgorithm algorithm;
  std::size_t rows;  ///< of a cluster's tile
  std::size_t columns;
  int cluster;     ///< blocks
  double of_tile;  ///< microseconds, to begin and to end, where nothing is done meanwhile
  double of_8192;  ///< microseconds for K of 8192 elements of 2 bytes
};
constexpr TileCost tile_costs[] = {
    {MatmulAlgorithm::hopper_64x128, 64, 128, 1, 0, 40},
    {MatmulAlgorithm::hopper_128x128, 256, 128, 2, 0, 54},
    {MatmulAlgorithm::hopper_128x256, 128, 256, 1, 0, 105},
    {MatmulAlgorithm::hopper_64x128_k4, 64, 128, 4, 4, 13},
    {MatmulAlgorithm::hopper_128x128_k2, 128, 128, 2, 4, 26},
};

/// The same for any number of rows.
constexpr MatmulAlgorithm invariant_algorithm = MatmulAlgorithm::hopper_128x128;

double estimate(const TileCost& cost, const Problem& problem) {
  const std::size_t tiles =
      parts_of(problem.rows, cost.rows) * parts_of(problem.columns, cost.columns);
  const auto at_once = static_cast<std::size_t>(problem.processors.count / cost.cluster);
  const double depth = static_cast<double>(problem.depth * size_of(problem.type)) / (2 * 8192);
  return static_cast<double>(parts_of(tiles, at_once == 0 ? 1 : at_once)) *
         (cost.of_tile + cost.of_8192 * depth);
}

Objection object_to_narrow(const Problem& problem) {
  if (problem.processors.capability == 0) return {Errc::unsupported, "narrow is for NVIDIA GPUs"};
  if (problem.type != MatmulType::fp16 && problem.type != MatmulType::bf16)
    return {.reason = "narrow is for fp16 and bf16"};
  if (problem.layout != MatmulLayout::nk) return {.reason = "narrow is for B stored as nk"};
  constexpr std::size_t most = narrow::most_rows;
  if (problem.rows > most)
    return {.reason = fmt::format("narrow is for up to {} rows, not {}", most, problem.rows)};
  return {};
}

/// By element type and layout alone.
std::string object_to_form(MatmulAlgorithm algorithm, const Problem& problem) {
  const bool is_half = problem.type == MatmulType::fp16 || problem.type == MatmulType::bf16;
  if (!is_half && problem.layout != MatmulLayout::nk)
    return fmt::format("{} takes fp32 and e4m3 with B stored as nk", name(algorithm));
  if (problem.type == MatmulType::fp32 && !problem.tf32)
    return fmt::format("{} takes fp32 where tf32 is allowed", name(algorithm));
  if (problem.type == MatmulType::e4m3 && algorithm == MatmulAlgorithm::hopper_128x256)
    return fmt::format("{} does not take e4m3", name(algorithm));
  return {};
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
  // Blocks that have parts of K take one tile each.
  constexpr std::size_t most_tiles = std::size_t{1} << 28;
  const std::size_t tiles = parts_of(problem.rows, 64) * parts_of(problem.columns, 128);
  const bool divides_k = algorithm == MatmulAlgorithm::hopper_64x128_k4 ||
                         algorithm == MatmulAlgorithm::hopper_128x128_k2;
  if (divides_k && tiles > most_tiles)
    return {.reason = fmt::format("{} is for up to {} tiles of 64 × 128, not {}", name(algorithm),
                                  most_tiles, tiles)};
  return {.reason = object_to_form(algorithm, problem)};
}

}  // namespace

Objection object_to_algorithm(MatmulAlgorithm algorithm, const Problem& problem) {
  if (is_hopper(algorithm)) return object_to_hopper(algorithm, problem);
  switch (algorithm) {
    case MatmulAlgorithm::automatic:
    case MatmulAlgorithm::simple:
      return {};
    case MatmulAlgorithm::tiled:
      if (problem.type == MatmulType::e4m3) return {.reason = "tiled does not take e4m3"};
      return {};
    case MatmulAlgorithm::narrow:
      return object_to_narrow(problem);
    case MatmulAlgorithm::cublas:
      return object_to_cublas(problem);
    default:
      return {.reason =
                  fmt::format("there is no algorithm with number {}", static_cast<int>(algorithm))};
  }
}

MatmulAlgorithm choose_algorithm(const Problem& problem, bool invariant) {
  const auto can = [&](MatmulAlgorithm algorithm) {
    return !object_to_algorithm(algorithm, problem);
  };
  const MatmulAlgorithm by_row = invariant ? MatmulAlgorithm::automatic : choose_by_row(problem);
  if (by_row != MatmulAlgorithm::automatic) return by_row;
  if (!can(invariant_algorithm))
    return can(MatmulAlgorithm::tiled) ? MatmulAlgorithm::tiled : MatmulAlgorithm::simple;
  if (invariant) return invariant_algorithm;
  MatmulAlgorithm best = invariant_algorithm;
  double least = std::numeric_limits<double>::infinity();
  for (const TileCost& cost : tile_costs)
    if (const double time = estimate(cost, problem); time < least && can(cost.algorithm)) {
      best = cost.algorithm;
      least = time;
    }
  return best;
}

MatmulChoice choose_matmul(StreamRef& stream, const MatmulShape& shape, std::string_view type,
                           MatmulLayout layout) {
  const ProductType parsed = parse_product_type(type);
  std::optional<MatmulChoice> choice;
  with_elements(parsed, [&]<class T, class D>(T, D) {
    const bool is_kn = layout == MatmulLayout::kn;
    const Matrix<D> d = {nullptr, shape.rows, shape.columns, shape.columns};
    const Matrix<const T> a = {nullptr, shape.rows, shape.depth, shape.depth};
    const Matrix<const T> b = {nullptr, is_kn ? shape.depth : shape.columns,
                               is_kn ? shape.columns : shape.depth,
                               is_kn ? shape.columns : shape.depth};
    const Problem problem =
        unchecked_problem(stream, detail::matmul_call<D, T>(d, a, b, {}),
                          {.layout = layout, .tf32 = parsed == ProductType::tf32});
    choice = {choose_algorithm(problem, false),
              choose_by_row(problem) != MatmulAlgorithm::automatic};
  });
  return *choice;
}

}  // namespace iridium

// Products by cuBLAS, which the stream's backend opens on demand.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "matmul/choice.h"
#include "matmul/launch.h"

namespace iridium {
Objection object_to_cublas(const Problem& problem) {
  if (!problem.epilogue.is_identity) return {.reason = "cublas takes no epilogue"};
  if (problem.type == MatmulType::e4m3) return {.reason = "cublas does not take e4m3"};
  constexpr std::size_t most = std::numeric_limits<int>::max();
  for (const auto& [which, extent] : {std::pair("M", problem.rows),
                                      {"N", problem.columns},
                                      {"K", problem.depth},
                                      {"the pitch of D", problem.d_pitch},
                                      {"the pitch of A", problem.a_pitch},
                                      {"the pitch of B", problem.b_pitch}})
    if (extent > most)
      return {.reason = fmt::format("cublas is for {} up to {}, not {}", which, most, extent)};
  if (std::string reason = detail::Access::stream(problem.stream).object_to_library();
      !reason.empty())
    return {Errc::unsupported, "cublas cannot run here: " + reason};
  return {};
}

void launch_cublas_product(const Problem& problem) {
  detail::Access::stream(problem.stream)
      .multiply({.type = data_type(problem.type),
                 .tf32 = problem.tf32,
                 .b_along_k = problem.layout == MatmulLayout::nk,
                 .d = problem.d,
                 .a = problem.a,
                 .b = problem.b,
                 .rows = problem.rows,
                 .columns = problem.columns,
                 .depth = problem.depth,
                 .d_pitch = problem.d_pitch,
                 .a_pitch = problem.a_pitch,
                 .b_pitch = problem.b_pitch});
}

}  // namespace iridium

#include "matmul/row.h"

#include <string>

#include "matmul/choice.h"
#include "matmul/product_type.h"

namespace iridium {

MatmulAlgorithm choose_by_row(const Problem& problem, const TuningTable& table) {
  const std::string device = tuning_device(problem.processors.device);
  const auto can = [&](std::string_view algorithm) {
    return !object_to_algorithm(parse_matmul_algorithm(algorithm), problem);
  };
  const std::string_view found =
      table.choose({.dtype = name(product_type(problem)),
                    .layout = name(problem.layout),
                    .backend = name(problem.processors.backend),
                    .device = device,
                    .shape = {problem.rows, problem.columns, problem.depth}},
                   can);
  return parse_matmul_algorithm(found);
}

}  // namespace iridium

// Which algorithm does a product.
#pragma once

#include <string>

#include "matmul/problem.h"

namespace iridium {

/// Why the algorithm cannot do this product, with the numbers.
struct Objection {
  Errc code = Errc::invalid_argument;
  std::string reason = {};  ///< empty when it can

  explicit operator bool() const { return !reason.empty(); }
};
Objection object_to_algorithm(MatmulAlgorithm algorithm, const Problem& problem);

/// The same of `cublas`, which this opens.
Objection object_to_cublas(const Problem& problem);

/// What `automatic` is for this product. `invariant`: whatever the number of rows.
MatmulAlgorithm choose_algorithm(const Problem& problem, bool invariant);

}  // namespace iridium

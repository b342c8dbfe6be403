// What the tuning table says of a product.
#pragma once

#include "iridium/tuning.h"
#include "matmul/problem.h"

namespace iridium {

/// The algorithm of the first row that fits the product and can do it, or `automatic`.
MatmulAlgorithm choose_by_row(const Problem& problem, const TuningTable& table = tuning_table());

}  // namespace iridium

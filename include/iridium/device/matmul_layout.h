// How the second operand of a matrix product is stored.
#pragma once

namespace iridium {

/// How B is stored.
enum class MatmulLayout {
  kn,  ///< K rows of N elements
  nk,  ///< N rows of K elements: transposed, as layers store their weights
};

}  // namespace iridium

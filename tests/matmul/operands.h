// Operands of products in a context's memory, and what the products should be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

/// M, N and K.
struct Shape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t depth = 0;
};

/// Where a matrix lies: elements.
struct Placing {
  std::size_t offset = 0;   ///< behind an address that 128 divides
  std::size_t padding = 0;  ///< of each row
};

struct ProductCase {
  Shape shape;
  MatmulLayout layout = MatmulLayout::kn;
  Placing d = {};
  Placing a = {};
  Placing b = {};
};
std::string describe(const ProductCase& product);

/// The operands of a product. The memory around them is NaN: a product that uses it is wrong, and
/// around D it has to stay as it was.
template <HalfNumber T>
class Operands {
 public:
  Operands(Context& context, const ProductCase& product, std::uint32_t seed);

  /// Other values in A and B, and NaN in all of D's memory.
  void renew(std::uint32_t seed);
  void multiply(StreamRef& stream, const MatmulOptions& options) const;
  /// Where D is wrong, with the numbers; empty when it is right. Waits for the stream. The error
  /// may be that of K additions in float, each of which cuts off, and of one rounding.
  std::string find_error(StreamRef& stream);
  /// D's elements, row by row. Waits for the stream.
  std::vector<std::uint16_t> result(StreamRef& stream);

  const Matrix<T>& d() const { return d_; }
  const Matrix<const T>& a() const { return a_; }
  const Matrix<const T>& b() const { return b_; }

 private:
  ProductCase case_;
  SymmetricArray<T> d_memory_;
  SymmetricArray<T> a_memory_;
  SymmetricArray<T> b_memory_;
  Matrix<T> d_;
  Matrix<const T> a_;
  Matrix<const T> b_;
  Stream stream_;
  std::vector<T> d_values_;
  std::vector<T> a_values_;
  std::vector<T> b_values_;
};

/// use(T()) for both types.
template <class Use>
void for_both_types(Use use) {
  use(fp16());
  use(bf16());
}

/// Whether the stream's device has the algorithm.
bool has_algorithm(StreamRef& stream, MatmulAlgorithm algorithm);
/// Whether the algorithm can do this product, on a device that has it.
bool takes(MatmulAlgorithm algorithm, const ProductCase& product);

}  // namespace iridium::test

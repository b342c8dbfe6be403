// Operands of products in a context's memory, and what the products should be.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
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

/// What an epilogue has.
struct Finish {
  float scale = 1;
  enum class Scales { none, one, each } scales = Scales::none;
  enum class Bias { none, columns, rows } bias = Bias::none;
  MatmulActivation activation = MatmulActivation::none;
  bool gated = false;
  enum class Residual { none, apart, in_place } residual = Residual::none;

  bool operator==(const Finish&) const = default;
};

struct ProductCase {
  Shape shape;
  MatmulLayout layout = MatmulLayout::kn;
  Placing d = {};
  Placing a = {};
  Placing b = {};
  Finish finish = {};
};
std::string describe(const ProductCase& product);

/// An array's elements, on the host and where products can use them.
template <class T>
struct Elements {
  Elements(Context& context, std::size_t count)
      : array(context.allocate<T>(count)), values(count) {}

  SymmetricArray<T> array;
  std::vector<T> values;
};

/// The operands of a product. The memory around them is NaN: a product that uses it is wrong, and
/// around D it has to stay as it was.
template <MatmulInput T, MatmulResult<T> D = T>
class Operands {
 public:
  Operands(Context& context, const ProductCase& product, std::uint32_t seed);

  /// Other values everywhere, and NaN in all of D's memory but for a residual there.
  void renew(std::uint32_t seed);
  void multiply(StreamRef& stream, const MatmulOptions& options) const;
  /// Where D is wrong, with the numbers; empty when it is right. Waits for the stream. The error
  /// may be that of K additions in float, each of which cuts off, and of one rounding; or with
  /// `coarse`, that of tensor cores with tf32 and fp8.
  std::string find_error(StreamRef& stream, bool coarse = false);
  /// The bits of D's elements, row by row. Waits for the stream.
  std::vector<std::uint32_t> result(StreamRef& stream);

  const Matrix<D>& d() const { return d_; }
  const Matrix<const T>& a() const { return a_; }
  const Matrix<const T>& b() const { return b_; }

 private:
  struct Expected {
    double value;
    double error;
  };
  /// Of A × B, scaled and with its bias.
  Expected expect_scaled(std::size_t row, std::size_t column, bool coarse) const;
  Expected expect(std::size_t row, std::size_t column, bool coarse) const;
  double element_of_b(std::size_t k, std::size_t column) const;
  MatmulEpilogue<D> epilogue() const;

  ProductCase case_;
  Elements<D> d_memory_;
  Elements<T> a_memory_;
  Elements<T> b_memory_;
  Elements<D> bias_;
  Elements<D> residual_;
  Elements<float> a_scales_;
  Elements<float> b_scales_;
  Matrix<D> d_;
  Matrix<const T> a_;
  Matrix<const T> b_;
  Stream stream_;
};

/// use(T(), D()) for all types of inputs and results.
template <class Use>
void for_all_types(Use use) {
  use(fp16(), fp16());
  use(bf16(), bf16());
  use(float(), float());
  use(e4m3(), bf16());
}
template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, e4m3>)
    return "e4m3";
  else
    return name(data_type_of<T>());
}

/// Whether the stream's device has the algorithm.
bool has_algorithm(StreamRef& stream, MatmulAlgorithm algorithm);
/// Whether the algorithm has the product in this form, on a device that has the algorithm; tf32 is
/// allowed.
template <class T>
bool takes(MatmulAlgorithm algorithm, const ProductCase& product) {
  if (algorithm == MatmulAlgorithm::automatic || algorithm == MatmulAlgorithm::simple) return true;
  if (algorithm == MatmulAlgorithm::tiled) return !std::same_as<T, e4m3>;
  if (algorithm == MatmulAlgorithm::cublas)
    return !std::same_as<T, e4m3> && product.finish == Finish();
  const bool is_nk = product.layout == MatmulLayout::nk;
  if (algorithm == MatmulAlgorithm::narrow)
    return HalfNumber<T> && is_nk && product.shape.rows <= 16;
  if (std::same_as<T, e4m3> && algorithm == MatmulAlgorithm::hopper_128x256) return false;
  return HalfNumber<T> || is_nk;
}
/// Whether it may keep fewer bits of products of T than float has; tf32 is allowed.
template <class T>
bool is_coarse(MatmulAlgorithm algorithm) {
  return !HalfNumber<T> && algorithm != MatmulAlgorithm::simple &&
         algorithm != MatmulAlgorithm::tiled;
}
/// The options of a product of T by the algorithm, with what makes all algorithms possible.
template <class T>
MatmulOptions options_of(MatmulAlgorithm algorithm) {
  return {.algorithm = algorithm, .tf32 = std::same_as<T, float>};
}

}  // namespace iridium::test

#include "matmul/operands.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backend/backend.h"
#include "runtime/access.h"

namespace iridium::test {
namespace {

constexpr std::size_t guard = 64;  ///< elements before and behind each matrix

struct Form {
  std::size_t rows;
  std::size_t columns;
};

Form form_of_a(const ProductCase& product) {
  return {product.shape.rows, product.shape.depth};
}
Form form_of_b(const ProductCase& product) {
  const Shape& shape = product.shape;
  return product.layout == MatmulLayout::kn ? Form{shape.depth, shape.columns}
                                            : Form{shape.columns, shape.depth};
}
Form form_of_d(const ProductCase& product) {
  return {product.shape.rows, product.shape.columns / (product.finish.gated ? 2 : 1)};
}

std::size_t memory_of(const Form& form, const Placing& placing) {
  return 2 * guard + placing.offset + form.rows * (form.columns + placing.padding);
}

template <class Value, class T>
Matrix<Value> view(const Elements<T>& memory, const Form& form, const Placing& placing) {
  return {memory.array.data() + guard + placing.offset, form.rows, form.columns,
          form.columns + placing.padding};
}

template <class T>
std::uint32_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else
    return value.bits;
}

template <class T>
T nan() {
  return T(std::numeric_limits<float>::quiet_NaN());
}

/// Of the element that lies at `at` in the array.
template <class T>
double value_of(const Elements<T>& memory, const T* at) {
  return static_cast<double>(
      static_cast<float>(memory.values[static_cast<std::size_t>(at - memory.array.data())]));
}

using Random = std::mt19937;

template <class T, class Value>
void fill(Elements<T>& memory, const Matrix<Value>& matrix, Random random) {
  std::uniform_real_distribution<float> values(-1, 1);
  for (std::size_t row = 0; row < matrix.rows; ++row)
    for (std::size_t column = 0; column < matrix.columns; ++column)
      memory.values[static_cast<std::size_t>(matrix.at(row, column) - memory.array.data())] =
          T(values(random));
}

template <class T>
void fill(Elements<T>& memory, Random random) {
  std::uniform_real_distribution<float> values(-2, 2);
  for (T& value : memory.values) value = T(values(random));
}

template <class T>
void send(StreamRef& stream, Elements<T>& memory) {
  stream.copy(memory.array.data(), memory.values.data(), memory.array.bytes());
}

/// Half a unit in the last place, of the element itself.
template <class T>
constexpr double rounding = std::same_as<T, bf16>   ? 1.0 / 256
                            : std::same_as<T, fp16> ? 1.0 / 2048
                                                    : 1.0 / (1 << 24);

double activated(MatmulActivation activation, double x) {
  switch (activation) {
    case MatmulActivation::none:
      break;
    case MatmulActivation::relu:
      return std::max(x, 0.0);
    case MatmulActivation::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case MatmulActivation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace

std::string describe(const ProductCase& product) {
  const auto placing = [](const Placing& p) {
    return fmt::format("offset {}, padding {}", p.offset, p.padding);
  };
  const Finish& finish = product.finish;
  return fmt::format(
      "{} x {} x {}, B as {}; D: {}; A: {}; B: {}; scale {}, scales {}, bias {}, {}{}, residual {}",
      product.shape.rows, product.shape.columns, product.shape.depth, name(product.layout),
      placing(product.d), placing(product.a), placing(product.b), finish.scale,
      static_cast<int>(finish.scales), static_cast<int>(finish.bias), name(finish.activation),
      finish.gated ? ", gated" : "", static_cast<int>(finish.residual));
}

template <MatmulInput T, MatmulResult<T> D>
Operands<T, D>::Operands(Context& context, const ProductCase& product, std::uint32_t seed)
    : case_(product),
      d_memory_(context, memory_of(form_of_d(product), product.d)),
      a_memory_(context, memory_of(form_of_a(product), product.a)),
      b_memory_(context, memory_of(form_of_b(product), product.b)),
      bias_(context, std::max(product.shape.rows, product.shape.columns) + 1),
      residual_(context, memory_of(form_of_d(product), product.d)),
      a_scales_(context, product.shape.rows + 1),
      b_scales_(context, product.shape.columns + 1),
      d_(view<D>(d_memory_, form_of_d(product), product.d)),
      a_(view<const T>(a_memory_, form_of_a(product), product.a)),
      b_(view<const T>(b_memory_, form_of_b(product), product.b)),
      stream_(context.make_stream()) {
  renew(seed);
}

template <MatmulInput T, MatmulResult<T> D>
void Operands<T, D>::renew(std::uint32_t seed) {
  // Rows come first, so that matrices with more rows begin with the same ones.
  const auto random = [&](std::uint32_t which) { return Random(8 * seed + which); };
  std::fill(a_memory_.values.begin(), a_memory_.values.end(), nan<T>());
  std::fill(b_memory_.values.begin(), b_memory_.values.end(), nan<T>());
  std::fill(d_memory_.values.begin(), d_memory_.values.end(), nan<D>());
  fill(a_memory_, a_, random(0));
  fill(b_memory_, b_, random(1));
  fill(bias_, random(2));
  fill(a_scales_, random(3));
  fill(b_scales_, random(4));
  fill(residual_, random(5));
  if (case_.finish.residual == Finish::Residual::in_place)
    for (std::size_t row = 0; row < d_.rows; ++row)
      for (std::size_t column = 0; column < d_.columns; ++column) {
        const auto at = static_cast<std::size_t>(d_.at(row, column) - d_memory_.array.data());
        d_memory_.values[at] = residual_.values[at];
      }
  send(stream_, a_memory_);
  send(stream_, b_memory_);
  send(stream_, d_memory_);
  send(stream_, bias_);
  send(stream_, a_scales_);
  send(stream_, b_scales_);
  send(stream_, residual_);
  stream_.synchronize();
}

template <MatmulInput T, MatmulResult<T> D>
MatmulEpilogue<D> Operands<T, D>::epilogue() const {
  const Finish& finish = case_.finish;
  MatmulEpilogue<D> epilogue = {
      .scale = finish.scale, .activation = finish.activation, .gated = finish.gated};
  if (finish.scales != Finish::Scales::none) {
    const bool each = finish.scales == Finish::Scales::each;
    epilogue.a_scales = {a_scales_.array.data(), each};
    epilogue.b_scales = {b_scales_.array.data(), each};
  }
  if (finish.bias != Finish::Bias::none) {
    epilogue.bias = bias_.array.data();
    epilogue.bias_along =
        finish.bias == Finish::Bias::rows ? MatmulBias::rows : MatmulBias::columns;
  }
  if (finish.residual == Finish::Residual::apart)
    epilogue.residual = view<const D>(residual_, form_of_d(case_), case_.d);
  if (finish.residual == Finish::Residual::in_place) epilogue.residual = d_;
  return epilogue;
}

template <MatmulInput T, MatmulResult<T> D>
void Operands<T, D>::multiply(StreamRef& stream, const MatmulOptions& options) const {
  MatmulOptions with_layout = options;
  with_layout.layout = case_.layout;
  matmul(stream, d_, a_, b_, with_layout, epilogue());
}

template <MatmulInput T, MatmulResult<T> D>
std::vector<std::uint32_t> Operands<T, D>::result(StreamRef& stream) {
  stream.copy(d_memory_.values.data(), d_memory_.array.data(), d_memory_.array.bytes());
  stream.synchronize();
  std::vector<std::uint32_t> bits;
  for (std::size_t row = 0; row < d_.rows; ++row)
    for (std::size_t column = 0; column < d_.columns; ++column)
      bits.push_back(bits_of(
          d_memory_.values[static_cast<std::size_t>(d_.at(row, column) - d_memory_.array.data())]));
  return bits;
}

template <MatmulInput T, MatmulResult<T> D>
double Operands<T, D>::element_of_b(std::size_t k, std::size_t column) const {
  return value_of(b_memory_,
                  case_.layout == MatmulLayout::kn ? b_.at(k, column) : b_.at(column, k));
}

template <MatmulInput T, MatmulResult<T> D>
auto Operands<T, D>::expect_scaled(std::size_t row, std::size_t column, bool coarse) const
    -> Expected {
  const Finish& finish = case_.finish;
  const std::size_t depth = case_.shape.depth;
  constexpr double epsilon = std::numeric_limits<float>::epsilon();
  double sum = 0;
  double size = 0;
  for (std::size_t k = 0; k < depth; ++k) {
    const double term = value_of(a_memory_, a_.at(row, k)) * element_of_b(k, column);
    sum += term;
    size += std::abs(term);
  }
  // tf32 cuts off 13 bits of each factor. Sums of fp8 products lose what is below 2^-13 of the
  // largest value, 16 times.
  const double relative = static_cast<double>(depth) * epsilon + (coarse ? 1.0 / 512 : 0);
  double factor = static_cast<double>(finish.scale);
  if (finish.scales != Finish::Scales::none) {
    const bool each = finish.scales == Finish::Scales::each;
    factor *= static_cast<double>(a_scales_.values[each ? row : 0]) *
              static_cast<double>(b_scales_.values[each ? column : 0]);
  }
  const double bias = finish.bias == Finish::Bias::none
                          ? 0
                          : static_cast<double>(static_cast<float>(
                                bias_.values[finish.bias == Finish::Bias::rows ? row : column]));
  const double value = factor * sum + bias;
  return {value, std::abs(factor) * relative * size +
                     4 * epsilon * (std::abs(factor * sum) + std::abs(bias))};
}

template <MatmulInput T, MatmulResult<T> D>
auto Operands<T, D>::expect(std::size_t row, std::size_t column, bool coarse) const -> Expected {
  const Finish& finish = case_.finish;
  // No activation is steeper than 1.13; 1e-6: what their own functions are wrong by.
  const auto activate = [&](const Expected& x) -> Expected {
    if (finish.activation == MatmulActivation::none) return x;
    return {activated(finish.activation, x.value), 1.13 * x.error + 1e-6 * (1 + std::abs(x.value))};
  };
  Expected result = {};
  if (finish.gated) {
    const Expected gate = activate(expect_scaled(row, 2 * column, coarse));
    const Expected passed = expect_scaled(row, 2 * column + 1, coarse);
    result = {gate.value * passed.value,
              gate.error * std::abs(passed.value) + passed.error * std::abs(gate.value) +
                  gate.error * passed.error + 1e-6 * std::abs(gate.value * passed.value)};
  } else {
    result = activate(expect_scaled(row, column, coarse));
  }
  if (finish.residual != Finish::Residual::none) {
    const auto at = static_cast<std::size_t>(d_.at(row, column) - d_memory_.array.data());
    const double residual = static_cast<double>(static_cast<float>(residual_.values[at]));
    result.error += 1e-6 * (std::abs(result.value) + std::abs(residual));
    result.value += residual;
  }
  result.error += rounding<D> * (std::abs(result.value) + result.error) + 1e-7;
  return result;
}

template <MatmulInput T, MatmulResult<T> D>
std::string Operands<T, D>::find_error(StreamRef& stream, bool coarse) {
  result(stream);
  std::vector<bool> is_element(d_memory_.values.size());
  for (std::size_t row = 0; row < d_.rows; ++row)
    for (std::size_t column = 0; column < d_.columns; ++column) {
      const Expected expected = expect(row, column, coarse);
      const double got = value_of(d_memory_, d_.at(row, column));
      is_element[static_cast<std::size_t>(d_.at(row, column) - d_memory_.array.data())] = true;
      if (!(std::abs(got - expected.value) <= expected.error))
        return fmt::format("D({}, {}) is {}: expected {} with an error of at most {}", row, column,
                           got, expected.value, expected.error);
    }
  for (std::size_t i = 0; i < d_memory_.values.size(); ++i)
    if (!is_element[i] && bits_of(d_memory_.values[i]) != bits_of(nan<D>()))
      return fmt::format("element {} of D's memory, which is not D's, was written: D begins at {}",
                         i, d_.data - d_memory_.array.data());
  return {};
}

template class Operands<fp16>;
template class Operands<bf16>;
template class Operands<float>;
template class Operands<e4m3, bf16>;
template class Operands<e4m3, fp16>;

bool has_algorithm(StreamRef& stream, MatmulAlgorithm algorithm) {
  const int capability = detail::Access::stream(stream).processors().capability;
  switch (algorithm) {
    case MatmulAlgorithm::automatic:
    case MatmulAlgorithm::simple:
    case MatmulAlgorithm::tiled:
      return true;
    case MatmulAlgorithm::narrow:
      return capability >= 80;
    case MatmulAlgorithm::cublas:
      return detail::Access::stream(stream).object_to_library().empty();
    default:
      return capability == 90;
  }
}

}  // namespace iridium::test

#include "matmul/operands.h"

#include <fmt/format.h>

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

Form form_of_b(const ProductCase& product) {
  const Shape& shape = product.shape;
  return product.layout == MatmulLayout::kn ? Form{shape.depth, shape.columns}
                                            : Form{shape.columns, shape.depth};
}

std::size_t memory_of(const Form& form, const Placing& placing) {
  return 2 * guard + placing.offset + form.rows * (form.columns + placing.padding);
}

template <class T, class Value>
Matrix<Value> view(const SymmetricArray<T>& memory, const Form& form, const Placing& placing) {
  return {memory.data() + guard + placing.offset, form.rows, form.columns,
          form.columns + placing.padding};
}

template <HalfNumber T>
constexpr std::uint16_t nan_bits = 0x7fff;

template <HalfNumber T>
T nan() {
  T value;
  value.bits = nan_bits<T>;
  return value;
}

template <HalfNumber T, class Value>
void fill(std::vector<T>& memory, const SymmetricArray<T>& array, const Matrix<Value>& matrix,
          std::mt19937& random) {
  std::fill(memory.begin(), memory.end(), nan<T>());
  std::uniform_real_distribution<float> values(-1, 1);
  for (std::size_t row = 0; row < matrix.rows; ++row)
    for (std::size_t column = 0; column < matrix.columns; ++column)
      memory[static_cast<std::size_t>(matrix.at(row, column) - array.data())] = T(values(random));
}

template <class T>
constexpr double rounding = std::same_as<T, bf16> ? 1.0 / 256 : 1.0 / 2048;

}  // namespace

std::string describe(const ProductCase& product) {
  const auto placing = [](const Placing& p) {
    return fmt::format("offset {}, padding {}", p.offset, p.padding);
  };
  return fmt::format("{} x {} x {}, B as {}; D: {}; A: {}; B: {}", product.shape.rows,
                     product.shape.columns, product.shape.depth, name(product.layout),
                     placing(product.d), placing(product.a), placing(product.b));
}

template <HalfNumber T>
Operands<T>::Operands(Context& context, const ProductCase& product, std::uint32_t seed)
    : case_(product),
      d_memory_(
          context.allocate<T>(memory_of({product.shape.rows, product.shape.columns}, product.d))),
      a_memory_(
          context.allocate<T>(memory_of({product.shape.rows, product.shape.depth}, product.a))),
      b_memory_(context.allocate<T>(memory_of(form_of_b(product), product.b))),
      d_(view<T, T>(d_memory_, {product.shape.rows, product.shape.columns}, product.d)),
      a_(view<T, const T>(a_memory_, {product.shape.rows, product.shape.depth}, product.a)),
      b_(view<T, const T>(b_memory_, form_of_b(product), product.b)),
      stream_(context.make_stream()),
      d_values_(d_memory_.size()),
      a_values_(a_memory_.size()),
      b_values_(b_memory_.size()) {
  renew(seed);
}

template <HalfNumber T>
void Operands<T>::renew(std::uint32_t seed) {
  // Rows come first, so that matrices with more rows begin with the same ones.
  std::mt19937 random_a(2 * seed);
  std::mt19937 random_b(2 * seed + 1);
  fill(a_values_, a_memory_, a_, random_a);
  fill(b_values_, b_memory_, b_, random_b);
  std::fill(d_values_.begin(), d_values_.end(), nan<T>());
  stream_.copy(a_memory_.data(), a_values_.data(), a_memory_.bytes());
  stream_.copy(b_memory_.data(), b_values_.data(), b_memory_.bytes());
  stream_.copy(d_memory_.data(), d_values_.data(), d_memory_.bytes());
  stream_.synchronize();
}

template <HalfNumber T>
void Operands<T>::multiply(StreamRef& stream, const MatmulOptions& options) const {
  MatmulOptions with_layout = options;
  with_layout.layout = case_.layout;
  matmul(stream, d_, a_, b_, with_layout);
}

template <HalfNumber T>
std::vector<std::uint16_t> Operands<T>::result(StreamRef& stream) {
  stream.copy(d_values_.data(), d_memory_.data(), d_memory_.bytes());
  stream.synchronize();
  std::vector<std::uint16_t> bits;
  for (std::size_t row = 0; row < d_.rows; ++row)
    for (std::size_t column = 0; column < d_.columns; ++column)
      bits.push_back(
          d_values_[static_cast<std::size_t>(d_.at(row, column) - d_memory_.data())].bits);
  return bits;
}

template <HalfNumber T>
std::string Operands<T>::find_error(StreamRef& stream) {
  result(stream);
  const auto value = [](const std::vector<T>& values, const SymmetricArray<T>& array, const T* at) {
    return static_cast<double>(
        static_cast<float>(values[static_cast<std::size_t>(at - array.data())]));
  };
  const bool is_kn = case_.layout == MatmulLayout::kn;
  std::vector<bool> is_element(d_values_.size());
  for (std::size_t row = 0; row < d_.rows; ++row)
    for (std::size_t column = 0; column < d_.columns; ++column) {
      double sum = 0;
      double size = 0;
      for (std::size_t k = 0; k < case_.shape.depth; ++k) {
        const double term =
            value(a_values_, a_memory_, a_.at(row, k)) *
            value(b_values_, b_memory_, is_kn ? b_.at(k, column) : b_.at(column, k));
        sum += term;
        size += std::abs(term);
      }
      const double summing =
          static_cast<double>(case_.shape.depth) * std::numeric_limits<float>::epsilon() * size;
      const double limit = summing + rounding<T> * (std::abs(sum) + summing) + 1e-7;
      const double got = value(d_values_, d_memory_, d_.at(row, column));
      is_element[static_cast<std::size_t>(d_.at(row, column) - d_memory_.data())] = true;
      if (!(std::abs(got - sum) <= limit))
        return fmt::format("D({}, {}) is {}: expected {} with an error of at most {}", row, column,
                           got, sum, limit);
    }
  for (std::size_t i = 0; i < d_values_.size(); ++i)
    if (!is_element[i] && d_values_[i].bits != nan_bits<T>)
      return fmt::format("element {} of D's memory, which is not D's, was written: D begins at {}",
                         i, d_.data - d_memory_.data());
  return {};
}

template class Operands<fp16>;
template class Operands<bf16>;

bool has_algorithm(StreamRef& stream, MatmulAlgorithm algorithm) {
  const int capability = detail::Access::stream(stream).processors().capability;
  switch (algorithm) {
    case MatmulAlgorithm::automatic:
    case MatmulAlgorithm::simple:
      return true;
    case MatmulAlgorithm::narrow:
      return capability >= 80;
    default:
      return capability == 90;
  }
}

bool takes(MatmulAlgorithm algorithm, const ProductCase& product) {
  if (algorithm == MatmulAlgorithm::automatic || algorithm == MatmulAlgorithm::simple) return true;
  const auto is_aligned = [](const Form& form, const Placing& placing) {
    return placing.offset % 8 == 0 && (form.columns + placing.padding) % 8 == 0;
  };
  const Shape& shape = product.shape;
  if (!is_aligned({shape.rows, shape.depth}, product.a) ||
      !is_aligned(form_of_b(product), product.b))
    return false;
  return algorithm != MatmulAlgorithm::narrow ||
         (product.layout == MatmulLayout::nk && shape.rows <= 16 && shape.depth % 8 == 0);
}

}  // namespace iridium::test

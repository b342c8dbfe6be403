#include "matmul/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "iridium/matmul.h"
#include "iridium/matmul_choice.h"
#include "iridium/matmul_shape.h"
#include "matmul/check.h"
#include "matmul/choice.h"
#include "matmul/problem.h"
#include "matmul/product_type.h"
#include "operations/arguments.h"
#include "operations/random_elements.h"

namespace iridium {
namespace {

// One row of tiles; several tiles, none of which is full, with rows that are not aligned.
const Parameter shape_parameter = {"shape", {"16x72x264", "67x137x41"}};
const Parameter layout_parameter = {"layout", {"nk", "kn"}};

template <class Value>
Parameter parameter_of(const char* name, std::span<const Value> values) {
  Parameter parameter = {name, {}};
  for (const Value value : values) parameter.values.emplace_back(iridium::name(value));
  return parameter;
}
const Parameter& dtype_parameter() {
  static const Parameter parameter = parameter_of("dtype", product_types());
  return parameter;
}
const Parameter& algorithm_parameter() {
  static const Parameter parameter = parameter_of("algorithm", matmul_algorithms());
  return parameter;
}

/// Binary digits of a value, one of which is not stored.
int digits_of(ProductType type) {
  switch (type) {
    case ProductType::bf16:
      return 8;
    case ProductType::fp16:
    case ProductType::tf32:
      return 11;
    case ProductType::fp32:
      return 24;
    case ProductType::e4m3:
      break;
  }
  return 4;
}

/// How far a right sum over K may be from the exact one: as K additions in float, each of which
/// cuts off, and one rounding of the result. `size`: the sum of the terms' magnitudes.
double error_limit(ProductType type, double sum, double size, std::size_t depth) {
  const bool is_e4m3 = type == ProductType::e4m3;
  const int digits = is_e4m3                     ? digits_of(ProductType::bf16)
                     : type == ProductType::tf32 ? digits_of(ProductType::fp32)
                                                 : digits_of(type);
  // Tensor cores add fp8 products more coarsely.
  const double relative = static_cast<double>(depth) * std::numeric_limits<float>::epsilon() +
                          (is_e4m3 ? 1.0 / 512 : 0);
  const double summing = relative * size;
  return summing + std::ldexp(1, -digits) * (std::abs(sum) + summing) + 1e-7;
}

/// Which elements of a D are compared: every `step`-th. More would take longer than what is
/// measured; others for every seed.
struct Sample {
  std::size_t first = 0;
  std::size_t step = 1;
  std::size_t count = 0;

  Sample(const MatmulShape& shape, std::uint64_t seed) {
    constexpr std::size_t most_terms = std::size_t{1} << 25;
    const std::size_t elements = shape.rows * shape.columns;
    step = std::max<std::size_t>(
        1, static_cast<std::size_t>(shape.flops() / 2 / static_cast<double>(most_terms)));
    // Otherwise some columns would never be looked at.
    while (std::gcd(step, shape.columns) != 1) ++step;
    first = seed % std::min(step, elements);
    count = parts_of(elements - first, step);
  }
};

/// Every rank's own product of matrices without gaps between their rows.
template <class T, class D>
class MatmulCase final : public OperationCase {
 public:
  MatmulCase(Context& context, const Team& team, const MatmulShape& shape, ProductType type,
             const MatmulOptions& options)
      : team_(team), stream_(context.make_stream()), shape_(shape), type_(type), options_(options) {
    const Problem problem =
        unchecked_problem(stream_, detail::matmul_call<D, T>(d(), a(), b(), {}), options_);
    if (const Objection objection = object_to_algorithm(options_.algorithm, problem))
      throw Error(Errc::unsupported, "matmul: " + objection.reason);
    a_ = context.allocate<T>(shape.rows * shape.depth);
    b_ = context.allocate<T>(shape.depth * shape.columns);
    d_ = context.allocate<D>(shape.rows * shape.columns);
  }

  void set_inputs(std::uint64_t seed) override {
    set(a_, 0, seed);
    set(b_, first_of_b(), seed);
    // No number.
    stream_.fill(d_.data(), 0xff, d_.bytes());
    stream_.synchronize();
  }

  void launch(StreamRef& stream) override {
    matmul(stream, d(), a(), b(), options_);
    a_.retain_in_capture(stream);
    b_.retain_in_capture(stream);
    d_.retain_in_capture(stream);
  }

  std::string check(std::uint64_t seed) override {
    std::vector<D> found(d_.size());
    stream_.copy(found.data(), d_.data(), d_.bytes());
    stream_.synchronize();
    std::string difference = find_missing(found);
    return difference.empty() ? find_wrong(found, seed) : difference;
  }

  std::span<std::byte> outputs() override { return std::as_writable_bytes(d_.span()); }
  std::string chosen() const override {
    if (options_.algorithm != MatmulAlgorithm::automatic) return {};
    StreamRef stream = stream_;
    return std::string(name(choose_matmul(stream, shape_, name(type_), options_.layout).algorithm));
  }
  std::size_t bytes() const override { return 0; }
  double flops() const override { return shape_.flops(); }

 private:
  bool is_kn() const { return options_.layout == MatmulLayout::kn; }

  Matrix<D> d() const { return {d_.data(), shape_.rows, shape_.columns, shape_.columns}; }
  Matrix<const T> a() const { return {a_.data(), shape_.rows, shape_.depth, shape_.depth}; }
  Matrix<const T> b() const {
    if (is_kn()) return {b_.data(), shape_.depth, shape_.columns, shape_.columns};
    return {b_.data(), shape_.columns, shape_.depth, shape_.depth};
  }

  /// An element of A or B.
  double input(std::uint64_t seed, std::size_t index) const {
    return random_fraction(seed, team_.rank(), index, digits_of(type_));
  }
  /// Where B's elements begin among the random ones.
  std::size_t first_of_b() const { return shape_.rows * shape_.depth; }

  void set(const SymmetricArray<T>& array, std::size_t first, std::uint64_t seed) {
    std::vector<T> elements(array.size());
    for_each_range(elements.size(), team_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        elements[i] = T(static_cast<float>(input(seed, first + i)));
    });
    stream_.copy(array.data(), elements.data(), array.bytes());
    stream_.synchronize();
  }

  /// The first element that nobody has written, or that became no number.
  static std::string find_missing(const std::vector<D>& found) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (std::isnan(static_cast<float>(found[i]))) return fmt::format("output {} is nan", i);
    return {};
  }

  /// The first wrong element of a sample.
  std::string find_wrong(const std::vector<D>& found, std::uint64_t seed) const {
    const Sample sample(shape_, seed);
    std::mutex mutex;
    std::size_t where = sample.count;
    std::string first_wrong;
    const auto compare = [&](std::size_t first, std::size_t end) {
      for (std::size_t i = parts_of(first, shape_.depth); i < parts_of(end, shape_.depth); ++i) {
        const std::size_t element = sample.first + i * sample.step;
        std::string wrong = object_to(found[element], element, seed);
        if (wrong.empty()) continue;
        const std::scoped_lock lock(mutex);
        if (i < where) first_wrong = std::move(wrong);
        where = std::min(where, i);
        return;
      }
    };
    for_each_range(sample.count * shape_.depth, team_.size(), compare);
    return first_wrong;
  }

  /// Why `found` is not element number `element` of the product; empty when it is.
  std::string object_to(D found, std::size_t element, std::uint64_t seed) const {
    const std::size_t row = element / shape_.columns;
    const std::size_t column = element % shape_.columns;
    double sum = 0;
    double size = 0;
    for (std::size_t k = 0; k < shape_.depth; ++k) {
      const std::size_t of_b = is_kn() ? k * shape_.columns + column : column * shape_.depth + k;
      const double term = input(seed, row * shape_.depth + k) * input(seed, first_of_b() + of_b);
      sum += term;
      size += std::abs(term);
    }
    const double limit = error_limit(type_, sum, size, shape_.depth);
    const auto value = static_cast<double>(static_cast<float>(found));
    if (std::abs(value - sum) <= limit) return {};
    return fmt::format(
        "output {} is {}, which is not row {} of A times column {} of B: {}, give "
        "or take {}",
        element, value, row, column, sum, limit);
  }

  Team team_;
  Stream stream_;
  MatmulShape shape_;
  ProductType type_;
  MatmulOptions options_;
  SymmetricArray<T> a_;
  SymmetricArray<T> b_;
  SymmetricArray<D> d_;
};

std::unique_ptr<OperationCase> prepare(Context& context, const Team& team,
                                       const Arguments& arguments) {
  const MatmulShape shape = parse_matmul_shape(text_argument(arguments, shape_parameter));
  const ProductType type = parse_product_type(text_argument(arguments, dtype_parameter()));
  const MatmulOptions options = {
      .algorithm = parse_matmul_algorithm(text_argument(arguments, algorithm_parameter())),
      .layout = parse_matmul_layout(text_argument(arguments, layout_parameter)),
      .tf32 = type == ProductType::tf32};
  std::unique_ptr<OperationCase> prepared;
  with_elements(type, [&]<class T, class D>(T, D) {
    prepared = std::make_unique<MatmulCase<T, D>>(context, team, shape, type, options);
  });
  return prepared;
}

}  // namespace

Operation matmul_operation() {
  return {"matmul",
          "every rank multiplies two matrices of its own",
          {shape_parameter, dtype_parameter(), layout_parameter, algorithm_parameter()},
          prepare};
}

}  // namespace iridium

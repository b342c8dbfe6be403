#include "fused/gather_run.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr float scale = 0.5f;

struct Form {
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;
};

Form with_gap(std::size_t rows, std::size_t columns, const GatherCase& what) {
  return {rows, columns, columns + what.gap};
}
Form form_of_a(const GatherCase& what) {
  return with_gap(what.rows, what.depth, what);
}
Form form_of_b(const GatherCase& what) {
  return what.options.matmul.layout == MatmulLayout::kn ? with_gap(what.depth, what.columns, what)
                                                        : with_gap(what.columns, what.depth, what);
}
Form form_of_d(const GatherCase& what) {
  return with_gap(what.rows, what.columns, what);
}
Form form_of_shard(const GatherCase& what, int members) {
  const auto parts = static_cast<std::size_t>(members);
  return what.options.shards == MatmulShards::rows ? with_gap(what.rows / parts, what.depth, what)
                                                   : with_gap(what.rows, what.depth / parts, what);
}

template <class T>
T element(std::mt19937& random) {
  return T(std::uniform_real_distribution<float>(-1, 1)(random));
}

/// A matrix without gaps.
template <class T>
std::vector<T> matrix_of(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::vector<T> elements(rows * columns);
  for (T& each : elements) each = element<T>(random);
  return elements;
}
template <class T>
std::vector<T> matrix_a(const GatherCase& what, std::uint64_t seed) {
  return matrix_of<T>(what.rows, what.depth, 3 * seed);
}
template <class T>
std::vector<T> matrix_b(const GatherCase& what, std::uint64_t seed) {
  const Form form = form_of_b(what);
  return matrix_of<T>(form.rows, form.columns, 3 * seed + 1);
}
template <class T>
std::vector<T> bias_of(const GatherCase& what, std::uint64_t seed) {
  return matrix_of<T>(1, what.columns, 3 * seed + 2);
}

template <class T>
T not_a_number() {
  return T(std::numeric_limits<float>::quiet_NaN());
}

/// NaN but for the matrix's elements.
template <class T, class ElementAt>
std::vector<T> placed(std::size_t size, const Form& form, ElementAt element_at) {
  std::vector<T> elements(size, not_a_number<T>());
  for (std::size_t row = 0; row < form.rows; ++row)
    for (std::size_t column = 0; column < form.columns; ++column)
      elements[row * form.pitch + column] = element_at(row, column);
  return elements;
}

template <class T>
std::uint32_t bits_of(T element) {
  if constexpr (std::same_as<T, float>)
    return std::bit_cast<std::uint32_t>(element);
  else
    return element.bits;
}
template <class T>
bool same_bits(T a, T b) {
  return bits_of(a) == bits_of(b);
}

template <class T>
double value(T element) {
  return static_cast<double>(static_cast<float>(element));
}

/// Half a unit in the last place, of the element itself.
template <class T>
constexpr double rounding = std::same_as<T, bf16>   ? 1.0 / 256
                            : std::same_as<T, fp16> ? 1.0 / 2048
                                                    : 1.0 / (1 << 24);

}  // namespace

std::string describe(const GatherCase& what) {
  const AllGatherMatmulOptions& options = what.options;
  return fmt::format(
      "{} x {} x {}, shards are {}, B as {}, {}, {}, gaps of {}{}, {} gathering "
      "blocks, pieces of {}",
      what.rows, what.columns, what.depth, name(options.shards), name(options.matmul.layout),
      name(options.algorithm), what.symmetric ? "symmetric" : "plain", what.gap,
      what.finished ? ", finished" : "", options.gathering_blocks, options.piece_depth);
}

template <class T>
GatherRun<T>::GatherRun(Context& context, const Team& team, std::size_t elements)
    : team_(team),
      stream_(context.make_stream()),
      shard_(context.allocate<T>(elements)),
      gathered_(context.allocate<T>(elements)),
      b_(context.allocate<T>(elements)),
      d_(context.allocate<T>(elements)),
      bias_(context.allocate<T>(elements)),
      hash_(context.allocate<std::uint64_t>(1)),
      hashes_(context.allocate<std::uint64_t>(static_cast<std::size_t>(team.size()))) {}

template <class T>
void GatherRun<T>::set_inputs(const GatherCase& what, std::uint64_t seed) {
  const std::vector<T> a = matrix_a<T>(what, seed);
  const std::vector<T> b = matrix_b<T>(what, seed);
  const std::vector<T> bias = bias_of<T>(what, seed);
  const Form part = form_of_shard(what, team_.size());
  const auto place = static_cast<std::size_t>(team_.rank());
  const bool rows = what.options.shards == MatmulShards::rows;
  const auto send = [&](const SymmetricArray<T>& array, const std::vector<T>& elements) {
    require(elements.size() <= array.size(), "the arrays are too small for " + describe(what));
    stream_.copy(array.data(), elements.data(), elements.size() * sizeof(T));
    stream_.synchronize();
  };
  send(shard_, placed<T>(shard_.size(), part, [&](std::size_t row, std::size_t column) {
         return a[(row + (rows ? place * part.rows : 0)) * what.depth + column +
                  (rows ? 0 : place * part.columns)];
       }));
  const Form form_b = form_of_b(what);
  send(b_, placed<T>(b_.size(), form_b, [&](std::size_t row, std::size_t column) {
         return b[row * form_b.columns + column];
       }));
  send(bias_, bias);
  send(gathered_, std::vector<T>(gathered_.size(), not_a_number<T>()));
  // The residual is 1 and lies in D.
  send(d_, placed<T>(d_.size(), form_of_d(what), [&](std::size_t, std::size_t) {
         return what.finished ? T(1.0f) : not_a_number<T>();
       }));
  team_.barrier();
}

template <class T>
void GatherRun<T>::launch(StreamRef& stream, const GatherCase& what) const {
  const auto view = [](const SymmetricArray<T>& array, const Form& form) {
    return Matrix<T>{array.data(), form.rows, form.columns, form.pitch};
  };
  const Form part = form_of_shard(what, team_.size());
  const Matrix<T> d = view(d_, form_of_d(what));
  const Matrix<T> gathered = view(gathered_, form_of_a(what));
  const Matrix<const T> b = view(b_, form_of_b(what));
  MatmulEpilogue<T> epilogue = {};
  if (what.finished)
    epilogue = {
        .scale = scale, .bias = bias_.data(), .activation = MatmulActivation::relu, .residual = d};
  if (what.symmetric)
    return all_gather_matmul(stream, team_, d, gathered,
                             SymmetricMatrix<T>{shard_, part.rows, part.columns, part.pitch}, b,
                             what.options, epilogue);
  return all_gather_matmul(stream, team_, d, gathered, view(shard_, part), b, what.options,
                           epilogue);
}

template <class T>
void GatherRun<T>::check_product(const GatherCase& what, std::uint64_t seed,
                                 const std::vector<T>& d) const {
  const std::vector<T> a = matrix_a<T>(what, seed);
  const std::vector<T> b = matrix_b<T>(what, seed);
  const std::vector<T> bias = bias_of<T>(what, seed);
  const Form form = form_of_d(what);
  const bool is_kn = what.options.matmul.layout == MatmulLayout::kn;
  for (std::size_t row = 0; row < what.rows; ++row)
    for (std::size_t column = 0; column < what.columns; ++column) {
      double sum = 0;
      double size = 0;
      for (std::size_t k = 0; k < what.depth; ++k) {
        const double term = value(a[row * what.depth + k]) *
                            value(b[is_kn ? k * what.columns + column : column * what.depth + k]);
        sum += term;
        size += std::abs(term);
      }
      double error = static_cast<double>(what.depth) * std::numeric_limits<float>::epsilon() * size;
      if (what.finished) {
        sum = std::max(sum * static_cast<double>(scale) + value(bias[column]), 0.0) + 1;
        error += 1e-6 * sum;
      }
      error += rounding<T> * (std::abs(sum) + error) + 1e-7;
      const double got = value(d[row * form.pitch + column]);
      if (!(std::abs(got - sum) <= error))
        throw std::runtime_error(
            fmt::format("{}: D({}, {}) is {}: expected {} with an error of at most {}",
                        describe(what), row, column, got, sum, error));
    }
}

template <class T>
void GatherRun<T>::check_members_agree(const GatherCase& what, const std::vector<T>& d) {
  std::uint64_t hash = 1469598103934665603u;
  const Form form = form_of_d(what);
  for (std::size_t row = 0; row < form.rows; ++row)
    for (std::size_t column = 0; column < form.columns; ++column)
      hash = (hash ^ bits_of(d[row * form.pitch + column])) * 1099511628211u;
  std::vector<std::uint64_t> all(hashes_.size());
  stream_.copy(hash_.data(), &hash, sizeof hash);
  all_gather(stream_, team_, hashes_, hash_, 1);
  stream_.copy(all.data(), hashes_.data(), hashes_.bytes());
  stream_.synchronize();
  for (std::size_t place = 0; place < all.size(); ++place)
    require(all[place] == hash,
            fmt::format("{}: D has other bits on the member at place {}", describe(what), place));
}

template <class T>
void GatherRun<T>::check(const GatherCase& what, std::uint64_t seed) {
  const auto read = [&](const SymmetricArray<T>& array) {
    std::vector<T> elements(array.size());
    stream_.copy(elements.data(), array.data(), array.bytes());
    stream_.synchronize();
    return elements;
  };
  stream_.synchronize();
  team_.check();
  const std::vector<T> a = matrix_a<T>(what, seed);
  const std::vector<T> expected =
      placed<T>(gathered_.size(), form_of_a(what),
                [&](std::size_t row, std::size_t column) { return a[row * what.depth + column]; });
  const std::vector<T> gathered = read(gathered_);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!same_bits(gathered[i], expected[i]))
      throw std::runtime_error(
          fmt::format("{}: element {} of the gathered A's memory is {}, not {}", describe(what), i,
                      value(gathered[i]), value(expected[i])));
  const std::vector<T> d = read(d_);
  check_product(what, seed, d);
  const std::vector<T> around = placed<T>(
      d_.size(), form_of_d(what),
      [&](std::size_t row, std::size_t column) { return d[row * form_of_d(what).pitch + column]; });
  for (std::size_t i = 0; i < around.size(); ++i)
    if (!same_bits(d[i], around[i]))
      throw std::runtime_error(
          fmt::format("{}: element {} of D's memory, which is not D's, was "
                      "written",
                      describe(what), i));
  check_members_agree(what, d);
  team_.barrier();
}

template class GatherRun<fp16>;
template class GatherRun<bf16>;
template class GatherRun<float>;

}  // namespace iridium::test

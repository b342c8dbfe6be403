#include "collectives/collective_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collectives/call.h"
#include "operations/random_elements.h"

namespace iridium {
namespace {

/// Half the distance from 1 to the next number.
template <FloatNumber T>
double rounding() {
  if constexpr (std::same_as<T, fp16>) return 0x1p-11;
  if constexpr (std::same_as<T, bf16>) return 0x1p-8;
  return std::same_as<T, float> ? 0x1p-24 : 0x1p-53;
}

/// use(std::integral_constant<ReduceOp, op>()).
template <class Use>
void with_op(ReduceOp op, Use use) {
  switch (op) {
    case ReduceOp::sum:
      return use(std::integral_constant<ReduceOp, ReduceOp::sum>());
    case ReduceOp::prod:
      return use(std::integral_constant<ReduceOp, ReduceOp::prod>());
    case ReduceOp::min:
      return use(std::integral_constant<ReduceOp, ReduceOp::min>());
    case ReduceOp::max:
      return use(std::integral_constant<ReduceOp, ReduceOp::max>());
    case ReduceOp::avg:
      return use(std::integral_constant<ReduceOp, ReduceOp::avg>());
  }
}

/// A reduction in plain arithmetic, and how far a right result may be from it.
template <class T, ReduceOp Op>
class Reference {
 public:
  explicit Reference(int members) : members_(members) {}

  void add(T element) {
    const auto value = convert<Wide>(element);
    const bool is_first = std::exchange(is_first_, false);
    if constexpr (Op == ReduceOp::sum || Op == ReduceOp::avg)
      total_ = is_first ? value : iridium::add(total_, value);
    else if constexpr (Op == ReduceOp::prod)
      total_ = is_first ? value : multiply(total_, value);
    else if constexpr (Op == ReduceOp::min)
      total_ = is_first || value < total_ ? value : total_;
    else
      total_ = is_first || value > total_ ? value : total_;
    if constexpr (FloatNumber<T>) magnitude_ += std::abs(static_cast<double>(value));
  }

  bool accepts(T found) const {
    if constexpr (IntegerNumber<T>) {
      T expected = static_cast<T>(total_);
      if (Op == ReduceOp::avg) expected = static_cast<T>(expected / static_cast<T>(members_));
      return found == expected;
    } else {
      const auto value = static_cast<double>(static_cast<Accumulator<T>>(found));
      if constexpr (Op == ReduceOp::min || Op == ReduceOp::max) return value == total_;
      const double expected = Op == ReduceOp::avg ? total_ / members_ : total_;
      const double steps = 2 * members_ * rounding<Accumulator<T>>();
      const double size = Op == ReduceOp::prod ? std::abs(expected) : magnitude_;
      // Products may end below the smallest normal number.
      const double smallest = std::same_as<T, fp16> ? 0x1p-24 : 0x1p-126;
      return std::abs(value - expected) <=
             steps * size + 2 * rounding<T>() * std::abs(expected) + smallest;
    }
  }

 private:
  // Integers of any size wrap alike in 64 bits, but compare as they are.
  using Wide =
      std::conditional_t<IntegerNumber<T>,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                         double>;

  int members_;
  Wide total_ = 0;
  double magnitude_ = 0;
  bool is_first_ = true;
};

template <class T>
std::string difference(std::size_t i, T found, const std::string& from) {
  const auto value = static_cast<Accumulator<T>>(found);
  return fmt::format("output {} is {}, which is not {}", i, +value, from);
}

template <class T>
bool have_equal_bits(const T& a, const T& b) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

/// The first difference from a reduction among elements [first, end).
template <ReduceOp Op, class T>
std::string compare_reduced(const Collective& collective, int members, std::uint64_t seed,
                            const std::vector<T>& found, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t index = collective.source(i).index;
    Reference<T, Op> reference(members);
    for (int place = 0; place < members; ++place)
      reference.add(random_element<T>(seed, place, index));
    if (!reference.accepts(found[i]))
      return difference(i, found[i],
                        fmt::format("the {} of all members' elements {}", name(Op), index));
  }
  return {};
}

/// The same from elements that were only moved.
template <class T>
std::string compare_moved(const Collective& collective, std::uint64_t seed,
                          const std::vector<T>& found, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    const SourceElement source = collective.source(i);
    if (!have_equal_bits(found[i], random_element<T>(seed, source.place, source.index)))
      return difference(i, found[i],
                        fmt::format("element {} of place {}", source.index, source.place));
  }
  return {};
}

template <class T>
std::string compare(const Collective& collective, ReduceOp op, int members, std::uint64_t seed,
                    const std::vector<T>& found, std::size_t first, std::size_t end) {
  if (!collective.reduces) return compare_moved(collective, seed, found, first, end);
  std::string result;
  with_op(op, [&](auto known) {
    result = compare_reduced<known()>(collective, members, seed, found, first, end);
  });
  return result;
}

}  // namespace

int wish_argument(const Arguments& arguments, const Parameter& parameter) {
  const std::string text = text_argument(arguments, parameter);
  if (text == "automatic") return 0;
  const auto number = parse_number(text);
  if (!number || *number == 0 || *number > 65'535)
    throw Error(Errc::invalid_argument,
                fmt::format("{} is '{}': expected automatic or 1 to 65535", parameter.name, text));
  return static_cast<int>(*number);
}

std::size_t CollectiveArguments::count(int members) const {
  const std::size_t each = bytes / size_of(type) / static_cast<std::size_t>(members);
  return each == 0 ? 1 : each;
}

CollectiveArguments parse_collective(const Arguments& arguments, const Parameter& memory) {
  const std::string kind = text_argument(arguments, memory);
  if (std::ranges::find(memory.values, kind) == memory.values.end())
    throw Error(Errc::invalid_argument,
                fmt::format("memory is '{}': expected {}", kind, fmt::join(memory.values, " or ")));
  return {.bytes = count_argument(arguments, collective_bytes),
          .type = parse_data_type(text_argument(arguments, dtype_parameter)),
          .op = parse_reduce_op(text_argument(arguments, op_parameter)),
          .symmetric = kind == "symmetric",
          .in_place = kind == "in_place",
          .blocks = wish_argument(arguments, blocks_wish),
          .tile = wish_argument(arguments, tile_wish)};
}

CollectiveCase::CollectiveCase(Context& context, const Team& team,
                               const CollectiveArguments& arguments, Collective collective)
    : team_(team),
      stream_(context.make_stream()),
      arguments_(arguments),
      collective_(std::move(collective)) {
  const auto words = [&](std::size_t count) { return count * size_of(arguments_.type) / 8 + 1; };
  in_ = context.allocate<std::uint64_t>(words(collective_.in_count));
  out_ = context.allocate<std::uint64_t>(words(collective_.out_count));
}

void CollectiveCase::set_inputs(std::uint64_t seed) {
  with_type(arguments_.type, [&]<class T>(std::type_identity<T>) {
    std::vector<T> elements(collective_.in_count);
    for_each_range(elements.size(), team_.size(),
                   [&, place = team_.rank()](std::size_t first, std::size_t end) {
                     for (std::size_t i = first; i < end; ++i)
                       elements[i] = random_element<T>(seed, place, i);
                   });
    stream_.copy(in_.data(), elements.data(), elements.size() * sizeof(T));
    stream_.fill(out_.data(), 0xff, out_.bytes());
    stream_.synchronize();
  });
}

void CollectiveCase::launch(StreamRef& stream) {
  if (arguments_.in_place) {
    stream.copy(out_.data(), in_.data(), collective_.in_count * size_of(arguments_.type));
    detail::retain_captured(stream, in_, out_);
  }
  launch_alone(stream);
}

void CollectiveCase::launch_alone(StreamRef& stream) {
  collective_.launch(stream, {source().data(), out_.data(), collective_.count, arguments_.type,
                              arguments_.symmetric});
  detail::retain_captured(stream, source(), out_);
}

std::string CollectiveCase::check(std::uint64_t seed) {
  std::string result;
  with_type(arguments_.type, [&]<class T>(std::type_identity<T>) {
    std::vector<T> found(collective_.out_count);
    stream_.copy(found.data(), out_.data(), found.size() * sizeof(T));
    stream_.synchronize();
    std::mutex mutex;
    std::size_t where = found.size();
    for_each_range(found.size(), team_.size(), [&](std::size_t first, std::size_t end) {
      std::string difference =
          compare(collective_, arguments_.op, team_.size(), seed, found, first, end);
      const std::scoped_lock lock(mutex);
      if (difference.empty() || first >= where) return;
      result = std::move(difference);
      where = first;
    });
  });
  return result;
}

std::span<std::byte> CollectiveCase::outputs() {
  return std::as_writable_bytes(out_.span())
      .first(collective_.out_count * size_of(arguments_.type));
}

std::size_t CollectiveCase::bytes() const {
  return collective_.payload * size_of(arguments_.type);
}

}  // namespace iridium

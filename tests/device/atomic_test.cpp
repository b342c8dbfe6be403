// Atomic accesses of kernels, to this rank's memory and to peers', against plain arithmetic.
#include "iridium/device/atomic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "device/atomic_kernels.h"
#include "support/links.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

// What does not compile, because it could not be atomic on every target.

template <class T>
concept CanLoad = requires(Block block, const T* word) { atomic_load(block, word); };
template <class T>
concept CanStore = requires(Block block, T* word, T value) { atomic_store(block, word, value); };
template <class T>
concept CanAdd = requires(Block block, T* word, T value) { atomic_add(block, word, value); };
template <class T>
concept CanSubtract = requires(Block block, T* word, T value) { atomic_sub(block, word, value); };
template <class T>
concept CanAnd = requires(Block block, T* word, T value) { atomic_and(block, word, value); };
template <class T>
concept CanOr = requires(Block block, T* word, T value) { atomic_or(block, word, value); };
template <class T>
concept CanXor = requires(Block block, T* word, T value) { atomic_xor(block, word, value); };
template <class T>
concept CanMinimum = requires(Block block, T* word, T value) { atomic_min(block, word, value); };
template <class T>
concept CanMaximum = requires(Block block, T* word, T value) { atomic_max(block, word, value); };
template <class T>
concept CanExchange =
    requires(Block block, T* word, T value) { atomic_exchange(block, word, value); };
template <class T>
concept CanCompare =
    requires(Block block, T* word, T value) { atomic_compare_exchange(block, word, value, value); };
template <class T>
concept CanDoAllOfIntegers =
    CanLoad<T> && CanStore<T> && CanAdd<T> && CanSubtract<T> && CanAnd<T> && CanOr<T> &&
    CanXor<T> && CanMinimum<T> && CanMaximum<T> && CanExchange<T> && CanCompare<T>;
template <class T>
concept CanDoSomethingOfIntegers =
    CanSubtract<T> || CanAnd<T> || CanOr<T> || CanXor<T> || CanMinimum<T> || CanMaximum<T> ||
    CanExchange<T> || CanCompare<T>;
template <class T>
concept CanDoSomething = CanLoad<T> || CanStore<T> || CanAdd<T> || CanDoSomethingOfIntegers<T>;

struct ThreeBytes {
  std::uint8_t bytes[3];
};
struct FourBytes {
  std::uint32_t word;
};
struct SixteenBytes {
  std::uint64_t words[2];
};
struct NotTrivial {
  NotTrivial(const NotTrivial&) {}
  std::uint32_t word;
};
enum class Colour : std::uint32_t { red };

static_assert(CanDoAllOfIntegers<std::int32_t> && CanDoAllOfIntegers<std::uint32_t>);
static_assert(CanDoAllOfIntegers<std::int64_t> && CanDoAllOfIntegers<std::uint64_t>);
static_assert(CanAdd<float> && CanAdd<double> && CanAdd<fp16> && CanAdd<bf16>);
static_assert(CanLoad<float> && CanStore<float> && CanLoad<double> && CanStore<double>);
static_assert(CanLoad<FourBytes> && CanStore<FourBytes>);
static_assert(CanLoad<Colour> && CanStore<Colour> && CanLoad<void*> && CanStore<void*>);

static_assert(!CanDoSomething<ThreeBytes> && !CanDoSomething<SixteenBytes>);
static_assert(!CanDoSomething<bool> && !CanDoSomething<std::int8_t> && !CanDoSomething<char>);
static_assert(!CanDoSomething<std::int16_t> && !CanDoSomething<NotTrivial>);
static_assert(!CanDoSomethingOfIntegers<float> && !CanDoSomethingOfIntegers<double>);
static_assert(!CanDoSomethingOfIntegers<fp16> && !CanDoSomethingOfIntegers<bf16>);
static_assert(!CanLoad<fp16> && !CanStore<bf16>);
static_assert(!CanAdd<FourBytes> && !CanAdd<Colour> && !CanAdd<void*>);
static_assert(!CanDoSomethingOfIntegers<Colour> && !CanDoSomethingOfIntegers<void*>);

constexpr AtomicCall all_calls[] = {
    AtomicCall::load,     AtomicCall::store,           AtomicCall::add,
    AtomicCall::subtract, AtomicCall::bit_and,         AtomicCall::bit_or,
    AtomicCall::bit_xor,  AtomicCall::minimum,         AtomicCall::maximum,
    AtomicCall::exchange, AtomicCall::compare_exchange};
constexpr Order all_orders[] = {Order::relaxed, Order::acquire, Order::release, Order::acq_rel};
constexpr Scope all_scopes[] = {Scope::block, Scope::device, Scope::system};

template <class T>
std::vector<T> interesting_values() {
  if constexpr (AtomicInteger<T>) {
    using Limits = std::numeric_limits<T>;
    // Also what carries into the upper half of 8 bytes.
    std::vector<T> values = {T(0), T(1), T(2), Limits::min(), Limits::max(), T(Limits::max() - 1)};
    for (const std::uint64_t bits :
         {~std::uint64_t{0}, ~std::uint64_t{1}, std::uint64_t{0x5555555555555555},
          std::uint64_t{0x8000000000000001}, std::uint64_t{0xffffffff}, std::uint64_t{0x7fffffff},
          std::uint64_t{0x100000000}})
      values.push_back(static_cast<T>(bits));
    return values;
  } else {
    std::vector<T> values;
    // No subnormal floats: a GPU adds to them as if they were zero.
    for (const double value : {0.0, 1.0, 1.0 / 3, 255.0, 2049.0, 65504.0, 16777217.0, 3.3e38, 1e-7,
                               std::numeric_limits<double>::infinity()})
      for (const double signed_value : {value, -value}) values.push_back(convert<T>(signed_value));
    values.push_back(convert<T>(std::numeric_limits<double>::quiet_NaN()));
    return values;
  }
}

template <class T>
std::vector<AtomicCase<T>> accesses_at(const std::vector<Scope>& scopes) {
  std::vector<AtomicCase<T>> accesses;
  for (const AtomicCall call : all_calls)
    for (const Order order : all_orders)
      for (const Scope scope : scopes) {
        if (!exists<T>(call, order)) continue;
        for (const T before : interesting_values<T>())
          for (const T operand : interesting_values<T>()) {
            accesses.push_back({call, order, scope, before, operand, before});
            if constexpr (AtomicInteger<T>) {
              if (call != AtomicCall::compare_exchange) continue;
              const T highest_bit = std::numeric_limits<T>::is_signed
                                        ? std::numeric_limits<T>::min()
                                        : static_cast<T>(std::numeric_limits<T>::max() / 2 + 1);
              for (const T difference : {T(1), highest_bit})
                accesses.push_back(
                    {call, order, scope, before, operand, static_cast<T>(before ^ difference)});
            }
          }
      }
  return accesses;
}

/// What the word holds afterwards.
template <class T>
T after(const AtomicCase<T>& access) {
  const T a = access.before;
  const T b = access.operand;
  if constexpr (AtomicInteger<T>) {
    using Bits = std::make_unsigned_t<T>;
    const auto x = static_cast<Bits>(a);
    const auto y = static_cast<Bits>(b);
    switch (access.call) {
      case AtomicCall::add:
        return static_cast<T>(x + y);
      case AtomicCall::subtract:
        return static_cast<T>(x - y);
      case AtomicCall::bit_and:
        return static_cast<T>(x & y);
      case AtomicCall::bit_or:
        return static_cast<T>(x | y);
      case AtomicCall::bit_xor:
        return static_cast<T>(x ^ y);
      case AtomicCall::minimum:
        return std::min(a, b);
      case AtomicCall::maximum:
        return std::max(a, b);
      case AtomicCall::compare_exchange:
        return a == access.expected ? b : a;
      default:
        break;
    }
  }
  if (access.call == AtomicCall::load) return a;
  if (access.call != AtomicCall::add) return b;
  if constexpr (HalfNumber<T>)
    return T(static_cast<float>(a) + static_cast<float>(b));
  else
    return add(a, b);
}

/// The same bits, or both NaN.
template <class T>
bool same(T x, T y) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  if (std::bit_cast<Bytes>(x) == std::bit_cast<Bytes>(y)) return true;
  if constexpr (FloatNumber<T>) return x != x && y != y;
  return false;
}

template <class T>
std::string hex(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return fmt::format("{:#x}", bits);
}

template <class T>
std::string describe(const AtomicCase<T>& access, int place) {
  return fmt::format(
      "call {} of {} bytes, order {}, scope {}, place {}: {} to {} where {} is expected",
      static_cast<int>(access.call), sizeof(T), static_cast<int>(access.order),
      static_cast<int>(access.scope), place, hex(access.operand), hex(access.before),
      hex(access.expected));
}

template <class T>
void require_same(const std::vector<AtomicCase<T>>& accesses, const std::vector<T>& words,
                  const std::vector<T>& results, int place) {
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const AtomicCase<T>& access = accesses[i];
    const T result = access.call == AtomicCall::store ? access.operand : access.before;
    if (!same(words[i], after(access)))
      require(false, fmt::format("{}: leaves {}, not {}", describe(access, place), hex(words[i]),
                                 hex(after(access))));
    if (!same(results[i], result))
      require(false, fmt::format("{}: returns {}, not {}", describe(access, place), hex(results[i]),
                                 hex(result)));
  }
}

template <class T>
std::vector<T> befores(const std::vector<AtomicCase<T>>& accesses, std::size_t times) {
  std::vector<T> values;
  for (std::size_t time = 0; time < times; ++time)
    for (const AtomicCase<T>& access : accesses) values.push_back(access.before);
  return values;
}

/// Every rank makes all accesses to words of its own at every rank; device and block scope are for
/// this rank's memory. Without native atomics all are.
template <class T>
void check_accesses(Context& context, StreamRef& stream) {
  Memory memory(context);
  const Team team = context.world();
  const int me = context.rank();
  const auto ranks = static_cast<std::size_t>(context.size());
  const auto mine = accesses_at<T>({std::begin(all_scopes), std::end(all_scopes)});
  const auto theirs = accesses_at<T>({Scope::system});
  const auto device_mine = context.allocate<AtomicCase<T>>(mine.size());
  const auto device_theirs = context.allocate<AtomicCase<T>>(theirs.size());
  const auto my_words = context.allocate<T>(mine.size());
  const auto their_words = context.allocate<T>(theirs.size() * ranks);
  const auto results = context.allocate<T>(mine.size());
  memory.write(device_mine, mine);
  memory.write(device_theirs, theirs);
  memory.write(my_words, befores(mine, 1));
  memory.write(their_words, befores(theirs, ranks));
  context.barrier();

  run_accesses(context, stream, team.lane(), device_mine.data(), mine.size(), my_words.data(),
               results.data(), me);
  stream.synchronize();
  require_same(mine, memory.read(my_words), memory.read(results), me);
  for (int place = 0; place < context.size() && has_native_atomics(team); ++place) {
    if (place == me) continue;
    const std::size_t first = static_cast<std::size_t>(me) * theirs.size();
    run_accesses(context, stream, team.lane(), device_theirs.data(), theirs.size(),
                 their_words.data() + first, results.data(), place);
    std::vector<T> words(theirs.size());
    stream.copy(words.data(), their_words.at(place) + first, words.size() * sizeof(T));
    stream.synchronize();
    require_same(theirs, words, memory.read(results), place);
  }
  team.check();
  context.barrier();
}

class AtomicTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AtomicTest, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(atomic_accesses) {
  Context context(job);
  Stream stream = context.make_stream();
  check_accesses<std::int32_t>(context, stream);
  check_accesses<std::uint32_t>(context, stream);
  check_accesses<std::int64_t>(context, stream);
  check_accesses<std::uint64_t>(context, stream);
  check_accesses<float>(context, stream);
  check_accesses<double>(context, stream);
  check_accesses<fp16>(context, stream);
  check_accesses<bf16>(context, stream);
}
TEST_P(AtomicTest, AccessesReturnWhatWasThereAndLeaveWhatTheyShould) {
  expect_all_ok(run_ranks(GetParam().kind, "atomic_accesses", GetParam().size));
}

}  // namespace
}  // namespace iridium::test

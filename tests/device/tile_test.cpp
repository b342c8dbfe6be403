// Tiles against plain loops over the same elements. On a GPU when IRIDIUM_BACKEND says so.
#include "iridium/device/tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "device/tile_kernels.h"

namespace iridium::test {
namespace {

/// Ways to run blocks. A GPU has only one.
struct Mode {
  const char* name;
  ContextOptions options;
};

std::vector<Mode> modes() {
  constexpr std::size_t heap_bytes = std::size_t{32} << 20;
  return {
      {"whole blocks", {.heap_bytes = heap_bytes, .split_blocks = false}},
      {"split blocks", {.heap_bytes = heap_bytes, .split_blocks = true}},
      {"drawn turns",
       {.heap_bytes = heap_bytes, .split_blocks = false, .schedule_seed = std::uint64_t{1}}},
      {"split blocks, drawn turns",
       {.heap_bytes = heap_bytes, .split_blocks = true, .schedule_seed = std::uint64_t{2}}},
  };
}

constexpr TileShape plain_shapes[] = {TileShape::part, TileShape::exact, TileShape::multiple};

constexpr NumberKind all_numbers[] = {NumberKind::fp16,    NumberKind::bf16,  NumberKind::float32,
                                      NumberKind::float64, NumberKind::int8,  NumberKind::int32,
                                      NumberKind::int64,   NumberKind::uint8, NumberKind::uint32,
                                      NumberKind::uint64};

/// The values at which something happens to some operation or conversion.
template <class T>
std::vector<T> special_values() {
  std::vector<T> values;
  if constexpr (FloatNumber<T>) {
    for (const double value :
         {0.0, 1.0, 0.5, 2.75, 127.0, 128.0, 255.5, 256.0, 65504.0, 65520.0, 2147483647.0,
          2147483648.0, 4294967295.0, 9223372036854775808.0, 18446744073709551616.0,
          3.4028234663852886e38, 1e-7, 1e-40, std::numeric_limits<double>::infinity()})
      for (const double signed_value : {value, -value}) values.push_back(convert<T>(signed_value));
    values.push_back(convert<T>(std::numeric_limits<double>::quiet_NaN()));
  } else {
    using Limits = std::numeric_limits<T>;
    for (const T value : {T{0}, T{1}, T{2}, T{3}, T{100}}) {
      values.push_back(value);
      values.push_back(subtract(T{0}, value));
      values.push_back(subtract(Limits::max(), value));
      values.push_back(add(Limits::min(), value));
    }
  }
  return values;
}

/// Bits of any kind, small numbers, and special values, a third each.
template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  const std::vector<T> special = special_values<T>();
  std::vector<T> values(count);
  for (T& value : values) {
    const std::uint64_t bits = random();
    switch (random() % 3) {
      case 0:
        std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
        break;
      case 1:
        value = convert<T>(static_cast<double>(static_cast<std::int64_t>(bits >> 54) - 512) / 8);
        break;
      default:
        value = special[bits % special.size()];
    }
  }
  return values;
}

enum class Match {
  bits,   ///< the same bits
  value,  ///< the same bits, or both NaN
  zeros,  ///< the same bits, or both NaN, or both zero of any sign
};

template <class T>
bool same(T x, T y, Match match) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  if (std::bit_cast<Bytes>(x) == std::bit_cast<Bytes>(y)) return true;
  if constexpr (FloatNumber<T>) {
    if (match != Match::bits && x != x && y != y) return true;
    if (match == Match::zeros && x == y) return true;
  }
  return false;
}

template <class T>
std::string hex(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  std::ostringstream text;
  text << "0x" << std::hex << bits;
  return text.str();
}

template <class T>
T model(const TileCase<T>& work, T a, T b) {
  switch (work.op) {
    case TileOp::filled:
      return work.value;
    case TileOp::add:
      return add(a, b);
    case TileOp::subtract:
      return subtract(a, b);
    case TileOp::multiply:
      return multiply(a, b);
    case TileOp::minimum:
      return minimum(a, b);
    case TileOp::maximum:
      return maximum(a, b);
    case TileOp::map:
      return one_minus(a);
    case TileOp::zip:
      return larger(a, convert<float>(b));
    default:
      return a;
  }
}

Match match_of(TileOp op) {
  switch (op) {
    case TileOp::copy:
    case TileOp::filled:
    case TileOp::for_each:
      return Match::bits;
    case TileOp::minimum:
    case TileOp::maximum:
    case TileOp::zip:
      return Match::zeros;
    default:
      return Match::value;
  }
}

/// By how many elements arrays are moved off the places vectors can be read from.
struct Shifts {
  std::size_t in = 0;
  std::size_t out = 0;
};

/// A rank of its own with random input, on which cases are run and compared with loops.
template <class T>
class Bench {
 public:
  explicit Bench(const ContextOptions& options)
      : context_(options),
        stream_(context_.make_stream()),
        a_(random_values<T>(capacity, 1)),
        b_(random_values<T>(capacity, 2)),
        device_a_(context_.allocate<T>(capacity)),
        device_b_(context_.allocate<T>(capacity)),
        device_out_(context_.allocate<std::uint64_t>(capacity)),
        device_visits_(context_.allocate<std::uint32_t>(capacity)) {
    pair_up_special_values();
    stream_.copy(device_a_.data(), a_.data(), device_a_.bytes());
    stream_.copy(device_b_.data(), b_.data(), device_b_.bytes());
    stream_.synchronize();
  }

  BackendKind backend() const { return context_.backend(); }

  /// Runs the case; pointers are the bench's.
  void check(const TileCase<T>& work, Shifts shifts = {}) {
    SCOPED_TRACE(describe(work, shifts));
    if (work.op == TileOp::convert)
      with_number(work.to, [&](auto sample) {
        using To = decltype(sample);
        check_as<To>(work, shifts, [](T a, T) { return convert<To>(a); });
      });
    else
      check_as<T>(work, shifts, [&](T a, T b) { return model(work, a, b); });
  }

 private:
  /// Elements before and after an array; a multiple of every vector.
  static constexpr std::size_t guard = 32;
  static constexpr std::size_t capacity =
      8 * static_cast<std::size_t>(tile_elements<T>(TileShape::exact)) + 3 * guard;
  static constexpr unsigned char untouched = 0xa5;

  // Those of `a` change fastest: short arrays, too, have them all.
  void pair_up_special_values() {
    const std::vector<T> special = special_values<T>();
    std::size_t index = guard;
    for (const T y : special)
      for (const T x : special) {
        a_.at(index) = x;
        b_.at(index) = y;
        ++index;
      }
  }

  template <class Out, class Model>
  void check_as(TileCase<T> work, Shifts shifts, Model expected_value) {
    const std::size_t span = static_cast<std::size_t>(work.tiles) *
                             static_cast<std::size_t>(tile_elements<T>(work.shape));
    const std::size_t used = guard + shifts.out + work.first + span + guard;
    ASSERT_LE(used, capacity);
    ASSERT_LE(guard + shifts.in + work.count, capacity);
    std::vector<Out> out(used);
    std::vector<std::uint32_t> visits(used);

    work.a = device_a_.data() + guard + shifts.in;
    work.b = device_b_.data() + guard + shifts.in;
    work.out = reinterpret_cast<Out*>(device_out_.data()) + guard + shifts.out;
    work.visits = device_visits_.data() + guard + shifts.out;
    stream_.fill(device_out_.data(), untouched, used * sizeof(Out));
    stream_.fill(device_visits_.data(), 0, used * sizeof(std::uint32_t));
    run_tiles(context_, stream_, work);
    stream_.copy(out.data(), device_out_.data(), used * sizeof(Out));
    stream_.copy(visits.data(), device_visits_.data(), used * sizeof(std::uint32_t));
    stream_.synchronize();

    std::vector<Out> expected(used);
    std::vector<std::uint32_t> expected_visits(used, 0);
    std::memset(static_cast<void*>(expected.data()), untouched, used * sizeof(Out));
    const bool visited = work.op == TileOp::for_each || work.op == TileOp::convert;
    for (std::size_t index = work.first; index < work.first + span; ++index) {
      const std::size_t in = guard + shifts.in + index;
      const std::size_t place = guard + shifts.out + index;
      if (index < work.count)
        expected[place] = expected_value(a_[in], b_[in]);
      else if (work.op == TileOp::for_each)
        std::memset(static_cast<void*>(&expected[place]), 0, sizeof(Out));
      expected_visits[place] = visited ? 1 : 0;
    }
    const std::size_t origin = guard + shifts.out;
    expect_same(out, expected, match_of(work.op), origin, "element");
    expect_same(visits, expected_visits, Match::bits, origin, "visits of element");
  }

  template <class Out>
  static void expect_same(const std::vector<Out>& values, const std::vector<Out>& expected,
                          Match match, std::size_t origin, const char* what) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!same(values[i], expected[i], match)) {
        ADD_FAILURE() << what << " "
                      << static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(origin)
                      << " is " << hex(values[i]) << ", not " << hex(expected[i]);
        return;
      }
  }

  static std::string describe(const TileCase<T>& work, Shifts shifts) {
    std::ostringstream text;
    text << "op " << static_cast<int>(work.op) << ", to " << static_cast<int>(work.to) << ", "
         << work.tiles << " tiles of " << tile_elements<T>(work.shape) << " by " << work.blocks
         << " blocks, from " << work.first << " of " << work.count << ", shifted by " << shifts.in
         << " and " << shifts.out;
    return text.str();
  }

  Context context_;
  Stream stream_;
  std::vector<T> a_;
  std::vector<T> b_;
  SymmetricArray<T> device_a_;
  SymmetricArray<T> device_b_;
  SymmetricArray<std::uint64_t> device_out_;
  SymmetricArray<std::uint32_t> device_visits_;
};

template <class T>
class TileTest : public ::testing::Test {
 protected:
  /// Runs `body` on a bench of every mode.
  template <class Body>
  static void in_every_mode(Body body) {
    for (const Mode& mode : modes()) {
      SCOPED_TRACE(mode.name);
      Bench<T> bench(mode.options);
      body(bench);
      if (bench.backend() != BackendKind::host) break;
    }
  }

  static std::size_t size(TileShape shape) {
    return static_cast<std::size_t>(tile_elements<T>(shape));
  }

  /// Around the sizes at which something changes.
  static std::vector<std::size_t> counts(TileShape shape) {
    const std::size_t tile = size(shape);
    return {0, 1, 7, tile / 2, tile - 1, tile, tile + 1, 2 * tile, 3 * tile - 1, 4 * tile};
  }
};
using Numbers = ::testing::Types<fp16, bf16, float, double, std::int8_t, std::int32_t, std::int64_t,
                                 std::uint8_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(TileTest, Numbers);

TYPED_TEST(TileTest, CopiesWhatIsThereAndNothingElse) {
  this->in_every_mode([&](auto& bench) {
    for (const TileShape shape : plain_shapes)
      for (const std::size_t count : this->counts(shape))
        for (const Shifts shifts : {Shifts{}, Shifts{.in = 1}, Shifts{.out = 1}, Shifts{1, 1}})
          bench.check({.op = TileOp::copy, .shape = shape, .count = count, .tiles = 4, .blocks = 3},
                      shifts);
  });
}

TYPED_TEST(TileTest, BeginsAtAnyElementAlsoBeyondTheLast) {
  this->in_every_mode([&](auto& bench) {
    for (const TileShape shape : plain_shapes) {
      const std::size_t tile = this->size(shape);
      const std::size_t count = 2 * tile + 3;
      for (const TileOp op : {TileOp::copy, TileOp::filled, TileOp::for_each})
        for (const std::size_t first :
             {std::size_t{1}, tile - 1, tile, count - 1, count, count + 1, count + 2 * tile})
          bench.check({.op = op, .shape = shape, .first = first, .count = count, .tiles = 3});
    }
  });
}

TYPED_TEST(TileTest, GridsOfAnySizeShareTheTiles) {
  this->in_every_mode([&](auto& bench) {
    for (const TileShape shape : plain_shapes)
      for (const TileOp op : {TileOp::copy, TileOp::for_each})
        for (const int blocks : {1, 2, 3, 7, 16})
          bench.check({.op = op,
                       .shape = shape,
                       .count = 6 * this->size(shape) + 5,
                       .tiles = 7,
                       .blocks = blocks});
  });
}

TYPED_TEST(TileTest, ForEachGivesEveryElementOnceAndZerosBeyondTheLast) {
  this->in_every_mode([&](auto& bench) {
    for (const TileShape shape : plain_shapes)
      for (const std::size_t count : this->counts(shape))
        for (const Shifts shifts : {Shifts{}, Shifts{.in = 1}})
          bench.check(
              {.op = TileOp::for_each, .shape = shape, .count = count, .tiles = 4, .blocks = 2},
              shifts);
  });
}

TYPED_TEST(TileTest, ComputesElementByElement) {
  const auto value = special_values<TypeParam>().back();
  this->in_every_mode([&](auto& bench) {
    for (const TileShape shape : plain_shapes)
      for (const TileOp op : {TileOp::filled, TileOp::add, TileOp::subtract, TileOp::multiply,
                              TileOp::minimum, TileOp::maximum, TileOp::map, TileOp::zip})
        for (const std::size_t missing : {std::size_t{0}, std::size_t{3}})
          bench.check({.op = op,
                       .shape = shape,
                       .value = value,
                       .count = 8 * this->size(shape) - missing,
                       .tiles = 8,
                       .blocks = 3});
  });
}

TYPED_TEST(TileTest, ConvertsToEveryType) {
  constexpr TileShape shape = TileShape::ragged;
  this->in_every_mode([&](auto& bench) {
    for (const NumberKind to : all_numbers)
      for (const std::size_t count : this->counts(shape))
        for (const Shifts shifts : {Shifts{}, Shifts{.out = 1}})
          bench.check({.op = TileOp::convert,
                       .shape = shape,
                       .to = to,
                       .count = count,
                       .tiles = 4,
                       .blocks = 3},
                      shifts);
  });
}

/// Adds up a tile of ones: what its thread holds, and whatever else it has.
struct AddsBeyondItsShare {
  static constexpr int elements = 512;
  const float* ones;
  float* held;
  float* all;

  IR_DEVICE void operator()(Block block) const {
    const auto tile = load<elements>(block, ones, 0, elements);
    float sum = 0;
    for_each(block, tile, [&](int, float value) { sum += value; });
    held[block.thread()] = sum;
    sum = 0;
    static_cast<void>(tile.map([&](float value) {
      sum += value;
      return value;
    }));
    all[block.thread()] = sum;
  }
};

TEST(SplitTiles, HaveNoZerosWhereOtherThreadsHoldElements) {
  Context context({.backend = BackendKind::host, .split_blocks = true});
  Stream stream = context.make_stream();
  constexpr std::size_t threads = 4;
  const std::vector<float> ones(AddsBeyondItsShare::elements, 1);
  std::vector<float> held(threads, 0);
  std::vector<float> all(threads, 0);
  context.launch(stream, 1, AddsBeyondItsShare{ones.data(), held.data(), all.data()});
  stream.synchronize();
  for (std::size_t thread = 0; thread < threads; ++thread) {
    EXPECT_EQ(held[thread], AddsBeyondItsShare::elements / threads);
    EXPECT_TRUE(std::isnan(all[thread])) << "a sum over them passes with " << all[thread];
  }
}

}  // namespace
}  // namespace iridium::test

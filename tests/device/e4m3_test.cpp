// e4m3 against its definition: an exponent of 4 bits with a bias of 7, a fraction of 3.
#include "iridium/device/e4m3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace iridium {
namespace {

constexpr unsigned nan_bits = 0x7f;
constexpr unsigned largest_bits = 0x7e;

e4m3 from_bits(unsigned bits) {
  e4m3 value;
  value.bits = static_cast<std::uint8_t>(bits);
  return value;
}

/// Of patterns without a sign that are numbers.
float defined(unsigned bits) {
  const auto exponent = static_cast<int>(bits >> 3);
  const auto fraction = static_cast<float>(bits & 7) / 8;
  return exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
}

TEST(E4m3, IsAByteOfPlainStorage) {
  static_assert(sizeof(e4m3) == 1 && alignof(e4m3) == 1);
  static_assert(std::is_trivially_copyable_v<e4m3>);
  static_assert(std::is_trivially_default_constructible_v<e4m3>);
  static_assert(!std::is_convertible_v<float, e4m3> && !std::is_convertible_v<e4m3, float>);
  static_assert(static_cast<float>(e4m3(-1.5f)) == -1.5f);
}

TEST(E4m3, WidensEveryPattern) {
  for (unsigned bits = 0; bits < nan_bits; ++bits) {
    EXPECT_EQ(static_cast<float>(from_bits(bits)), defined(bits)) << bits;
    EXPECT_EQ(static_cast<float>(from_bits(bits | 0x80)), -defined(bits)) << bits;
    EXPECT_TRUE(std::signbit(static_cast<float>(from_bits(bits | 0x80)))) << bits;
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(from_bits(nan_bits))));
  EXPECT_TRUE(std::isnan(static_cast<float>(from_bits(nan_bits | 0x80))));
  EXPECT_EQ(static_cast<float>(from_bits(largest_bits)), 448);
}

TEST(E4m3, SurvivesAFloatInBetween) {
  for (unsigned bits = 0; bits < nan_bits; ++bits) {
    EXPECT_EQ(e4m3(static_cast<float>(from_bits(bits))).bits, bits);
    EXPECT_EQ(e4m3(static_cast<float>(from_bits(bits | 0x80))).bits, bits | 0x80);
  }
}

TEST(E4m3, RoundsToNearestEven) {
  for (unsigned low = 0; low < largest_bits; ++low) {
    const float middle = (defined(low) + defined(low + 1)) / 2;
    const unsigned even = low % 2 == 0 ? low : low + 1;
    EXPECT_EQ(e4m3(middle).bits, even) << low;
    EXPECT_EQ(e4m3(-middle).bits, even | 0x80) << low;
    EXPECT_EQ(e4m3(std::nextafter(middle, 0.0f)).bits, low) << low;
    EXPECT_EQ(e4m3(std::nextafter(middle, 1000.0f)).bits, low + 1) << low;
  }
}

TEST(E4m3, StopsAtItsLimits) {
  for (const float large : {449.0f, 464.0f, 465.0f, 480.0f, 511.0f, 512.0f, 1e30f,
                            std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(e4m3(large).bits, largest_bits) << large;
    EXPECT_EQ(e4m3(-large).bits, largest_bits | 0x80) << large;
  }
  EXPECT_EQ(e4m3(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(e4m3(std::numeric_limits<float>::quiet_NaN()).bits & 0x7f, nan_bits);
}

}  // namespace
}  // namespace iridium

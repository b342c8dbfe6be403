#include "iridium/device/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace iridium {
namespace {

using CompilerHalf = _Float16;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// What the two formats differ in, for models written apart from the header.
template <class T>
struct Format;
template <>
struct Format<fp16> {
  static constexpr int significant_bits = 11;
  static constexpr int smallest_exponent = -24;  // of the smallest subnormal
  static constexpr double largest = 65504.0;
  static float widen(std::uint16_t bits) {
    return static_cast<float>(std::bit_cast<CompilerHalf>(bits));
  }
};
template <>
struct Format<bf16> {
  static constexpr int significant_bits = 8;
  static constexpr int smallest_exponent = -133;
  static constexpr double largest = 0x1.fep127;
  static float widen(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// `value` rounded to T's grid, to nearest even. A long double holds every integer type exactly.
template <class T, class Wide>
double rounded(Wide value) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return static_cast<double>(value);
  const int last_bit =
      std::max(std::ilogb(value) - Format<T>::significant_bits + 1, Format<T>::smallest_exponent);
  const double result =
      std::ldexp(static_cast<double>(std::nearbyint(std::ldexp(value, -last_bit))), last_bit);
  if (std::abs(result) <= Format<T>::largest) return result;
  return std::copysign(static_cast<double>(infinity), result);
}

/// Whether both are the same value with the same sign, or both NaN.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

template <class T>
T from_bits(unsigned bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// What every NaN is narrowed to.
constexpr std::uint16_t narrow_nan = 0x7fff;

/// Checks the rounding of one float; quick to pass, as millions of calls do.
template <class T>
void check_rounding(float value) {
  const T result = static_cast<T>(value);
  const bool sign_kept = (result.bits >> 15 != 0) == std::signbit(value);
  const bool right = std::isnan(value)
                         ? result.bits == narrow_nan
                         : sign_kept && same(Format<T>::widen(result.bits), rounded<T>(value));
  if (!right) ADD_FAILURE() << std::hexfloat << value << " gave " << std::hex << result.bits;
  if constexpr (std::same_as<T, fp16>) {
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<CompilerHalf>(value));
    if (!std::isnan(value) && result.bits != expected)
      ADD_FAILURE() << std::hexfloat << value << " gave " << std::hex << result.bits << ", not "
                    << expected;
  }
}

template <class T>
class HalfNumbers : public testing::Test {};
using HalfTypes = testing::Types<fp16, bf16>;
TYPED_TEST_SUITE(HalfNumbers, HalfTypes);

TYPED_TEST(HalfNumbers, AreTwoBytesOfPlainStorage) {
  static_assert(sizeof(TypeParam) == 2 && alignof(TypeParam) == 2);
  static_assert(std::is_trivially_copyable_v<TypeParam>);
  static_assert(std::is_trivially_default_constructible_v<TypeParam>);
  static_assert(!std::is_convertible_v<float, TypeParam>);
  static_assert(!std::is_convertible_v<TypeParam, float>);
}

TYPED_TEST(HalfNumbers, ComputeAtCompileTime) {
  static_assert(static_cast<float>(TypeParam(1.5f) * TypeParam(-2.0f)) == -3.0f);
  static_assert(TypeParam(1e-6f) > TypeParam(0.0f));
  static_assert(convert<std::int32_t>(TypeParam(-3.75f)) == -3);
  static_assert(TypeParam(not_a_number) != TypeParam(not_a_number));
  static_assert(TypeParam(infinity) > TypeParam(60000.0f));
}

TYPED_TEST(HalfNumbers, WidenEveryPattern) {
  for (unsigned bits = 0; bits < 1u << 16; ++bits) {
    const auto value = from_bits<TypeParam>(bits);
    const float expected = Format<TypeParam>::widen(value.bits);
    ASSERT_TRUE(same(static_cast<float>(value), expected)) << std::hex << bits;
    ASSERT_EQ(std::signbit(static_cast<float>(value)), bits >> 15 != 0) << std::hex << bits;
  }
}

TYPED_TEST(HalfNumbers, SurviveAFloatInBetween) {
  for (unsigned bits = 0; bits < 1u << 16; ++bits) {
    const auto value = from_bits<TypeParam>(bits);
    const auto again = static_cast<TypeParam>(static_cast<float>(value));
    if (std::isnan(Format<TypeParam>::widen(value.bits)))
      ASSERT_EQ(again.bits, narrow_nan) << std::hex << bits;
    else
      ASSERT_EQ(again.bits, bits) << std::hex;
  }
}

TYPED_TEST(HalfNumbers, RoundAroundEveryMidpoint) {
  const unsigned past_largest = TypeParam(infinity).bits;
  for (unsigned bits = 0; bits < past_largest; ++bits) {
    const float low = Format<TypeParam>::widen(static_cast<std::uint16_t>(bits));
    // The neighbour of the largest value is where the grid would go on, not infinity.
    const double high = bits + 1 < past_largest
                            ? Format<TypeParam>::widen(static_cast<std::uint16_t>(bits + 1))
                            : std::exp2(std::ilogb(low) + 1);
    const float middle = static_cast<float>((low + high) / 2);
    for (const float value :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, infinity)}) {
      check_rounding<TypeParam>(value);
      check_rounding<TypeParam>(-value);
    }
    ASSERT_FALSE(this->HasFailure()) << std::hex << bits;
  }
}

TYPED_TEST(HalfNumbers, RoundRandomAndSpecialFloats) {
  for (const float value :
       {0.0f, infinity, not_a_number, std::numeric_limits<float>::signaling_NaN(),
        std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0x7fffffffu),
        std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
        std::numeric_limits<float>::denorm_min(), 65519.996f, 65520.0f, 0x1p-25f,
        0x1.000002p-25f}) {
    check_rounding<TypeParam>(value);
    check_rounding<TypeParam>(-value);
  }
  std::mt19937 random(2024);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    check_rounding<TypeParam>(std::bit_cast<float>(bits));
    // Most floats are far outside fp16: a second one with an exponent from 2^-27 to 2^20.
    const std::uint32_t exponent = 100 + (bits >> 23) % 48;
    check_rounding<TypeParam>(std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23));
    if (this->HasFailure()) break;
  }
}

TYPED_TEST(HalfNumbers, ComputeAsIfExactlyAndRoundOnce) {
  std::mt19937 random(7);
  const auto value_of = [](TypeParam x) -> double { return static_cast<float>(x); };
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const auto x = from_bits<TypeParam>(bits & 0xffff);
    const auto y = from_bits<TypeParam>(bits >> 16);
    const double a = value_of(x);
    const double b = value_of(y);
    const auto message = [&] { return testing::Message() << a << " and " << b; };
    TypeParam sum = x, difference = x, product = x, quotient = x;
    EXPECT_EQ(&(sum += y), &sum);
    EXPECT_EQ(&(difference -= y), &difference);
    EXPECT_EQ(&(product *= y), &product);
    EXPECT_EQ(&(quotient /= y), &quotient);
    ASSERT_TRUE(same(value_of(sum), rounded<TypeParam>(a + b))) << message();
    ASSERT_TRUE(same(value_of(difference), rounded<TypeParam>(a - b))) << message();
    ASSERT_TRUE(same(value_of(product), rounded<TypeParam>(a * b))) << message();
    if (b != 0) {
      ASSERT_TRUE(same(value_of(quotient), rounded<TypeParam>(a / b))) << message();
    }
    ASSERT_TRUE(same(value_of(x + y), value_of(sum))) << message();
    ASSERT_TRUE(same(value_of(x - y), value_of(difference))) << message();
    ASSERT_TRUE(same(value_of(x * y), value_of(product))) << message();
    ASSERT_TRUE(same(value_of(x / y), value_of(quotient))) << message();
    ASSERT_EQ((-x).bits, x.bits ^ 0x8000u) << message();
    ASSERT_EQ(x == y, a == b) << message();
    ASSERT_EQ(x != y, a != b) << message();
    ASSERT_EQ(x < y, a < b) << message();
    ASSERT_EQ(x <= y, a <= b) << message();
    ASSERT_EQ(x > y, a > b) << message();
    ASSERT_EQ(x >= y, a >= b) << message();
  }
}

TYPED_TEST(HalfNumbers, CompareZerosEqual) {
  EXPECT_TRUE(TypeParam(0.0f) == TypeParam(-0.0f));
  EXPECT_FALSE(TypeParam(-0.0f) < TypeParam(0.0f));
}

TYPED_TEST(HalfNumbers, RoundWideNumbersOnce) {
  const auto check = [](auto from) {
    const auto expected = rounded<TypeParam>(static_cast<long double>(from));
    const auto result = convert<TypeParam>(from);
    EXPECT_TRUE(same(Format<TypeParam>::widen(result.bits), expected)) << from;
  };
  // Just beside a midpoint, by less than a float, or even a double, can tell.
  for (const double ulp : {0x1p-30, -0x1p-30, 0x1p-52, -0x1p-52})
    for (const double middle : {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11})
      for (const int exponent : {-130, -127, -126, -16, -14, 0, 15, 127, 128, 1000, -1000}) {
        check(std::ldexp(middle + ulp, exponent));
        check(-std::ldexp(middle + ulp, exponent));
      }
  for (const double value : {0.0, -0.0, 1e300, -1e300, double{infinity}, double{not_a_number}})
    check(value);
  for (const std::int64_t offset : {-1, 0, 1}) {
    check((std::int64_t{0x101} << 54) + offset);
    check(-(std::int64_t{0x103} << 53) + offset);
    check((std::int64_t{0x101} << 45) + offset);
    check((std::uint64_t{0x101} << 55) + static_cast<std::uint64_t>(offset));
    check(static_cast<std::int32_t>((0x101 << 22) + offset));
    check(static_cast<std::uint32_t>((0x103 << 22) + offset));
  }
  check(std::numeric_limits<std::int64_t>::min());
  check(std::numeric_limits<std::int64_t>::max());
  check(std::numeric_limits<std::uint64_t>::max());
  std::mt19937_64 random(11);
  for (int i = 0; i < 100'000 && !this->HasFailure(); ++i) {
    const auto bits = random();
    check(bits >> bits % 64);
    check(static_cast<std::int64_t>(bits) >> bits % 64);
    check(static_cast<std::int32_t>(bits) >> bits % 32);
    check(static_cast<std::uint32_t>(bits));
  }
}

template <class T>
class Integers : public testing::Test {};
using IntegerTypes = testing::Types<std::int8_t, std::int32_t, std::int64_t, std::uint8_t,
                                    std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

template <class T>
std::vector<T> interesting_integers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {Limits::min(), Limits::max(), T(0), T(1), T(2), T(-1), T(-2), T(77)};
  values.push_back(static_cast<T>(Limits::max() / 2));
  values.push_back(static_cast<T>(Limits::min() / 2));
  return values;
}

TYPED_TEST(Integers, WrapAround) {
  // 128 bits hold every exact result; the cast back takes it modulo 2^n.
  using Wide = __int128;
  for (const TypeParam a : interesting_integers<TypeParam>())
    for (const TypeParam b : interesting_integers<TypeParam>()) {
      EXPECT_EQ(add(a, b), static_cast<TypeParam>(Wide{a} + b)) << +a << " " << +b;
      EXPECT_EQ(subtract(a, b), static_cast<TypeParam>(Wide{a} - b)) << +a << " " << +b;
      // The square of 2^64 - 1 would not fit into a signed 128-bit integer.
      using UnsignedWide = unsigned __int128;
      EXPECT_EQ(multiply(a, b),
                static_cast<TypeParam>(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)))
          << +a << " " << +b;
    }
  using Limits = std::numeric_limits<TypeParam>;
  static_assert(add(Limits::max(), TypeParam{1}) == Limits::min());
  static_assert(subtract(Limits::min(), TypeParam{1}) == Limits::max());
  static_assert(multiply(Limits::max(), TypeParam{2}) == static_cast<TypeParam>(-2));
}

TYPED_TEST(Integers, HaveAMinimumAndAMaximum) {
  for (const TypeParam a : interesting_integers<TypeParam>())
    for (const TypeParam b : interesting_integers<TypeParam>()) {
      EXPECT_EQ(minimum(a, b), std::min(a, b));
      EXPECT_EQ(maximum(a, b), std::max(a, b));
    }
}

template <class To, class From>
void check_saturation() {
  using Limits = std::numeric_limits<To>;
  const auto from = [](double value) { return convert<From>(value); };
  const double beyond = std::exp2(Limits::digits);
  EXPECT_EQ(convert<To>(from(double{infinity})), Limits::max());
  EXPECT_EQ(convert<To>(from(-double{infinity})), Limits::min());
  EXPECT_EQ(convert<To>(from(double{not_a_number})), 0);
  EXPECT_EQ(convert<To>(from(-double{not_a_number})), 0);
  // As fp16 it may be infinity.
  EXPECT_EQ(convert<To>(from(beyond)), Limits::max());
  EXPECT_EQ(convert<To>(from(2 * beyond)), Limits::max());
  EXPECT_EQ(convert<To>(from(-beyond)), Limits::min());
  EXPECT_EQ(convert<To>(from(-2 * beyond)), Limits::min());
  EXPECT_EQ(convert<To>(from(100.5)), 100);
  EXPECT_EQ(convert<To>(from(3.75)), 3);
  EXPECT_EQ(convert<To>(from(-3.75)), Limits::is_signed ? static_cast<To>(-3) : To{0});
  EXPECT_EQ(convert<To>(from(-0.5)), 0);
  EXPECT_EQ(convert<To>(from(-0.0)), 0);
  if constexpr (!HalfNumber<From>) {
    const From last = std::nextafter(static_cast<From>(beyond), From{0});
    EXPECT_EQ(convert<To>(last), static_cast<To>(last));
  }
}

TYPED_TEST(Integers, SaturateWhenConvertedFromFloats) {
  check_saturation<TypeParam, fp16>();
  check_saturation<TypeParam, bf16>();
  check_saturation<TypeParam, float>();
  check_saturation<TypeParam, double>();
}

TYPED_TEST(Integers, ConvertToEveryOther) {
  for (const TypeParam a : interesting_integers<TypeParam>()) {
    EXPECT_EQ(convert<std::int8_t>(a), static_cast<std::int8_t>(a));
    EXPECT_EQ(convert<std::int32_t>(a), static_cast<std::int32_t>(a));
    EXPECT_EQ(convert<std::int64_t>(a), static_cast<std::int64_t>(a));
    EXPECT_EQ(convert<std::uint8_t>(a), static_cast<std::uint8_t>(a));
    EXPECT_EQ(convert<std::uint32_t>(a), static_cast<std::uint32_t>(a));
    EXPECT_EQ(convert<std::uint64_t>(a), static_cast<std::uint64_t>(a));
    EXPECT_EQ(convert<float>(a), static_cast<float>(a));
    EXPECT_EQ(convert<double>(a), static_cast<double>(a));
  }
}

template <class T>
class Floats : public testing::Test {};
using FloatTypes = testing::Types<fp16, bf16, float, double>;
TYPED_TEST_SUITE(Floats, FloatTypes);

TYPED_TEST(Floats, HaveAMinimumAndAMaximum) {
  for (const float a : {-infinity, -2.0f, -0.5f, 0.0f, 1.0f, infinity})
    for (const float b : {-infinity, -2.0f, -0.5f, 0.0f, 1.0f, infinity}) {
      const auto x = static_cast<TypeParam>(a);
      const auto y = static_cast<TypeParam>(b);
      EXPECT_EQ(static_cast<float>(minimum(x, y)), std::min(a, b));
      EXPECT_EQ(static_cast<float>(maximum(x, y)), std::max(a, b));
    }
}

TYPED_TEST(Floats, PropagateNaN) {
  const auto nan = static_cast<TypeParam>(not_a_number);
  for (const float value : {-infinity, -1.0f, 0.0f, 1.0f, infinity, not_a_number})
    for (const auto& result :
         {minimum(nan, static_cast<TypeParam>(value)), minimum(static_cast<TypeParam>(value), nan),
          maximum(nan, static_cast<TypeParam>(value)), maximum(static_cast<TypeParam>(value), nan)})
      EXPECT_TRUE(std::isnan(static_cast<float>(result))) << value;
}

TYPED_TEST(Floats, AddSubtractAndMultiply) {
  const auto x = static_cast<TypeParam>(1.5f);
  const auto y = static_cast<TypeParam>(-0.25f);
  EXPECT_EQ(static_cast<float>(add(x, y)), 1.25f);
  EXPECT_EQ(static_cast<float>(subtract(x, y)), 1.75f);
  EXPECT_EQ(static_cast<float>(multiply(x, y)), -0.375f);
}

TYPED_TEST(Floats, ConvertToEveryOther) {
  for (const float value : {0.0f, -0.0f, 1.5f, -100.0f, infinity, -infinity, not_a_number}) {
    const auto x = static_cast<TypeParam>(value);
    EXPECT_TRUE(same(static_cast<float>(convert<fp16>(x)), value)) << value;
    EXPECT_TRUE(same(static_cast<float>(convert<bf16>(x)), value)) << value;
    EXPECT_TRUE(same(convert<float>(x), value)) << value;
    EXPECT_TRUE(same(convert<double>(x), value)) << value;
  }
}

TEST(Number, NamesTheElementTypes) {
  static_assert(Number<fp16> && Number<bf16> && Number<float> && Number<double>);
  static_assert(Number<std::int8_t> && Number<std::int32_t> && Number<std::int64_t>);
  static_assert(Number<std::uint8_t> && Number<std::uint32_t> && Number<std::uint64_t>);
  static_assert(!Number<bool> && !Number<char> && !Number<std::int16_t> && !Number<long double>);
  static_assert(!Number<void> && !Number<const float> && !Number<float&>);
}

TEST(Number, AccumulatesInAWiderOrTheSameType) {
  static_assert(std::same_as<Accumulator<fp16>, float>);
  static_assert(std::same_as<Accumulator<bf16>, float>);
  static_assert(std::same_as<Accumulator<float>, float>);
  static_assert(std::same_as<Accumulator<double>, double>);
  static_assert(std::same_as<Accumulator<std::int8_t>, std::int8_t>);
  static_assert(std::same_as<Accumulator<std::uint64_t>, std::uint64_t>);
}

TEST(Number, FillsVectorsOfSixteenBytes) {
  static_assert(vector_elements<std::int8_t> == 16 && vector_elements<bf16> == 8);
  static_assert(vector_elements<float> == 4 && vector_elements<double> == 2);
}

}  // namespace
}  // namespace iridium

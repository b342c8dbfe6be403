#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace iridium {
namespace {

using std::chrono::milliseconds;

TEST(ParseNumber, ReadsWholeDecimalNumbers) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("7"), 7u);
  EXPECT_EQ(parse_number("0042"), 42u);
  EXPECT_EQ(parse_number("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseNumber, RefusesEverythingElse) {
  for (const char* text : {"", " ", " 1", "1 ", "+1", "-1", "-0", "1.0", "1e3", "0x10", "one", "1K",
                           "1\n", "18446744073709551616", "99999999999999999999999999"})
    EXPECT_FALSE(parse_number(text).has_value()) << "'" << text << "'";
  EXPECT_FALSE(parse_number({}).has_value());
  EXPECT_FALSE(parse_number(std::string_view("1\0", 2)).has_value());
}

TEST(ParseNumber, ReadsOnlyItsOwnCharacters) {
  EXPECT_EQ(parse_number(std::string_view("1234").substr(1, 2)), 23u);
}

TEST(ParseBytes, KnowsPowersOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("3K"), 3u << 10);
  EXPECT_EQ(parse_bytes("256M"), 256u << 20);
  EXPECT_EQ(parse_bytes("4G"), std::size_t{4} << 30);
  EXPECT_EQ(parse_bytes("2T"), std::size_t{2} << 40);
}

TEST(ParseBytes, RefusesWhatDoesNotFit64Bits) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(parse_bytes("18014398509481983K"), (std::size_t{1} << 54) * 1024 - 1024);
  EXPECT_EQ(parse_bytes("16777215T"), ((std::size_t{1} << 24) - 1) << 40);
  for (const char* text : {"18446744073709551616", "18014398509481984K", "17592186044416M",
                           "17179869184G", "16777216T"})
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "K", " 1K", "1K ", "1 K", "+1K", "-1K", "1k", "1KB", "1KiB", "1.5M", "1KK", "KM", "1P"})
    EXPECT_FALSE(parse_bytes(text).has_value()) << "'" << text << "'";
}

TEST(ParseSeconds, ReadsWholeAndFractionalSeconds) {
  EXPECT_EQ(parse_seconds("30"), milliseconds(30'000));
  EXPECT_EQ(parse_seconds("0.5"), milliseconds(500));
  EXPECT_EQ(parse_seconds("1.25"), milliseconds(1250));
  EXPECT_EQ(parse_seconds("31622400"), milliseconds(31'622'400'000));
}

TEST(ParseSeconds, NeverRoundsAPositiveTimeDownToNothing) {
  EXPECT_EQ(parse_seconds("0.0001"), milliseconds(1));
  EXPECT_EQ(parse_seconds("0.0014"), milliseconds(1));
}

TEST(ParseSeconds, RefusesEverythingElse) {
  for (const char* text : {"",    " ",    " 1",       "1 ",       "+1",
                           "-1",  "0",    "0.0",      "-0",       "1e3",
                           "0x1", "1s",   "1,5",      "1.2.3",    "inf",
                           "nan", "-inf", "infinity", "31622401", "99999999999999999999",
                           "."})
    EXPECT_FALSE(parse_seconds(text).has_value()) << "'" << text << "'";
  EXPECT_FALSE(parse_seconds(std::string(400, '9')).has_value());
}

TEST(FormatBytes, GivesTheExactNumberAndAUnit) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1024), "1024 bytes (1 KiB)");
  EXPECT_EQ(format_bytes(1536), "1536 bytes (1.5 KiB)");
  EXPECT_EQ(format_bytes(std::size_t{256} << 20), "268435456 bytes (256 MiB)");
  EXPECT_EQ(format_bytes(std::size_t{3} << 40), "3298534883328 bytes (3 TiB)");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::size_t>::max()),
            "18446744073709551615 bytes (16 EiB)");
}

TEST(FormatSeconds, DropsWhatIsNotNeeded) {
  EXPECT_EQ(format_seconds(milliseconds(30'000)), "30 s");
  EXPECT_EQ(format_seconds(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(format_seconds(milliseconds(1)), "0.001 s");
  EXPECT_EQ(format_seconds(milliseconds(0)), "0 s");
}

TEST(ListRanks, CountsInItsWording) {
  EXPECT_EQ(list_ranks({3}), "rank 3");
  EXPECT_EQ(list_ranks({1, 2, 5}), "ranks 1, 2, 5");
}

TEST(HashText, IsFnv1a) {
  EXPECT_EQ(hash_text(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_text("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_text("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace iridium

#include "cli/bench_axes.h"

#include <gtest/gtest.h>

#include <random>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Sizes = std::vector<std::size_t>;

constexpr std::size_t kilo = 1024;
constexpr std::size_t mega = 1024 * kilo;

TEST(BenchAxes, ReadSizes) {
  const std::vector<std::pair<std::string, Sizes>> cases = {
      {"1", {1}},
      {"4096", {4096}},
      {"64K", {64 * kilo}},
      {"4K,1M", {4 * kilo, mega}},
      {"1M,4K", {4 * kilo, mega}},
      {"4K:64K", {4 * kilo, 16 * kilo, 64 * kilo}},
      {"4K:65K", {4 * kilo, 16 * kilo, 64 * kilo}},
      {"4K:16K:x2", {4 * kilo, 8 * kilo, 16 * kilo}},
      {"8:8", {8}},
      {"1K,4K:16K", {kilo, 4 * kilo, 16 * kilo}},
      {"1G", {1024 * mega}},
  };
  for (const auto& [text, sizes] : cases) EXPECT_EQ(parse_sizes("--bytes", text), sizes) << text;
}

void expect_refused(const std::string& text, const std::string& reason) {
  try {
    parse_sizes("--bytes", text);
    ADD_FAILURE() << "'" << text << "' was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("--bytes is '"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(BenchAxes, RefuseWhatIsNoSize) {
  for (const char* text :
       {"", "0", "x", "4X", "-4", "4K,", ",4K", "4 K", "4KK", "K", "4.5K", "4K::", "4K:", ":4K"})
    expect_refused(text, "is not a size");
  for (const char* text : {"99999999999999999999", "99999999999999G", "4K,99999999999999999999K"})
    expect_refused(text, "is over any limit");
  for (const char* text : {"64K:4K", "2:1"}) expect_refused(text, "ends before it begins");
  for (const char* text : {"4K:64K:2", "4K:64K:x1", "4K:64K:x0", "4K:64K:x", "4K:64K:xx"})
    expect_refused(text, "is not a factor");
  expect_refused("1:2:x2:x2", "a range is");
  expect_refused("4K,4096", "stands twice");
  expect_refused("4K:64K,16K", "stands twice");
}

TEST(BenchAxes, TakeOrRefuseWhateverIsWritten) {
  std::mt19937 random(7);
  const std::string letters = "0123456789KMGT:,x -.";
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::size_t length = random() % 9; length > 0; --length)
      text += letters[random() % letters.size()];
    try {
      const Sizes sizes = parse_sizes("--bytes", text);
      ++taken;
      ASSERT_FALSE(sizes.empty()) << text;
      ASSERT_GT(sizes.front(), 0u) << text;
      ASSERT_TRUE(std::is_sorted(sizes.begin(), sizes.end())) << text;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::invalid_argument) << text;
    }
  }
  EXPECT_GT(taken, 500);
}

TEST(BenchAxes, ReadNumbers) {
  EXPECT_EQ(parse_numbers("-n", "4", 1, 64), (std::vector<int>{4}));
  EXPECT_EQ(parse_numbers("-n", "8,2,4", 1, 64), (std::vector<int>{8, 2, 4}));
  for (const char* text : {"", "0", "65", "2,", ",2", "a", "2,,4", "1.5", "-1", "2,2"})
    EXPECT_THROW(parse_numbers("-n", text, 1, 64), Error) << text;
}

TEST(BenchAxes, ReadShapes) {
  EXPECT_EQ(parse_shapes("--shape", {"16x3584x8192,2x3x5", "1x1x1"}),
            (std::vector<MatmulShape>{{16, 3584, 8192}, {2, 3, 5}, {1, 1, 1}}));
  EXPECT_TRUE(parse_shapes("--shape", {}).empty());
  for (const char* text : {"", "16x3584", "1x1x1,", ",1x1x1", "1x1x1,1x1x1", "0x1x1", "1x1x1x1"})
    EXPECT_THROW(parse_shapes("--shape", {text}), Error) << text;
  EXPECT_THROW(parse_shapes("--shape", {"2x2x2", "2x2x2"}), Error);
}

TEST(BenchAxes, WriteSizes) {
  EXPECT_EQ(size_text(1), "1 B");
  EXPECT_EQ(size_text(4 * kilo), "4 KiB");
  EXPECT_EQ(size_text(mega + mega / 2), "1.5 MiB");
  EXPECT_EQ(size_text(1024 * mega), "1 GiB");
}

}  // namespace
}  // namespace iridium::cli

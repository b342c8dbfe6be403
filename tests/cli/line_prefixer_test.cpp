#include "cli/line_prefixer.h"

#include <gtest/gtest.h>

#include <string>

namespace iridium::cli {
namespace {

TEST(LinePrefixer, PrefixesEveryLine) {
  LinePrefixer prefixer("[0] ");
  std::string output;
  prefixer.feed("one\n\ntwo\n", output);
  EXPECT_EQ(output, "[0] one\n[0] \n[0] two\n");
}

TEST(LinePrefixer, HoldsAnUnfinishedLineBack) {
  LinePrefixer prefixer("> ");
  std::string output;
  prefixer.feed("a", output);
  prefixer.feed("b", output);
  EXPECT_EQ(output, "");
  prefixer.feed("c\nd", output);
  EXPECT_EQ(output, "> abc\n");
  prefixer.finish(output);
  EXPECT_EQ(output, "> abc\n> d\n");
}

TEST(LinePrefixer, FinishAddsNothingAfterAFinishedLine) {
  LinePrefixer prefixer("> ");
  std::string output;
  prefixer.feed("a\n", output);
  prefixer.finish(output);
  prefixer.finish(output);
  EXPECT_EQ(output, "> a\n");
}

TEST(LinePrefixer, KeepsZeroBytes) {
  LinePrefixer prefixer("> ");
  std::string output;
  prefixer.feed(std::string_view("a\0b\n", 4), output);
  EXPECT_EQ(output, std::string("> a\0b\n", 6));
}

TEST(LinePrefixer, PassesLongLinesOnInPieces) {
  LinePrefixer prefixer("> ", 4);
  std::string output;
  prefixer.feed("abcdefghij\nk", output);
  EXPECT_EQ(output, "> abcd\n> efgh\n> ij\n");
  prefixer.finish(output);
  EXPECT_EQ(output, "> abcd\n> efgh\n> ij\n> k\n");
}

TEST(LinePrefixer, DoesNotFollowAFullPieceByAnEmptyLine) {
  LinePrefixer prefixer("> ", 4);
  std::string output;
  prefixer.feed("abcd", output);
  EXPECT_EQ(output, "");
  prefixer.feed("\n", output);
  EXPECT_EQ(output, "> abcd\n");
}

TEST(LinePrefixer, CutsTheSameWhereverTheBytesWereCut) {
  const std::string input = "abcdefghi\n\nabcd\nabcdefgh\nab";
  LinePrefixer whole("> ", 4);
  std::string expected;
  whole.feed(input, expected);
  whole.finish(expected);
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    LinePrefixer prefixer("> ", 4);
    std::string output;
    prefixer.feed(std::string_view(input).substr(0, cut), output);
    prefixer.feed(std::string_view(input).substr(cut), output);
    prefixer.finish(output);
    EXPECT_EQ(output, expected) << "cut at " << cut;
  }
}

TEST(RankPrefix, IsAsWideAsTheWidestRank) {
  EXPECT_EQ(rank_prefix(0, 1), "[0] ");
  EXPECT_EQ(rank_prefix(9, 10), "[9] ");
  EXPECT_EQ(rank_prefix(9, 11), "[9]  ");
  EXPECT_EQ(rank_prefix(10, 11), "[10] ");
}

}  // namespace
}  // namespace iridium::cli

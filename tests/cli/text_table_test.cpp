#include "cli/text_table.h"

#include <gtest/gtest.h>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

TEST(TextTable, AlignsColumnsAndLeavesNoTrailingSpaces) {
  TextTable table({"a", "long heading", "c"});
  table.add_row({"wide cell", "x", ""});
  EXPECT_EQ(table.render(),
            "a          long heading  c\n"
            "wide cell  x\n");
}

TEST(TextTable, IsEmptyWithoutRows) {
  TextTable table({"heading"});
  EXPECT_TRUE(table.is_empty());
  table.add_row({"row"});
  EXPECT_FALSE(table.is_empty());
}

TEST(TextTable, RefusesRowsOfAnotherLength) {
  TextTable table({"one", "two"});
  EXPECT_THROW(table.add_row({"one"}), Error);
}

}  // namespace
}  // namespace iridium::cli

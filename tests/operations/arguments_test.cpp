#include "operations/arguments.h"

#include <gtest/gtest.h>

namespace iridium {
namespace {

const Parameter count = {"count", {"7", "1"}};

TEST(Arguments, HaveTheirDefaultsWhereTheyAreMissing) {
  EXPECT_EQ(text_argument({}, count), "7");
  EXPECT_EQ(text_argument({{"count", "12"}}, count), "12");
  EXPECT_EQ(count_argument({{"other", "12"}}, count), 7u);
  EXPECT_EQ(count_argument({{"count", "12"}}, count), 12u);
}

TEST(Arguments, AreRefusedWhereTheyAreNoCount) {
  for (const char* bad : {"", "0", "-1", "1.5", "many", "99999999999999999999"}) try {
      count_argument({{"count", bad}}, count);
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("count is '" + std::string(bad) + "'"),
                std::string::npos)
          << error.what();
    }
}

}  // namespace
}  // namespace iridium

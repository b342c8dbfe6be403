#include "cli/names.h"

#include <gtest/gtest.h>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using List = std::vector<std::string>;

TEST(Names, TellWhatSomebodyMayHaveMeant) {
  const List names = {"device_barrier", "get", "put", "put_signal"};
  EXPECT_EQ(nearest_names("putt", names), (List{"put"}));
  EXPECT_EQ(nearest_names("barrier", names), (List{"device_barrier"}));
  EXPECT_EQ(nearest_names("put_signl", names), (List{"put_signal"}));
  EXPECT_EQ(nearest_names("all_reduce", names), List{});
}

TEST(Names, AreRefusedWithThoseLikeThemOrAll) {
  const auto refusal = [](const char* name) -> std::string {
    try {
      refuse_name("operation", name, {"get", "put"});
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_NE(refusal("putt").find("there is no operation 'putt'; did you mean put?"),
            std::string::npos);
  EXPECT_NE(refusal("all_reduce").find("there is no operation 'all_reduce'; there are get, put"),
            std::string::npos);
}

}  // namespace
}  // namespace iridium::cli

#include "cli/variable_check.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "command.h"
#include "iridium/settings.h"

namespace iridium::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(VariableCheck, FindsSettingsThatAreAlmostRight) {
  EXPECT_EQ(
      misspelt_settings({"IRIDIUM_TIMOUT=5", "HOME=/home", "IRIDIUM_HEAP_BYTE=1G"}),
      (Lines{
          "IRIDIUM_TIMOUT is no setting and does nothing; did you mean IRIDIUM_TIMEOUT?",
          "IRIDIUM_HEAP_BYTE is no setting and does nothing; did you mean IRIDIUM_HEAP_BYTES?"}));
}

TEST(VariableCheck, LetsSettingsPass) {
  Lines environment;
  for (const Setting& setting : settings())
    if (!setting.variable.empty()) environment.push_back(std::string(setting.variable) + "=1");
  EXPECT_GT(environment.size(), 10u);
  EXPECT_EQ(misspelt_settings(environment), Lines());
}

TEST(VariableCheck, LetsPassWhatIsLikeNoSetting) {
  EXPECT_EQ(misspelt_settings({"IRIDIUM_BUILD=build", "IRIDIUM_TEST_FULL=1", "IRIDIUM_=", "IRIDIUM",
                               "TIMOUT=5", "MY_IRIDIUM_TIMOUT=5"}),
            Lines());
}

TEST(VariableCheck, IsSaidOnceAndTheCommandGoesOn) {
  ASSERT_EQ(setenv("IRIDIUM_TIMOUT", "5", 1), 0);
  const CommandResult result =
      run_command({"run", "-n", "2", "--", "sh", "-c", "echo $IRIDIUM_RANK"});
  const CommandResult help = run_command({"run", "--help"});
  ASSERT_EQ(unsetenv("IRIDIUM_TIMOUT"), 0);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(
      result.error,
      "iridium: IRIDIUM_TIMOUT is no setting and does nothing; did you mean IRIDIUM_TIMEOUT?\n");
  EXPECT_EQ(help.error, "");
}

}  // namespace
}  // namespace iridium::cli

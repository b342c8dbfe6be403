#include "base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/settings.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;

/// The level is read once per process, so each level is tried in a process of its own.
class LogProcess : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void write_every_level(const char* setting) {
    ::setenv(variables::log, setting, 1);
    for (const LogLevel level : {LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug})
      log(level, 3, "line {}", static_cast<int>(level));
    std::fputs("end\n", stderr);
    std::exit(0);
  }
};

TEST(LogLevels, AreParsedByName) {
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::warn);
  EXPECT_EQ(parse_log_level("info"), LogLevel::info);
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
}

TEST(LogLevels, BadOnesAreNamedWithVariableAndChoices) {
  for (const std::string text : {"", "Warn", "warning", "3", "debug "}) {
    const Error error = expect_error(Errc::invalid_argument, [&] { parse_log_level(text); });
    const std::string message = error.what();
    for (const std::string& part :
         {std::string(variables::log), "'" + text + "'", std::string("off, error, warn, info")})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(LogLines, CarryRankLevelAndMessage) {
  testing::internal::CaptureStderr();
  write_log(LogLevel::info, 5, "hello");
  write_log(LogLevel::error, -1, "nobody in particular");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "iridium[5] info: hello\niridium error: nobody in particular\n");
}

TEST_F(LogProcess, OffWritesNothing) {
  EXPECT_EXIT(write_every_level("off"), testing::ExitedWithCode(0), "^end\n$");
}

TEST_F(LogProcess, ErrorWritesErrors) {
  EXPECT_EXIT(write_every_level("error"), testing::ExitedWithCode(0),
              "^iridium\\[3\\] error: line 1\nend\n$");
}

TEST_F(LogProcess, AnEmptyVariableMeansWarn) {
  EXPECT_EXIT(write_every_level(""), testing::ExitedWithCode(0),
              "^iridium\\[3\\] error: line 1\niridium\\[3\\] warn: line 2\nend\n$");
}

TEST_F(LogProcess, DebugWritesEverything) {
  EXPECT_EXIT(write_every_level("debug"), testing::ExitedWithCode(0),
              "error: line 1\n.*warn: line 2\n.*info: line 3\n.*debug: line 4\nend\n$");
}

TEST_F(LogProcess, ABadVariableIsReportedAndMeansWarn) {
  EXPECT_EXIT(
      write_every_level("loud"), testing::ExitedWithCode(0),
      "'loud'.*using warn\niridium\\[3\\] error: line 1\niridium\\[3\\] warn: line 2\nend\n$");
}

}  // namespace
}  // namespace iridium

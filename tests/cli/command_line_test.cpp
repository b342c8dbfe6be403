#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "command.h"

namespace iridium::cli {
namespace {

TEST(CommandLine, PrintsItsVersion) {
  const CommandResult result = run_command({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "iridium 0.1.0\n");
  EXPECT_EQ(result.error, "");
}

TEST(CommandLine, PrintsHelp) {
  const std::vector<std::vector<std::string>> calls = {
      {"--help"}, {"run", "--help"}, {"info", "-h"}};
  for (const auto& arguments : calls) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.status, 0) << arguments[0];
    EXPECT_NE(result.output.find("Usage: iridium"), std::string::npos) << result.output;
    EXPECT_EQ(result.error, "");
  }
}

TEST(CommandLine, DocumentsEveryOptionOfRun) {
  const CommandResult result = run_command({"run", "--help"});
  for (const char* option : {"-n N", "--backend", "--timeout", "--grace", "--mps", "program"})
    EXPECT_NE(result.output.find(option), std::string::npos) << option;
}

struct BadCall {
  std::vector<std::string> arguments;
  std::string message;  // has to be part of what is said
};

class UsageError : public testing::TestWithParam<BadCall> {};

TEST_P(UsageError, ReturnsTwoSaysWhyAndStartsNothing) {
  const CommandResult result = run_command(GetParam().arguments);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "");
  EXPECT_NE(result.error.find(GetParam().message), std::string::npos) << result.error;
}

INSTANTIATE_TEST_SUITE_P(
    , UsageError,
    testing::Values(
        BadCall{{}, "subcommand is required"}, BadCall{{"unknown"}, "no subcommand 'unknown'"},
        BadCall{{"info", "more"}, "more"}, BadCall{{"info", "--format", "xml"}, "xml"},
        BadCall{{"run"}, "required"}, BadCall{{"run", "echo", "started"}, "-n is required"},
        BadCall{{"run", "-n", "2"}, "program is required"},
        BadCall{{"run", "-n", "2", "--"}, "program is required"}, BadCall{{"run", "-n"}, "-n"},
        BadCall{{"run", "-n", "0", "echo", "started"}, "'0' is not a number of ranks from 1 to 64"},
        BadCall{{"run", "-n", "-1", "echo", "started"}, "'-1'"},
        BadCall{{"run", "-n", "65", "echo", "started"}, "'65'"},
        BadCall{{"run", "-n", "x", "echo", "started"}, "'x'"},
        BadCall{{"run", "-n", "2x", "echo", "started"}, "'2x'"},
        BadCall{{"run", "-n", "1.5", "echo", "started"}, "'1.5'"},
        BadCall{{"run", "-n", "99999999999999999999", "echo"}, "from 1 to 64"},
        BadCall{{"run", "-n", "1", "--backend", "tpu", "echo", "started"}, "tpu"},
        BadCall{{"run", "-n", "1", "--backend=", "echo", "started"}, "--backend"},
        BadCall{{"run", "-n", "1", "--timeout", "0", "echo", "started"}, "'0' is not a number of"},
        BadCall{{"run", "-n", "1", "--timeout", "-1", "echo", "started"}, "'-1'"},
        BadCall{{"run", "-n", "1", "--timeout", "soon", "echo", "started"}, "'soon'"},
        BadCall{{"run", "-n", "1", "--timeout", "nan", "echo", "started"}, "'nan'"},
        BadCall{{"run", "-n", "1", "--timeout", "inf", "echo", "started"}, "'inf'"},
        BadCall{{"run", "-n", "1", "--grace", "-0.1", "echo", "started"}, "'-0.1'"},
        BadCall{{"run", "-n", "1", "--mps", "maybe", "echo", "started"}, "maybe"},
        BadCall{{"run", "-n", "1", "--unknown", "echo", "started"}, "--unknown"}));

}  // namespace
}  // namespace iridium::cli

#include "cli/run.h"

#include <gtest/gtest.h>

#include "command.h"
#include "iridium/info.h"

namespace iridium::cli {
namespace {

using Words = std::vector<std::string>;

RunArguments split(const Words& arguments) {
  CommandLine line;
  RunOptions options;
  return split_run_arguments(add_run(line, options), arguments);
}

TEST(SplitRunArguments, CutsBehindTheProgram) {
  const RunArguments split_arguments = split({"-n", "2", "program", "-n", "3", "--", "more"});
  EXPECT_EQ(split_arguments.for_parser, (Words{"-n", "2", "program"}));
  EXPECT_EQ(split_arguments.for_program, (Words{"-n", "3", "--", "more"}));
}

TEST(SplitRunArguments, CutsBehindTheWordAfterTwoDashes) {
  const RunArguments split_arguments = split({"-n2", "--", "--program", "--", "-x"});
  EXPECT_EQ(split_arguments.for_parser, (Words{"-n2", "--", "--program"}));
  EXPECT_EQ(split_arguments.for_program, (Words{"--", "-x"}));
}

TEST(SplitRunArguments, KnowsWhichOptionsTakeAValue) {
  const RunArguments split_arguments =
      split({"--backend", "host", "--timeout=3", "--mps", "off", "-n", "2", "program", "x"});
  EXPECT_EQ(split_arguments.for_parser,
            (Words{"--backend", "host", "--timeout=3", "--mps", "off", "-n", "2", "program"}));
  EXPECT_EQ(split_arguments.for_program, (Words{"x"}));
}

TEST(SplitRunArguments, LeavesCallsWithoutProgramToTheParser) {
  for (const Words& arguments : {Words{}, Words{"-n"}, Words{"-n", "2"}, Words{"-n", "2", "--"}}) {
    EXPECT_EQ(split(arguments).for_parser, arguments);
    EXPECT_EQ(split(arguments).for_program, Words{});
  }
}

TEST(Run, PassesArgumentsOnUnchanged) {
  const CommandResult result =
      run_command({"run", "-n", "1", "printf", "<%s>\\n", "[a,b]", "", "--", "-n", "--help", "++",
                   "a b", "\"quoted\"", "back\\slash"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "[0] <[a,b]>\n[0] <>\n[0] <-->\n[0] <-n>\n[0] <--help>\n[0] <++>\n[0] <a b>\n"
            "[0] <\"quoted\">\n[0] <back\\slash>\n");
}

TEST(Run, ReadsItsOptions) {
  const CommandResult result = run_command(run_script(2, "echo $IRIDIUM_BACKEND $IRIDIUM_TIMEOUT",
                                                      {"--backend", "host", "--timeout=2.5"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(sorted_lines(result.output), (Words{"[0] host 2.5", "[1] host 2.5"}));
}

TEST(Run, SaysOnceThatTheBackendCannotBeUsed) {
  const BackendInfo cuda = describe_backends().front();
  if (cuda.available) GTEST_SKIP() << "there is a GPU";
  for (const char* mps : {"--mps=auto", "--mps=on"}) {
    const CommandResult result =
        run_command(run_script(3, "echo started", {"--backend=cuda", mps}));
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.error, "iridium run: backend cuda cannot be used: " + cuda.reason + "\n");
  }
  const CommandResult bench =
      run_command({"bench", "device_barrier", "-n", "2", "--backend", "cuda"});
  EXPECT_NE(bench.status, 0);
  EXPECT_EQ(bench.output, "");
  EXPECT_EQ(bench.error.find("cannot be used"), bench.error.rfind("cannot be used")) << bench.error;
}

TEST(Run, TakesAProgramCalledLikeASubcommand) {
  const CommandResult result = run_command({"run", "-n", "1", "info"});
  EXPECT_EQ(result.status, 127);
  EXPECT_NE(result.error.find("cannot start 'info'"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace iridium::cli

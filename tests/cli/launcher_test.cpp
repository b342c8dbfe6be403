#include "cli/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "command.h"

namespace iridium::cli {
namespace {

using Lines = std::vector<std::string>;

/// What comes behind the prefix of each rank, joined.
std::map<std::string, std::string> text_by_prefix(const std::string& output) {
  std::map<std::string, std::string> texts;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) texts[line.substr(0, 4)] += line.substr(4);
  return texts;
}

TEST(Launcher, PrefixesBothOutputsOfEveryRank) {
  const CommandResult result =
      run_command(run_script(3, "echo out $IRIDIUM_RANK; echo error $IRIDIUM_RANK >&2"));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(sorted_lines(result.output), (Lines{"[0] out 0", "[1] out 1", "[2] out 2"}));
  EXPECT_EQ(sorted_lines(result.error), (Lines{"[0] error 0", "[1] error 1", "[2] error 2"}));
}

TEST(Launcher, PadsPrefixesToTheWidestRank) {
  const CommandResult result = run_command(run_script(11, "echo x"));
  const Lines lines = sorted_lines(result.output);
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(std::ranges::count(lines, "[0]  x"), 1);
  EXPECT_EQ(std::ranges::count(lines, "[10] x"), 1);
}

TEST(Launcher, RunsAsManyRanksAsAJobCanHave) {
  const CommandResult result = run_command(run_script(64, "echo $IRIDIUM_RANK/$IRIDIUM_SIZE"));
  EXPECT_EQ(result.status, 0);
  const Lines lines = sorted_lines(result.output);
  EXPECT_EQ(lines.size(), 64u);
  EXPECT_EQ(std::ranges::count(lines, "[63] 63/64"), 1);
}

TEST(Launcher, GivesAJobOneIdentityAndEveryJobAnother) {
  const std::string script = "echo $IRIDIUM_JOB $IRIDIUM_TOKEN";
  std::set<std::string> identities;
  for (int i = 0; i < 2; ++i) {
    const auto texts = text_by_prefix(run_command(run_script(2, script)).output);
    EXPECT_EQ(texts.at("[0] ").size(), 65u);
    EXPECT_EQ(texts.at("[0] "), texts.at("[1] "));
    identities.insert(texts.at("[0] "));
  }
  EXPECT_EQ(identities.size(), 2u);
}

TEST(Launcher, FinishesAnUnfinishedLastLine) {
  const CommandResult result = run_command(run_script(1, "printf 'a\\n\\nb'; printf c >&2"));
  EXPECT_EQ(result.output, "[0] a\n[0] \n[0] b\n");
  EXPECT_EQ(result.error, "[0] c\n");
}

TEST(Launcher, LosesNothingOfLongLines) {
  const CommandResult result =
      run_command(run_script(2, "head -c 200000 /dev/zero | tr '\\0' $IRIDIUM_RANK"));
  EXPECT_EQ(result.status, 0);
  const auto texts = text_by_prefix(result.output);
  EXPECT_EQ(texts.at("[0] "), std::string(200000, '0'));
  EXPECT_EQ(texts.at("[1] "), std::string(200000, '1'));
  EXPECT_EQ(sorted_lines(result.output).size(), 8u);
}

TEST(Launcher, NeverMixesLinesOfOutputAndErrorThatShareAPipe) {
  const std::string script =
      "lines() { for i in 1 2 3 4 5 6; do head -c 30000 /dev/zero | tr '\\0' $1; echo; done; }\n"
      "lines a & lines b >&2; wait";
  Command command(run_script(2, script), {.error_to_output = true});
  const CommandResult result = command.wait();
  const Lines lines = sorted_lines(result.output);
  ASSERT_EQ(lines.size(), 24u);
  for (const std::string& line : lines) EXPECT_EQ(line.substr(4), std::string(30000, line[4]));
}

TEST(Launcher, GivesStandardInputToRankZeroOnly) {
  Command command(run_script(3, "[ $IRIDIUM_RANK = 0 ] || readlink /proc/self/fd/0; cat"));
  command.write_input("one\ntwo\n");
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(sorted_lines(result.output),
            (Lines{"[0] one", "[0] two", "[1] /dev/null", "[2] /dev/null"}));
}

TEST(Launcher, SaysWhenAProgramIsNotFound) {
  const CommandResult result = run_command({"run", "-n", "2", "no-such-program"});
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(result.error,
            "iridium run: cannot start 'no-such-program': No such file or directory\n");
}

TEST(Launcher, SaysWhenAProgramCannotBeExecuted) {
  const CommandResult result = run_command({"run", "-n", "2", "/dev/null"});
  EXPECT_EQ(result.status, 126);
  EXPECT_EQ(result.error, "iridium run: cannot start '/dev/null': Permission denied\n");
}

TEST(Launcher, ReturnsTheStatusOfARankThatFails) {
  const CommandResult result = run_command(run_script(1, "echo last words >&2; exit 3"));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.error, "[0] last words\niridium run: rank 0 exited with status 3\n");
}

TEST(Launcher, SaysThatARankFailedBehindAllThatTheRankSaid) {
  const CommandResult result = run_command(run_script(1, "yes x | head -c 60000 >&2; exit 3"));
  std::string expected;
  for (int i = 0; i < 30000; ++i) expected += "[0] x\n";
  EXPECT_EQ(result.error, expected + "iridium run: rank 0 exited with status 3\n");
}

TEST(Launcher, TakesAllThatRanksWroteWhileItWasStopped) {
  for (const auto& [status, verdict] :
       {std::pair(0, ""), std::pair(3, "iridium run: rank 0 exited with status 3\n")}) {
    Command command(run_script(
        1, "echo $$; read line; yes x | head -c 60000 >&2; exit " + std::to_string(status)));
    const pid_t rank = std::stoi(command.read_line().substr(4));
    command.stop();
    command.write_input("go\n");
    ASSERT_TRUE(ends(rank)) << "what it writes fits its pipe";
    command.send_signal(SIGCONT);
    const CommandResult result = command.wait();
    EXPECT_EQ(result.status, status);
    std::string expected;
    for (int i = 0; i < 30000; ++i) expected += "[0] x\n";
    expected += verdict;
    // Not compared by EXPECT_EQ, which would look for the smallest difference of so many lines.
    EXPECT_EQ(result.error.size(), expected.size());
    EXPECT_TRUE(result.error == expected);
  }
}

TEST(Launcher, ReturnsTheSignalOfARankThatIsKilled) {
  const CommandResult result =
      run_command(run_script(3, "[ $IRIDIUM_RANK = 2 ] && kill -9 $$; exec sleep 1000"));
  EXPECT_EQ(result.status, 137);
  EXPECT_EQ(result.error,
            "iridium run: rank 2 was killed by signal 9 (Killed); ending the other ranks\n");
}

TEST(Launcher, BlamesTheKilledRankNotThePeersThatSawItFirst) {
  // A peer that sees a connection close can be gone before the kernel tells of the killed rank.
  const CommandResult result = run_command(run_script(2, R"(
    mark=/tmp/iridium-cli-test-$IRIDIUM_JOB
    if [ $IRIDIUM_RANK = 1 ]; then
      while [ ! -e $mark ]; do sleep 0.01; done
      rm $mark
      exit 7
    fi
    touch $mark
    sleep 0.05
    kill -9 $$)"));
  EXPECT_EQ(result.status, 128 + 9);
  EXPECT_TRUE(result.error.starts_with("iridium run: rank 0 was killed by signal 9 (Killed)"))
      << result.error;
}

TEST(Launcher, WaitsForTheOthersWhenARankSucceeds) {
  Command command(run_script(2, "[ $IRIDIUM_RANK = 1 ] && exit; read line; echo $line; exit 4"));
  command.write_input("still here\n");
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 4);
  EXPECT_EQ(result.output, "[0] still here\n");
}

TEST(Launcher, AsksTheOtherRanksToEndWhenOneFails) {
  Command command(run_script(2,
                             "if [ $IRIDIUM_RANK = 0 ]; then read line; exit 3; fi\n"
                             "trap 'echo asked; exit 5' TERM; echo ready; sleep 1000 & wait"));
  EXPECT_EQ(command.read_line(), "[1] ready");
  command.write_input("fail\n");
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "[1] asked\n");
}

TEST(Launcher, KillsRanksThatDoNotEndWhenAsked) {
  Lifeline lifeline;
  Command command(run_script(2,
                             "if [ $IRIDIUM_RANK = 0 ]; then read line; exit 3; fi\n"
                             "trap '' TERM; echo ready; sleep 1000",
                             {"--grace", "0.3"}));
  EXPECT_EQ(command.read_line(), "[1] ready");
  command.write_input("fail\n");
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.error,
            "iridium run: rank 0 exited with status 3; ending the other ranks\n"
            "iridium run: rank 1 did not end within 0.3 s; killing it\n");
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(Launcher, ForwardsUserSignals) {
  for (const auto& [signal, name] : {std::pair(SIGUSR1, "USR1"), std::pair(SIGUSR2, "USR2")}) {
    Command command(run_script(
        2, std::string("trap 'echo got; exit 0' ") + name + "; echo ready; sleep 1000 & wait"));
    EXPECT_EQ(command.read_line().substr(4), "ready");
    EXPECT_EQ(command.read_line().substr(4), "ready");
    command.send_signal(signal);
    const CommandResult result = command.wait();
    EXPECT_EQ(result.status, 0) << name;
    EXPECT_EQ(sorted_lines(result.output), (Lines{"[0] got", "[1] got"})) << name;
  }
}

TEST(Launcher, EndsWithTheSignalThatEndsItsRanks) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Lifeline lifeline;
    Command command(run_script(2, "echo ready; exec sleep 1000"));
    command.read_line();
    command.read_line();
    command.send_signal(signal);
    const CommandResult result = command.wait();
    EXPECT_EQ(result.status, 128 + signal);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(lifeline.is_cut());
  }
}

TEST(Launcher, EndsWithTheSignalWhateverItsRanksMakeOfIt) {
  Command command(
      run_script(2, "trap 'echo interrupted; exit 7' INT; echo ready; sleep 1000 & wait"));
  command.read_line();
  command.read_line();
  command.send_signal(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(sorted_lines(result.output), (Lines{"[0] interrupted", "[1] interrupted"}));
}

TEST(Launcher, KillsRanksThatIgnoreAnInterrupt) {
  Lifeline lifeline;
  Command command(run_script(2, "trap '' INT; echo ready; sleep 1000", {"--grace", "0.3"}));
  command.read_line();
  command.read_line();
  command.send_signal(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.error, "iridium run: ranks 0, 1 did not end within 0.3 s; killing them\n");
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(Launcher, GivesNoNewGraceWhenItIsInterruptedAgain) {
  const CommandResult result = run_command(
      run_script(1, "trap '' INT; while sleep 0.02; do kill -INT $PPID; done", {"--grace", "0.5"}));
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.error, "iridium run: rank 0 did not end within 0.5 s; killing it\n");
}

TEST(Launcher, ReturnsTheStatusOfTheRankThatFailedBeforeTheInterrupt) {
  Command command(run_script(2,
                             "if [ $IRIDIUM_RANK = 0 ]; then read line; exit 7; fi\n"
                             "trap 'echo asked' TERM; trap 'exit 5' INT; echo ready\n"
                             "while :; do sleep 1000 & wait; done",
                             {"--grace", "30"}));
  EXPECT_EQ(command.read_line(), "[1] ready");
  command.write_input("fail\n");
  EXPECT_EQ(command.read_line(), "[1] asked");
  command.send_signal(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 7);
  EXPECT_EQ(result.error, "iridium run: rank 0 exited with status 7; ending the other ranks\n");
}

TEST(Launcher, LeavesIgnoredSignalsIgnored) {
  Command command(run_script(1, "echo ready; exec sleep 1000"), {.ignored_signal = SIGHUP});
  command.read_line();
  command.send_signal(SIGHUP);
  command.send_signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
}

TEST(Launcher, StartsRanksWithTheSignalsItWasStartedWith) {
  // These two belong to the C library: nobody can change them, and make leaves them ignored.
  constexpr unsigned long long reserved = 1ull << (32 - 1) | 1ull << (33 - 1);
  const CommandResult result =
      run_command({"run", "-n", "1", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  std::istringstream stream(result.output);
  for (const char* name : {"SigBlk:", "SigIgn:"}) {
    std::string prefix, label;
    unsigned long long signals = ~0ull;
    stream >> prefix >> label >> std::hex >> signals;
    EXPECT_EQ(label, name);
    EXPECT_EQ(signals & ~reserved, 0u) << result.output;
  }
}

TEST(Launcher, DoesNotWaitForProcessesThatRanksLeaveBehind) {
  Lifeline lifeline;
  const CommandResult result = run_command(run_script(2, "sleep 1000 & echo done"));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(sorted_lines(result.output), (Lines{"[0] done", "[1] done"}));
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(Launcher, LeavesNoRankBehindWhenKilled) {
  Lifeline lifeline;
  Command command(run_script(2, "trap '' TERM INT HUP; echo ready; exec sleep 1000"));
  command.read_line();
  command.read_line();
  command.send_signal(SIGKILL);
  EXPECT_EQ(command.wait_without_reading(), 128 + SIGKILL);
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(Launcher, LeavesNothingThatRanksHaveStartedBehindWhenKilled) {
  Lifeline lifeline;
  Command command(run_script(2, "sh -c 'echo ready; exec sleep 1000'; true"));
  command.read_line();
  command.read_line();
  command.send_signal(SIGKILL);
  EXPECT_EQ(command.wait_without_reading(), 128 + SIGKILL);
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(Launcher, EndsOnASignalAlthoughNobodyReadsItsOutput) {
  Command command({"run", "-n", "2", "--grace", "0.1", "yes"});
  command.read_line();
  command.send_signal(SIGTERM);
  EXPECT_EQ(command.wait_without_reading(), 128 + SIGTERM);
}

TEST(Launcher, LetsRanksSeeThatItsOutputIsClosed) {
  Command command({"run", "-n", "2", "yes"});
  command.read_line();
  command.close_output();
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 128 + SIGPIPE);
  EXPECT_NE(result.error.find("cannot write to standard output: Broken pipe"), std::string::npos)
      << result.error;
}

}  // namespace
}  // namespace iridium::cli

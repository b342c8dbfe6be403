#include "cli/bench_peer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "command.h"

namespace iridium::cli {
namespace {

namespace fs = std::filesystem;

/// A program that takes part, as a shell script.
class PeerScript {
 public:
  explicit PeerScript(const std::string& text)
      : path_(fs::path(testing::TempDir()) /
              (std::string("peer_of_") +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::ofstream(path_) << "#!/bin/bash\n" << text;
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~PeerScript() { fs::remove(path_); }
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

/// Reads its arguments, and takes its turns: `turn` is run in each, with $heat and $round, and
/// `before` before the first.
std::string polite(const std::string& turn, const std::string& before = {}) {
  return R"(
while [[ $# -gt 0 ]]; do name=${1#--}; declare "${name/-/_}=$2"; shift 2; done
)" + before +
         R"(
touch "$turns/ready"
heats=$(grep -o '"heat"' "$plan" | wc -l)
for ((heat = 0; heat < heats; ++heat)); do
  for round in 0 1 2 3 4; do
    until [[ -e $turns/$heat.$round ]]; do [[ ! -e $turns/end ]] || exit 0; sleep 0.01; done
    )" + turn +
         R"(
    touch "$turns/$heat.$round.done"
  done
done
)";
}

const std::string writes_figures = R"(
    if [[ $round == 4 ]]; then
      echo '{"operation": "signal_all", "contender": "other", "algorithm": "", "dtype": "", "mode": "eager", "ranks": 1, "bytes": 0, "blocks": 0, "samples": 7, "calls": 10, "median_us": 2.5, "p10_us": 2, "p90_us": 3, "algorithm_gbps": 0, "bus_gbps": 0, "copy_share": 0}' >> "$rows"
      echo '{"operation": "signal_all", "contender": "other", "algorithm": "", "dtype": "", "mode": "graph", "ranks": 1, "bytes": 0, "blocks": 0, "skipped": "no graphs"}' >> "$rows"
    fi
)";

CommandResult bench_with(const PeerScript& peer, const std::string& out = {}) {
  std::vector<std::string> arguments = {"bench", "signal_all",    "-n",  "2",      "--samples",
                                        "7",     "--sample-time", "0.2", "--peer", peer.path()};
  if (!out.empty()) arguments.insert(arguments.end(), {"--out", out});
  return run_command(arguments);
}

TEST(BenchPeers, TakePart) {
  const PeerScript peer(polite(writes_figures));
  const std::string out = temporary_path("bench_peers_take_part.json");
  const CommandResult result = bench_with(peer, out);
  EXPECT_EQ(result.status, 0) << result.error << result.output;
  const BenchRun run = read_run(out);
  fs::remove(out);
  EXPECT_TRUE(run.complete);
  ASSERT_EQ(run.figures.size(), 4u);
  EXPECT_EQ(run.figures[2].contender, "other");
  EXPECT_EQ(run.figures[2].ranks, 2);
  EXPECT_EQ(run.figures[2].median_us, 2.5);
  EXPECT_EQ(run.figures[3].skipped, "no graphs");
}

/// Ends the first rank of the command that has started the peer.
const std::string kills_a_rank = R"(
    if [[ $heat.$round == 0.2 ]]; then
      for child in $(pgrep -P $PPID); do
        if tr '\0' '\n' < /proc/$child/environ | grep -qx IRIDIUM_RANK=0; then kill -KILL $child; fi
      done
    fi
)";

TEST(BenchPeers, AndWhatFailedHaveTheLinkOfTheRun) {
  const PeerScript peer(polite(kills_a_rank + writes_figures));
  const std::string out = temporary_path("bench_peers_link.json");
  ASSERT_EQ(::setenv("IRIDIUM_LINK", "pcie_atomics", 1), 0);
  const CommandResult result = bench_with(peer, out);
  ::unsetenv("IRIDIUM_LINK");
  EXPECT_NE(result.status, 0) << result.error << result.output;
  const BenchRun run = read_run(out);
  fs::remove(out);
  ASSERT_EQ(run.figures.size(), 4u);
  EXPECT_NE(run.figures[0].failed, "");
  EXPECT_EQ(run.figures[2].contender, "other");
  for (const BenchFigure& figure : run.figures) EXPECT_EQ(figure.link, Link::pcie_atomics);
}

TEST(BenchPeers, SayWhatVersionTheyAre) {
  const PeerScript peer(
      polite(writes_figures, R"(echo '{"other": "1.2"}' > "$turns/versions.json")"));
  const std::string out = temporary_path("bench_peers_versions.json");
  EXPECT_EQ(bench_with(peer, out).status, 0);
  EXPECT_EQ(read_run(out).versions,
            (std::map<std::string, Versions>{{"other", {{"other", "1.2"}}}}));
  fs::remove(out);
}

TEST(BenchPeers, ThatSayNonsenseAboutTheirVersionKeepTheirFigures) {
  const PeerScript peer(polite(writes_figures, "echo '{' > \"$turns/versions.json\""));
  const CommandResult result = bench_with(peer);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("4 figures, 1 skipped, 0 failed\n"), std::string::npos)
      << result.output;
}

TEST(BenchPeers, AreToldWhatIsMeasured) {
  const PeerScript peer(R"(
while [[ $# -gt 0 ]]; do name=${1#--}; declare "${name/-/_}=$2"; shift 2; done
cat "$plan"
exit 1)");
  const SignalSource signals;
  const std::vector<BenchHeat> heats = {
      {.operation = "put", .bytes = 8},
      {.operation = "all_reduce", .bytes = 8, .dtype = "bf16", .op = "max"},
      {.operation = "matmul", .shape = MatmulShape{2, 3, 5}, .dtype = "fp16", .layout = "nk"}};
  const std::vector<BenchFigure> figures =
      BenchPeer(peer.path(), {}, heats, 2, signals).end().figures;
  ASSERT_EQ(figures.size(), 6u);
  EXPECT_NE(figures[0].failed.find(
                R"([{"heat":0,"operation":"put","bytes":8},)"
                R"({"heat":1,"operation":"all_reduce","bytes":8,"dtype":"bf16","op":"max"},)"
                R"({"heat":2,"operation":"matmul","bytes":0,"dtype":"fp16",)"
                R"("m":2,"n":3,"k":5,"layout":"nk"}])"),
            std::string::npos)
      << figures[0].failed;
  // What is missing is told apart like everything else.
  EXPECT_EQ(figures[2].dtype, "bf16");
  EXPECT_EQ(figures[2].op, "max");
  EXPECT_EQ(figures[4].shape, (MatmulShape{2, 3, 5}));
  EXPECT_EQ(figures[4].layout, "nk");
}

TEST(BenchPeers, ThatCannotStartDoNotStopTheRun) {
  const PeerScript peer("echo 'no such library' >&2; exit 3");
  const CommandResult result = bench_with(peer);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("did not take this turn: no such library"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("4 figures, 0 skipped, 2 failed\n"), std::string::npos)
      << result.output;
}

TEST(BenchPeers, ThatHaveEndedKeepTheirNumberWhileTheirGroupMayBeKilled) {
  const PeerScript script(R"(
while [[ $# -gt 0 ]]; do [[ $1 != --turns ]] || echo $$ > "$2/number"; shift; done
exit 3)");
  const SignalSource signals;
  const std::vector<BenchHeat> heats = {{.operation = "put", .bytes = 8}};
  pid_t process = 0;
  {
    BenchPeer peer(script.path(), {}, heats, 2, signals);
    std::ifstream(fs::path(peer.folder()) / "number") >> process;
    ASSERT_GT(process, 0);
    EXPECT_EQ(::kill(process, 0), 0);
    static_cast<void>(peer.end());
    EXPECT_EQ(::kill(process, 0), 0);
  }
  EXPECT_NE(::kill(process, 0), 0);
}

TEST(BenchPeers, ThatDieInTheirTurnDoNotStopTheRun) {
  const PeerScript peer(polite("[[ $round != 2 ]] || { echo 'out of ink'; exit 1; }"));
  const CommandResult result = bench_with(peer);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("out of ink"), std::string::npos) << result.output;
}

TEST(BenchPeers, ThatWriteNonsenseDoNotStopTheRun) {
  const PeerScript peer(polite("[[ $round != 4 ]] || echo '{\"operation\": NaN}' >> \"$rows\""));
  const CommandResult result = bench_with(peer);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("a line of peer_of_ThatWriteNonsenseDoNotStopTheRun is not JSON"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("4 figures, 0 skipped, 2 failed\n"), std::string::npos)
      << result.output;
}

TEST(BenchPeers, AreEndedWhenTheCommandIsInterruptedWhileTheyStart) {
  const PeerScript peer("exec sleep 1000");
  Lifeline lifeline;
  {
    Command command({"bench", "signal_all", "-n", "2", "--peer", peer.path()});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    command.send_signal(SIGTERM);
    EXPECT_EQ(command.wait().status, 128 + SIGTERM);
  }
  EXPECT_TRUE(lifeline.is_cut());
}

TEST(BenchPeers, LoseTheirTurnsWhenTheyTakeTooLong) {
  const fs::path folder = temporary_path("bench_peers_lose");
  fs::create_directories(folder);
  EXPECT_FALSE(give_turn(folder, 3, 1, std::chrono::milliseconds(50)));
  EXPECT_TRUE(fs::exists(folder / "3.1"));
  // At once from here on.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(give_turn(folder, 3, 2));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_FALSE(fs::exists(folder / "3.2"));
  fs::remove_all(folder);
}

/// Whether the folder is empty before the test's patience ends.
bool becomes_empty(const fs::path& folder) {
  for (int i = 0; i < 3000 && !fs::is_empty(folder); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return fs::is_empty(folder);
}

TEST(BenchPeers, LeaveNothingBehindWhenTheCommandIsKilled) {
  const fs::path folder = temporary_path("bench_peers_killed");
  const fs::path marker = temporary_path("bench_peers_killed_marker");
  fs::create_directories(folder);
  fs::remove(marker);
  const PeerScript peer(polite("touch " + marker.string() + "; sleep 1000"));
  ASSERT_EQ(::setenv("TMPDIR", folder.c_str(), 1), 0);
  Lifeline lifeline;
  {
    Command command({"bench", "signal_all", "-n", "2", "--samples", "7", "--peer", peer.path(),
                     "--out", (folder / "out.json").string()});
    ::unsetenv("TMPDIR");
    for (int i = 0; i < 3000 && !fs::exists(marker); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(fs::exists(marker)) << "the peer has its turn";
    EXPECT_FALSE(fs::is_empty(folder));
    command.send_signal(SIGKILL);
    EXPECT_EQ(command.wait_without_reading(), 128 + SIGKILL);
  }
  EXPECT_TRUE(lifeline.is_cut());
  EXPECT_TRUE(becomes_empty(folder));
  fs::remove_all(folder);
  fs::remove(marker);
}

TEST(BenchPeers, LeaveNothingBehind) {
  const fs::path folder = temporary_path("bench_peers_leave");
  fs::create_directories(folder);
  const PeerScript peer(polite(writes_figures) + "sleep 1000");
  ASSERT_EQ(::setenv("TMPDIR", folder.c_str(), 1), 0);
  Lifeline lifeline;
  bench_with(peer);
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(lifeline.is_cut());
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace iridium::cli

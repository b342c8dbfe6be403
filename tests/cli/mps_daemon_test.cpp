#include "cli/mps_daemon.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "command.h"
#include "iridium/errors.h"
#include "programs.h"

namespace iridium::cli {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

TEST(NeedsMps, OnlyWhenRanksShareAGpuOrWhenAsked) {
  struct Row {
    const char* mode;
    int ranks;
    int gpus;
    bool needed;
  };
  for (const Row& row :
       {Row{"auto", 1, 0, false}, Row{"auto", 8, 0, false}, Row{"auto", 1, 1, false},
        Row{"auto", 2, 1, true}, Row{"auto", 8, 8, false}, Row{"auto", 9, 8, true},
        Row{"on", 1, 0, true}, Row{"on", 1, 8, true}, Row{"on", 9, 8, true},
        Row{"off", 9, 8, false}, Row{"off", 2, 1, false}})
    EXPECT_EQ(needs_mps(row.mode, row.ranks, row.gpus), row.needed)
        << row.mode << " " << row.ranks << " " << row.gpus;
}

std::vector<BackendInfo> backends_with(bool has_cuda, std::size_t gpus) {
  BackendInfo cuda;
  cuda.kind = BackendKind::cuda;
  cuda.available = has_cuda;
  cuda.devices.resize(gpus);
  BackendInfo host;
  host.available = true;
  host.devices.resize(1);
  return {cuda, host};
}

TEST(GpusOfJob, CountsThoseOfTheBackendInUse) {
  const auto backends = backends_with(true, 4);
  for (const char* backend : {"", "auto", "cuda"}) EXPECT_EQ(gpus_of_job(backend, backends), 4);
  for (const char* backend : {"host", "hip", "unknown"})
    EXPECT_EQ(gpus_of_job(backend, backends), 0) << backend;
}

TEST(GpusOfJob, CountsNoGpuThatRanksCannotUse) {
  auto backends = backends_with(true, 4);
  backends[0].devices[1].objection = "it is a MIG instance";
  EXPECT_EQ(gpus_of_job("cuda", backends), 3);
}

TEST(GpusOfJob, CountsNoneOfABackendThatCannotBeUsed) {
  const auto backends = backends_with(false, 4);
  for (const char* backend : {"", "auto", "cuda", "host"})
    EXPECT_EQ(gpus_of_job(backend, backends), 0) << backend;
}

/// Puts a fake control program on PATH and directories of its own around it.
class MpsTest : public testing::Test {
 protected:
  MpsTest() {
    char path[] = "/tmp/mps-test-XXXXXX";
    root_ = ::mkdtemp(path);
    for (const char* name : {"bin", "temporary", "inherited"}) fs::create_directory(root_ / name);
    fs::create_symlink(fake_mps_control_path(), root_ / "bin/nvidia-cuda-mps-control");
    set("PATH", (root_ / "bin").string() + ":/usr/bin:/bin");
    set("TMPDIR", root_ / "temporary");
    set("CUDA_MPS_PIPE_DIRECTORY", inherited());
    set("FAKE_MPS_RECORD", root_ / "record");
    set("FAKE_MPS_BEHAVIOUR", "");
    set("CUDA_VISIBLE_DEVICES", "");
  }
  ~MpsTest() override {
    for (const auto& [name, value] : variables_before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    fs::remove_all(root_);
  }

  void set(const std::string& name, const std::string& value) {
    const char* before = std::getenv(name.c_str());
    variables_before_.emplace(name, before ? std::optional<std::string>(before) : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string inherited() const { return root_ / "inherited"; }
  Lines record() const {
    Lines lines;
    std::ifstream file(root_ / "record");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  void wait_for_record(std::size_t lines) const {
    for (int i = 0; record().size() < lines; ++i) {
      if (i == 10'000) throw std::runtime_error("the daemon does not go on");
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  bool has_cleaned_up() const { return fs::is_empty(root_ / "temporary"); }

  /// Runs `use` with a source of signals, and puts the signals of this process back.
  template <class Use>
  static void with_signals(const Use& use) {
    const SignalSource signals;
    use(signals);
    while (signals.next()) {
    }
    signals.restore();
  }

  fs::path root_;
  Lifeline lifeline_;

 private:
  std::map<std::string, std::optional<std::string>> variables_before_;
};

/// A socket called "control" that somebody listens to until it is closed.
Descriptor listen_in(const std::string& directory) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/control", directory.c_str());
  Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener.number(), generic, sizeof address) != 0) throw_system_error("cannot bind");
  if (::listen(listener.number(), 8) != 0) throw_system_error("cannot listen");
  return listener;
}

const Lines started_and_quit = {"started, visible devices ''", "asked to quit"};
const std::string started_text = "iridium run: started a private MPS daemon\n";

TEST_F(MpsTest, FindsADaemonThatListens) {
  EXPECT_FALSE(find_inherited_daemon(inherited()));
  const Descriptor listener = listen_in(inherited());
  const auto daemon = find_inherited_daemon(inherited());
  ASSERT_TRUE(daemon);
  EXPECT_EQ(daemon->directory, inherited());
  EXPECT_EQ(daemon->owner, ::geteuid());
  EXPECT_TRUE(daemon->serves_us());
}

TEST_F(MpsTest, FindsNoDaemonWhereADeadOneLeftItsSocket) {
  listen_in(inherited()).reset();
  EXPECT_TRUE(fs::exists(inherited() + "/control"));
  EXPECT_FALSE(find_inherited_daemon(inherited()));
}

TEST_F(MpsTest, FindsNoDaemonWhereAPathIsTooLongForOne) {
  const std::string directory = inherited() + "/" + std::string(100, 'x');
  fs::create_directory(directory);
  const std::ofstream control(directory + "/control");
  EXPECT_FALSE(find_inherited_daemon(directory));
}

TEST(InheritedDaemon, NamesItsOwner) {
  EXPECT_EQ((InheritedDaemon{.directory = "", .owner = 0}.owner_name()), "root");
  EXPECT_TRUE((InheritedDaemon{.directory = "", .owner = 0}.serves_us())) << "root's serves all";
  EXPECT_EQ((InheritedDaemon{.directory = "", .owner = 3'999'999'999}.owner_name()), "3999999999");
  EXPECT_FALSE((InheritedDaemon{.directory = "", .owner = ::geteuid() + 1}.serves_us()));
}

TEST_F(MpsTest, LooksWhereCudaLooks) {
  EXPECT_EQ(mps_pipe_directory(), inherited());
  set("CUDA_MPS_PIPE_DIRECTORY", "");
  EXPECT_EQ(mps_pipe_directory(), "/tmp/nvidia-mps");
}

TEST_F(MpsTest, StartsAndStopsAPrivateDaemon) {
  with_signals([&](const SignalSource& signals) {
    const MpsDaemon daemon(signals);
    EXPECT_TRUE(daemon.directory().starts_with((root_ / "temporary/iridium-mps-").string()));
    EXPECT_EQ(fs::status(daemon.directory()).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(find_inherited_daemon(daemon.directory()));
    const auto environment = daemon.environment();
    for (const char* name : {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"})
      EXPECT_EQ(std::ranges::count(environment, std::pair(std::string(name), daemon.directory())),
                1);
    EXPECT_EQ(record(), Lines{started_and_quit[0]});
  });
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, LetsTheDaemonSeeAllGpusUnlessTheyAreNamed) {
  for (const auto& [visible, seen] :
       {std::pair("3,4", ""), std::pair("GPU-1234", "GPU-1234"), std::pair("MIG-5", "MIG-5")}) {
    set("CUDA_VISIBLE_DEVICES", visible);
    with_signals([](const SignalSource& signals) { const MpsDaemon daemon(signals); });
    const Lines lines = record();
    ASSERT_GE(lines.size(), 2u);
    EXPECT_EQ(lines[lines.size() - 2], std::string("started, visible devices '") + seen + "'");
  }
}

TEST_F(MpsTest, KillsADaemonThatIgnoresTheRequestToQuit) {
  set("FAKE_MPS_BEHAVIOUR", "ignores_quit");
  with_signals([](const SignalSource& signals) {
    const MpsDaemon daemon(signals, {.quit = milliseconds(100)});
  });
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, StopsADaemonThatDiedBefore) {
  with_signals([](const SignalSource& signals) {
    const MpsDaemon daemon(signals);
    pid_t process = 0;
    std::ifstream(daemon.directory() + "/nvidia-cuda-mps-control.pid") >> process;
    ASSERT_GT(process, 1);
    ::kill(process, SIGKILL);
  });
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

/// Why no daemon could be started.
std::string start_failure(const SignalSource& signals, const MpsPatience& patience = {}) {
  try {
    const MpsDaemon daemon(signals, patience);
    return "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::system);
    return error.what();
  }
}

TEST_F(MpsTest, GivesUpOnADaemonThatNeverListens) {
  set("FAKE_MPS_BEHAVIOUR", "stays_silent");
  with_signals([](const SignalSource& signals) {
    const std::string reason = start_failure(signals, {.start = milliseconds(300)});
    EXPECT_NE(reason.find("no daemon that listens within 0.3 s"), std::string::npos) << reason;
  });
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, GivesUpOnADaemonWhenASignalEndsTheRun) {
  for (const char* behaviour : {"stays_silent", "starts_slowly"}) {
    set("FAKE_MPS_BEHAVIOUR", behaviour);
    ::signal(SIGINT, SIG_DFL);
    with_signals([](const SignalSource& signals) {
      ::raise(SIGINT);
      const std::string reason = start_failure(signals, {.start = std::chrono::hours(1)});
      EXPECT_NE(reason.find("a signal ends the run"), std::string::npos) << reason;
      EXPECT_TRUE(signals.has_terminating());
    });
    EXPECT_TRUE(has_cleaned_up()) << behaviour;
  }
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, PassesOnWhatTheProgramSaysWhenItFails) {
  set("FAKE_MPS_BEHAVIOUR", "fails");
  with_signals([](const SignalSource& signals) {
    const std::string reason = start_failure(signals);
    EXPECT_NE(reason.find("exited with status 1: there is no device"), std::string::npos) << reason;
  });
  EXPECT_TRUE(has_cleaned_up());
}

TEST_F(MpsTest, SaysWhenNoDirectoryCanBeMade) {
  set("TMPDIR", "/nonexistent");
  with_signals([](const SignalSource& signals) {
    const std::string reason = start_failure(signals);
    EXPECT_NE(reason.find("cannot make the directory /nonexistent/"), std::string::npos) << reason;
  });
  set("TMPDIR", "/tmp/" + std::string(90, 'x'));
  with_signals([](const SignalSource& signals) {
    const std::string reason = start_failure(signals);
    EXPECT_NE(reason.find("too long"), std::string::npos) << reason;
  });
}

TEST_F(MpsTest, RunGivesItsRanksAPrivateDaemon) {
  const CommandResult result = run_command(run_script(
      2, "[ -S $CUDA_MPS_PIPE_DIRECTORY/control ] && echo $CUDA_MPS_LOG_DIRECTORY", {"--mps=on"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, started_text);
  const Lines lines = sorted_lines(result.output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("[0] " + (root_ / "temporary/iridium-mps-").string()));
  EXPECT_EQ(lines[0].substr(4), lines[1].substr(4));
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, RunStartsNoDaemonUnlessItIsNeeded) {
  for (const Lines& options : {Lines{}, Lines{"--mps=off"}, Lines{"--mps=auto"}}) {
    const CommandResult result =
        run_command(run_script(2, "echo $CUDA_MPS_PIPE_DIRECTORY", options));
    EXPECT_EQ(sorted_lines(result.output), (Lines{"[0] " + inherited(), "[1] " + inherited()}));
    EXPECT_EQ(result.error, "");
  }
  EXPECT_EQ(record(), Lines{});
}

TEST_F(MpsTest, RunStartsADaemonWhenRanksOutnumberGpus) {
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  const int gpus = gpus_of_job("cuda", describe_backends());
  if (gpus == 0) GTEST_SKIP() << "there is no GPU";
  const CommandResult result = run_command(run_script(gpus + 1, "", {"--backend=cuda"}));
  EXPECT_EQ(result.error, "iridium run: " + std::to_string(gpus + 1) + " ranks share " +
                              std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
                              ": started a private MPS daemon\n");
  EXPECT_EQ(run_command(run_script(gpus, "", {"--backend=cuda"})).error, "");
  EXPECT_EQ(record().size(), 2u);
}

TEST_F(MpsTest, RunUsesADaemonThatIsThere) {
  const Descriptor listener = listen_in(inherited());
  const CommandResult result =
      run_command(run_script(1, "echo $CUDA_MPS_PIPE_DIRECTORY", {"--mps=on"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "[0] " + inherited() + "\n");
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(record(), Lines{});
  EXPECT_TRUE(find_inherited_daemon(inherited()));
}

TEST_F(MpsTest, RunUsesNoDaemonOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const Descriptor listener = listen_in(inherited());
  ASSERT_EQ(::chown((inherited() + "/control").c_str(), 3'999'999'999, 0), 0);
  const CommandResult result = run_command(run_script(1, "", {"--mps=on"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "iridium run: the MPS daemon in " + inherited() +
                              " is not used: it belongs to 3999999999\n" + started_text);
  EXPECT_EQ(record(), started_and_quit);
}

TEST_F(MpsTest, RunStartsADaemonInPlaceOfADeadOne) {
  listen_in(inherited()).reset();
  EXPECT_EQ(run_command(run_script(1, "", {"--mps=on"})).error, started_text);
  EXPECT_EQ(record(), started_and_quit);
}

TEST_F(MpsTest, RunGoesOnWithoutADaemonThatCannotBeStarted) {
  const std::string cost =
      "iridium run: ranks that share a GPU without MPS take turns: a barrier costs milliseconds\n";
  set("FAKE_MPS_BEHAVIOUR", "fails");
  const CommandResult failed = run_command(run_script(1, "echo ran", {"--mps=on"}));
  EXPECT_EQ(failed.status, 0);
  EXPECT_EQ(failed.output, "[0] ran\n");
  EXPECT_TRUE(failed.error.starts_with("iridium run: no MPS daemon: ")) << failed.error;
  EXPECT_TRUE(failed.error.ends_with(": there is no device\n" + cost)) << failed.error;

  set("PATH", "/nonexistent");
  const CommandResult missing = run_command(run_script(1, "echo ran", {"--mps=on"}));
  EXPECT_EQ(missing.status, 0);
  EXPECT_EQ(missing.output, "[0] ran\n");
  EXPECT_TRUE(missing.error.ends_with("No such file or directory\n" + cost)) << missing.error;
  EXPECT_TRUE(has_cleaned_up());
}

TEST_F(MpsTest, RunStopsTheDaemonOnlyAfterItsRanks) {
  const std::string script =
      "say() { echo rank $IRIDIUM_RANK $1 >> $FAKE_MPS_RECORD; }\n"
      "[ $IRIDIUM_RANK = 0 ] && { read line; exit 3; }\n"
      "trap 'say asked; sleep 0.2; say ended; exit' TERM; echo ready; sleep 1000 & wait";
  Command command(run_script(2, script, {"--mps=on"}));
  EXPECT_EQ(command.read_line(), "[1] ready");
  command.write_input("fail\n");
  EXPECT_EQ(command.wait().status, 3);
  EXPECT_EQ(record(),
            (Lines{started_and_quit[0], "rank 1 asked", "rank 1 ended", started_and_quit[1]}));
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, RunStopsTheDaemonAfterRanksThatHadToBeKilled) {
  Command command(
      run_script(2, "trap '' TERM; echo ready; sleep 1000", {"--mps=on", "--grace=0.2"}));
  command.read_line();
  command.read_line();
  command.send_signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, RunStopsTheDaemonWhenInterrupted) {
  Command command(run_script(2, "echo ready; exec sleep 1000", {"--mps=on"}));
  command.read_line();
  command.read_line();
  command.send_signal(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_EQ(result.error, started_text);
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, RunStopsTheDaemonWhenTheProgramIsNotFound) {
  const CommandResult result = run_command({"run", "-n", "1", "--mps=on", "no-such-program"});
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(record(), started_and_quit);
  EXPECT_TRUE(has_cleaned_up());
}

TEST_F(MpsTest, RunStartsNoRanksWhenInterruptedWhileTheDaemonStarts) {
  set("FAKE_MPS_BEHAVIOUR", "stays_silent");
  Command command(run_script(1, "echo ran", {"--mps=on"}));
  wait_for_record(1);
  command.send_signal(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_EQ(result.output, "");
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

TEST_F(MpsTest, RunEndsWithASignalThatComesWhileTheDaemonQuits) {
  set("FAKE_MPS_BEHAVIOUR", "ignores_quit");
  Command command(run_script(1, "", {"--mps=on"}));
  wait_for_record(2);
  command.send_signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
  EXPECT_TRUE(has_cleaned_up());
  EXPECT_TRUE(lifeline_.is_cut());
}

}  // namespace
}  // namespace iridium::cli

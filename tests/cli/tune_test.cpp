#include "cli/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "command.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const TunedDevice host = {"host", "Some_CPU"};

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TuneCommand command_for(Words operations) {
  TuneCommand command;
  command.operations = std::move(operations);
  command.ranks = "2,4";
  command.bytes = "4K,64K";
  command.blocks = "1,2";
  return command;
}

/// The settings of the only task.
Words settings_of(const TuneCommand& command, const std::string& table) {
  const std::vector<BenchTask> tasks = plan_tune(command, host, TuningTable(table));
  EXPECT_EQ(tasks.size(), 1u);
  return tasks.at(0).command.settings;
}

TEST(TunePlan, HasATaskPerOperationAndKindOfMemory) {
  const std::vector<BenchTask> tasks = plan_tune(command_for({"all_reduce", "all_to_all"}), host,
                                                 TuningTable(shipped_tuning_table()));
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[0].command.settings[0], "memory=plain");
  EXPECT_EQ(tasks[1].command.settings[0], "memory=symmetric");
  EXPECT_EQ(tasks[3].command.operations, Words{"all_to_all"});
  for (const BenchTask& task : tasks) {
    EXPECT_EQ(task.heats.size(), 2u);
    EXPECT_TRUE(task.command.baselines.empty());
  }
}

TEST(TunePlan, MeasuresWhatTheCurrentTableHasOnce) {
  TuneCommand command = command_for({"all_reduce"});
  command.memory = "plain";
  EXPECT_EQ(settings_of(command, "* * * * * packet 1 2 0"),
            (Words{"memory=plain", "dtype=bf16", "blocks=automatic,2",
                   "algorithm=packet,packet_two_shot,one_shot,two_shot,two_shot_push",
                   "tile=automatic"}));
  command.tile = "1,2,4";
  const std::string mixed = "* * * 2 * packet 1 2 0\n* * * * * ring 2 2 0";
  EXPECT_EQ(settings_of(command, mixed),
            (Words{"memory=plain", "dtype=bf16", "blocks=automatic,1,2",
                   "algorithm=packet,packet_two_shot,one_shot,two_shot,two_shot_push,automatic",
                   "tile=automatic,1,4"}));
  command.algorithm = "ring";
  EXPECT_EQ(settings_of(command, mixed)[3], "algorithm=ring,automatic");
}

TEST(TunePlan, MeasuresWhatTheCurrentTableHasForAnyLinkThatThereMayBe) {
  TuneCommand command = command_for({"all_reduce"});
  command.memory = "plain";
  command.algorithm = "packet";
  const TuningTable table("* * * pcie * * ring 2 1 0\n* * * * * packet 1 1 0");
  const auto settings_on = [&](const TunedDevice& device) {
    return plan_tune(command, device, table).at(0).command.settings;
  };
  EXPECT_EQ(settings_on(host)[3], "algorithm=packet");
  TunedDevice several = host;
  several.links = {Link::shared, Link::pcie};
  EXPECT_EQ(settings_on(several)[2], "blocks=automatic,1,2");
  EXPECT_EQ(settings_on(several)[3], "algorithm=packet,automatic");
}

TEST(TunePlan, TakesAlgorithmsThatSomeOperationHas) {
  TuneCommand command = command_for({"all_gather", "broadcast"});
  command.memory = "plain";
  command.algorithm = "push,packet";
  const std::vector<BenchTask> tasks =
      plan_tune(command, host, TuningTable("* * * * * pull 1 2 0"));
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].command.settings[3], "algorithm=push,packet,automatic");
  EXPECT_EQ(tasks[1].command.settings[3], "algorithm=packet,automatic");
}

/// Quick, and as right as any.
Words quick(Words arguments) {
  arguments.insert(arguments.begin(), "tune");
  arguments.insert(arguments.end(), {"--samples", "7", "--sample-time", "0.2"});
  return arguments;
}

/// What `iridium info --choose` says with the table in the environment.
Json chosen_with(const std::string& table, const Words& what) {
  EXPECT_EQ(::setenv("IRIDIUM_TUNING_TABLE", table.c_str(), 1), 0);
  Words arguments = {"info", "--format", "json", "--choose"};
  arguments.insert(arguments.end(), what.begin(), what.end());
  const CommandResult result = run_command(arguments);
  ::unsetenv("IRIDIUM_TUNING_TABLE");
  EXPECT_EQ(result.status, 0) << result.error;
  return Json::parse(result.output)["choice"];
}

TEST(TuneCommandLine, WritesATableThatDecides) {
  // Tuned is the table in the environment: its rounds show in the new one.
  const std::string current = temporary_path("tune_current.txt");
  std::ofstream(current) << "broadcast * host * * pull 64 4 4096\n";
  const std::string path = temporary_path("tune_table.txt");
  ASSERT_EQ(::setenv("IRIDIUM_TUNING_TABLE", current.c_str(), 1), 0);
  const CommandResult result =
      run_command(quick({"broadcast", "-n", "2", "--bytes", "64K", "--memory", "plain", "--blocks",
                         "1", "--out", path}));
  ::unsetenv("IRIDIUM_TUNING_TABLE");
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NE(result.output.find("broadcast  plain   shared  *        *      pull 64 4"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.error.find(" figures"), std::string::npos) << result.error;

  const std::string text = content_of(path);
  for (const char* part :
       {"# version: iridium 0.", "# machine: ", "# date: 20",
        "# command: iridium tune broadcast -n 2 ", "\nbroadcast    plain   host"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  const Choice choice = TuningTable(text).choose({.operation = "broadcast",
                                                  .symmetric = false,
                                                  .backend = "host",
                                                  .members = 64,
                                                  .bytes = std::size_t{1} << 30});
  const Json told = chosen_with(path, {"broadcast", "-n", "2", "--bytes", "4K"});
  EXPECT_EQ(told["algorithm"], choice.algorithm);
  EXPECT_EQ(told["blocks"], choice.blocks);
  EXPECT_EQ(told["tile"], 4);
  EXPECT_EQ(told["round_bytes"], 4096);
  // What it says nothing about stays with the shipped table.
  EXPECT_EQ(chosen_with(path, {"all_to_all"})["algorithm"], "push");
  EXPECT_EQ(count_files_like(path), 1);
  std::filesystem::remove(path);
  std::filesystem::remove(current);
}

TEST(TunePlan, MeasuresProductsOnOneRank) {
  TuneCommand command = command_for({"all_reduce", "matmul"});
  command.shapes = {"16x24x40,2x3x5"};
  command.layout = "nk,kn";
  command.memory = "plain";
  std::vector<BenchTask> tasks = plan_tune(command, host, TuningTable(shipped_tuning_table()));
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].ranks, std::vector<int>{1});
  EXPECT_EQ(tasks[1].ranks, (std::vector<int>{2, 4}));
  EXPECT_EQ(tasks[0].command.shapes, command.shapes);
  ASSERT_EQ(tasks[0].heats.size(), 4u);
  EXPECT_EQ(tasks[0].heats[0].shape, (MatmulShape{16, 24, 40}));
  EXPECT_EQ(tasks[0].heats[3].layout, "kn");
  EXPECT_EQ(tasks[0].heats[0].entries[0].arguments.at("algorithm"), "automatic");
  EXPECT_GE(tasks[0].heats[0].entries.size(), 3u);
  const auto takes_cublas = [&] {
    return std::ranges::any_of(tasks[0].heats[0].entries, [](const BenchHeat::Entry& entry) {
      return entry.arguments.at("algorithm") == "cublas";
    });
  };
  EXPECT_FALSE(takes_cublas()) << "its bits depend on its version";
  command.algorithm = "cublas";
  tasks = plan_tune(command, host, TuningTable(shipped_tuning_table()));
  EXPECT_TRUE(takes_cublas());
  command.algorithm = "simple";
  tasks = plan_tune(command, host, TuningTable(shipped_tuning_table()));
  EXPECT_EQ(tasks[0].heats[0].entries.size(), 2u) << "automatic besides";
}

TEST(TuneCommandLine, WritesRowsOfProducts) {
  const std::string path = temporary_path("tune_products.txt");
  const CommandResult result =
      run_command(quick({"matmul", "--shape", "4x16x16,64x16x16", "--shape", "8x8x8", "--dtype",
                         "fp32", "--out", path}));
  EXPECT_EQ(result.status, 0) << result.error;
  const std::string text = content_of(path);
  EXPECT_NE(text.find("\nmatmul       fp32   nk      host    8   8   8 "), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nmatmul       fp32   nk      host    64  16  16 "), std::string::npos)
      << text;
  ASSERT_EQ(::setenv("IRIDIUM_TUNING_TABLE", path.c_str(), 1), 0);
  const CommandResult told = run_command(
      {"info", "--choose", "matmul", "--shape", "5x16x16", "--dtype", "fp32", "--format", "json"});
  ::unsetenv("IRIDIUM_TUNING_TABLE");
  EXPECT_EQ(Json::parse(told.output)["choice"]["by"], "row") << told.output;
  std::filesystem::remove(path);
}

TEST(TuneCommandLine, RefusesOptionsOfOperationsThatAreNotAskedFor) {
  for (const Words& words : std::vector<Words>{{"matmul", "-n", "2"},
                                               {"matmul", "--bytes", "4K"},
                                               {"matmul", "--blocks", "1"},
                                               {"broadcast", "--shape", "1x1x1"},
                                               {"broadcast", "--layout", "nk"},
                                               {"matmul", "--shape", "1x1"},
                                               {"matmul", "--layout", "nn"},
                                               {"matmul", "--dtype", "int"},
                                               {"matmul", "--algorithm", "two_shot"}})
    EXPECT_EQ(run_command(quick(words)).status, 2) << words[1];
}

TEST(TuneCommandLine, WritesTheLinkThatItMeasured) {
  ASSERT_EQ(::setenv("IRIDIUM_LINK", "pcie_atomics", 1), 0);
  const CommandResult result = run_command(
      quick({"broadcast", "-n", "2", "--bytes", "4K", "--memory", "plain", "--blocks", "1"}));
  ::unsetenv("IRIDIUM_LINK");
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NE(result.output.find("\nbroadcast    plain   host    pcie  *"), std::string::npos)
      << result.output;
}

TEST(TuneCommandLine, PrintsTheTableWithoutAFile) {
  const CommandResult result =
      run_command(quick({"all_gather", "all_to_all", "-n", "2", "--bytes", "1K,4K", "--blocks", "1",
                         "--algorithm", "pull"}));
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NO_THROW(TuningTable{result.output}) << result.output;
  for (const char* part : {"\nall_gather   plain", "\nall_gather   symmetric",
                           "\nall_to_all   plain", "\nall_to_all   symmetric"})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << " in\n" << result.output;
  EXPECT_NE(result.error.find("before"), std::string::npos) << result.error;
}

TEST(TuneCommandLine, WritesNothingWhenItIsInterrupted) {
  const std::string path = temporary_path("tune_interrupted.txt");
  Command command(
      {"tune", "broadcast", "-n", "2", "--sample-time", "300", "--grace", "0.2", "--out", path});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  command.send_signal(SIGTERM);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.status, 128 + SIGTERM);
  EXPECT_NE(result.error.find("interrupted; no table is written"), std::string::npos)
      << result.error;
  EXPECT_EQ(count_files_like(path), 0);
}

TEST(TuneCommandLine, SaysWhenNothingCouldBeMeasured) {
  ASSERT_EQ(::setenv("IRIDIUM_HEAP_BYTES", "1M", 1), 0);
  const std::string path = temporary_path("tune_no_room.txt");
  const CommandResult result =
      run_command(quick({"broadcast", "-n", "2", "--bytes", "64M", "--out", path}));
  ::unsetenv("IRIDIUM_HEAP_BYTES");
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.error.find("no case has a figure; no table is written"), std::string::npos)
      << result.error;
  EXPECT_FALSE(std::filesystem::exists(path));
}

struct BadTune {
  Words arguments;
  std::string reason;  // has to be part of what is said
};

class TuneRefuses : public testing::TestWithParam<BadTune> {};

TEST_P(TuneRefuses, BadInputBeforeItMeasures) {
  Words arguments = GetParam().arguments;
  arguments.insert(arguments.begin(), "tune");
  const CommandResult result = run_command(arguments);
  EXPECT_NE(result.status, 0);
  EXPECT_EQ(result.output, "");
  EXPECT_NE(result.error.find(GetParam().reason), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find(" figures"), std::string::npos) << "progress: " << result.error;
}

INSTANTIATE_TEST_SUITE_P(
    , TuneRefuses,
    testing::Values(
        BadTune{{"all_redcue"}, "there is no operation 'all_redcue'; did you mean all_reduce"},
        BadTune{{"xyzzy"}, "there are all_gather, all_reduce"},
        BadTune{{"device_barrier"},
                "has nothing to decide for device_barrier; it knows all_gather"},
        BadTune{{"broadcast", "broadcast"}, "broadcast stands twice"},
        BadTune{{"-n", "0"}, "'0' is not a number from 2 to"},
        BadTune{{"-n", "2,1"}, "'1' is not a number from 2 to"},
        BadTune{{"-n", "2,2"}, "2 stands twice"}, BadTune{{"-n", "two"}, "'two' is not a number"},
        BadTune{{"--bytes", "64K:4K"}, "ends before it begins"},
        BadTune{{"--bytes", "many"}, "is not a size"}, BadTune{{"--bytes", "6"}, "multiple"},
        BadTune{{"--memory", "paper"}, "there is no memory 'paper'"},
        BadTune{{"--memory", "plain,plain"}, "plain stands twice"},
        BadTune{{"--memory", "plain,"}, "--memory is 'plain,'"},
        BadTune{{"--dtype", "float"}, "float"},
        BadTune{{"--algorithm", "pakcet"}, "there is no algorithm 'pakcet'; did you mean packet"},
        BadTune{{"broadcast", "--algorithm", "ring"}, "there is no algorithm 'ring'"},
        BadTune{{"--algorithm", "automatic"}, "there is no algorithm 'automatic'"},
        BadTune{{"--blocks", "0"}, "'0' is not a number from 1 to 1024"},
        BadTune{{"--blocks", "8,8"}, "8 stands twice"},
        BadTune{{"--tile", "3"}, "a tile is 1, 2 or 4 vectors"},
        BadTune{{"--tile", "8"}, "'8' is not a number from 1 to 4"},
        BadTune{{"all_to_all", "--tile", "2"}, "none of the operations has a choice of tiles"},
        BadTune{{"--samples", "3"}, "--samples"}, BadTune{{"--backend", "abacus"}, "abacus"},
        BadTune{{"--out", "/nowhere/table.txt"}, "cannot write to /nowhere/table.txt"},
        BadTune{{"--out", "/dev/null"}, "cannot write to /dev/null: it is no file"}));

}  // namespace
}  // namespace iridium::cli

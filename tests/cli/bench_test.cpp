#include "cli/bench.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/bench_machine.h"
#include "cli/progress.h"
#include "command.h"
#include "iridium/bootstrap.h"
#include "iridium/device_barrier.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// Quick, and as right as any.
Words quick(Words arguments) {
  arguments.insert(arguments.end(), {"--samples", "7", "--sample-time", "0.2"});
  return arguments;
}

/// Runs the heat on three ranks, which are threads; rank 0's figures.
std::vector<BenchFigure> run_planted(const std::vector<Operation>& planted) {
  BenchHeat heat = {.operation = "planted"};
  for (const Operation& operation : planted) heat.entries.push_back({"iridium", &operation, {}});
  BenchCommand command;
  command.samples = 7;
  command.sample_milliseconds = 0.2;
  std::vector<BenchFigure> figures;
  const ContextOptions options = {.backend = BackendKind::host,
                                  .heap_bytes = std::size_t{128} << 20,
                                  .timeout = std::chrono::milliseconds(1500)};
  spawn(3, options, [&](Context& context) {
    Stream stream = context.make_stream();
    std::vector<BenchFigure> mine = run_heat(context, stream, heat, 0, command);
    if (context.rank() == 0) figures = std::move(mine);
    // The run goes on.
    context.barrier();
  });
  return figures;
}

/// A barrier, and what a derived one does wrong.
class PlantedCase : public OperationCase {
 public:
  explicit PlantedCase(const Team& team) : team_(team) {}
  void set_inputs(std::uint64_t) override {}
  void launch(StreamRef& stream) override { device_barrier(stream, team_); }
  std::string check(std::uint64_t) override { return {}; }
  std::size_t bytes() const override { return 0; }

 protected:
  Team team_;
};

template <class Case>
Operation planted() {
  Operation operation;
  operation.name = "planted";
  operation.prepare = [](Context&, const Team& team, const Arguments&) {
    return std::make_unique<Case>(team);
  };
  return operation;
}

TEST(BenchHeats, HaveTwoFiguresPerContender) {
  const std::vector<BenchFigure> figures = run_planted({planted<PlantedCase>()});
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].mode, "graph");
  EXPECT_EQ(figures[1].mode, "eager");
  for (const BenchFigure& figure : figures) {
    EXPECT_TRUE(figure.has_numbers()) << figure.failed;
    EXPECT_EQ(figure.ranks, 3);
    EXPECT_EQ(figure.samples, 7u);
    EXPECT_GT(figure.p10_us, 0);
    EXPECT_LE(figure.p10_us, figure.median_us);
    EXPECT_LE(figure.median_us, figure.p90_us);
  }
}

class WrongCase final : public PlantedCase {
 public:
  using PlantedCase::PlantedCase;
  std::string check(std::uint64_t) override {
    return team_.rank() == 1 ? "element 3 is 5, not 7" : "";
  }
};
TEST(BenchHeats, HaveNoNumberForAWrongResult) {
  const std::vector<BenchFigure> figures = run_planted({planted<WrongCase>()});
  ASSERT_EQ(figures.size(), 2u);
  for (const BenchFigure& figure : figures) {
    EXPECT_NE(figure.failed.find("wrong_result at eager call: element 3 is 5, not 7"),
              std::string::npos)
        << figure.failed;
    EXPECT_EQ(figure.median_us, 0);
  }
}

/// Right as long as nobody measures.
class SpoiledCase final : public PlantedCase {
 public:
  using PlantedCase::PlantedCase;
  void launch_alone(StreamRef& stream) override {
    spoiled_ = true;
    PlantedCase::launch(stream);
  }
  std::string check(std::uint64_t) override { return spoiled_ ? "spoiled" : ""; }

 private:
  bool spoiled_ = false;
};
TEST(BenchHeats, AreCheckedAfterTheMeasurementToo) {
  const std::vector<BenchFigure> figures = run_planted({planted<SpoiledCase>()});
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_NE(figures[0].failed.find("wrong result after the measurement: spoiled"),
            std::string::npos)
      << figures[0].failed;
}

/// One rank stays away once it is measured.
class HangingCase final : public PlantedCase {
 public:
  using PlantedCase::PlantedCase;
  void launch_alone(StreamRef& stream) override {
    if (team_.rank() != 2) PlantedCase::launch(stream);
  }
};
TEST(BenchHeats, EndInTimeWhenARankHangs) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<BenchFigure> figures = run_planted({planted<HangingCase>()});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_NE(figures[0].failed.find("timeout"), std::string::npos) << figures[0].failed;
  EXPECT_NE(figures[0].failed.find("rank 2"), std::string::npos) << figures[0].failed;
}

/// Needs what cannot be had.
template <Errc code>
class RefusedCase final : public PlantedCase {
 public:
  explicit RefusedCase(const Team& team) : PlantedCase(team) { throw Error(code, "not here"); }
};
TEST(BenchHeats, SkipWhatCannotBeHadHere) {
  const std::vector<BenchFigure> figures = run_planted(
      {planted<RefusedCase<Errc::out_of_memory>>(), planted<RefusedCase<Errc::unsupported>>(),
       planted<RefusedCase<Errc::invalid_argument>>(), planted<PlantedCase>()});
  ASSERT_EQ(figures.size(), 8u);
  EXPECT_EQ(figures[0].skipped, "out_of_memory: not here");
  EXPECT_EQ(figures[3].skipped, "unsupported: not here");
  EXPECT_EQ(figures[4].skipped, "");
  EXPECT_EQ(figures[4].failed, "invalid_argument: not here");
  EXPECT_TRUE(figures[6].has_numbers()) << figures[6].failed;
}

TEST(BenchMachines, AreSharedByTheirRanks) {
  EXPECT_GT(memory_for_rank("host", 1), std::size_t{64} << 20);
  EXPECT_EQ(memory_for_rank("host", 8), memory_for_rank("host", 1) / 8);
  EXPECT_LE(memory_for_rank("", 1), memory_for_rank("no such backend", 1));
}

TEST(BenchMachines, AreNamedByTheGpusThatWereUsedAndTheirLink) {
  const auto name_of = [](int ranks, int visible, Link link) {
    return machine_name("NVIDIA H200", use_of_gpus(ranks, visible, link));
  };
  EXPECT_EQ(name_of(8, 1, Link::shared), "h200x1-shared");
  EXPECT_EQ(name_of(8, 1, Link::apart), "h200x1-apart");
  EXPECT_EQ(name_of(8, 8, Link::nvlink), "h200x8-nvlink");
  EXPECT_EQ(name_of(4, 8, Link::pcie), "h200x4-pcie");
  EXPECT_EQ(name_of(8, 2, Link::pcie_atomics), "h200x2-pcie_atomics");
  EXPECT_EQ(name_of(4, 8, Link::shared), "h200x1-shared") << "all have named the same one";
  EXPECT_EQ(name_of(2, 1, Link::nvlink), "h200x1-nvlink") << "as IRIDIUM_LINK makes it seem";
}

TEST(BenchCommandLine, SkipsSizesThatDoNotFitTheHeap) {
  ASSERT_EQ(::setenv("IRIDIUM_HEAP_BYTES", "128M", 1), 0);
  const CommandResult result = run_command(quick(
      {"bench", "put", "-n", "2", "--bytes", "4K,256M", "--no-baseline", "--format", "json"}));
  ::unsetenv("IRIDIUM_HEAP_BYTES");
  EXPECT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_TRUE(json["complete"]);
  ASSERT_EQ(json["figures"].size(), 4u);
  EXPECT_TRUE(json["figures"][1].contains("median_us"));
  for (const std::size_t large : {2u, 3u})
    EXPECT_NE(
        json["figures"][large]["skipped"].get<std::string>().find("requested 268435456 bytes"),
        std::string::npos)
        << result.output;
}

TEST(BenchCommandLine, FailsWhereNothingCouldBeMeasured) {
  ASSERT_EQ(::setenv("IRIDIUM_HEAP_BYTES", "128M", 1), 0);
  const CommandResult result =
      run_command(quick({"bench", "put", "-n", "2", "--bytes", "256M", "--no-baseline"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("requested 268435456 bytes"), std::string::npos) << result.output;
  EXPECT_NE(result.error.find("nothing was measured"), std::string::npos) << result.error;

  ASSERT_EQ(::setenv("IRIDIUM_HEAP_BYTES", "much", 1), 0);
  const CommandResult unstarted = run_command(quick({"bench", "put", "-n", "1,2"}));
  ::unsetenv("IRIDIUM_HEAP_BYTES");
  EXPECT_EQ(unstarted.status, 1);
  EXPECT_EQ(unstarted.output, "") << "a table of failures";
  EXPECT_NE(unstarted.error.find("[0] iridium: "), std::string::npos) << unstarted.error;
  EXPECT_EQ(unstarted.error.find("[1] iridium: "), std::string::npos) << unstarted.error;
  EXPECT_NE(unstarted.error.find("no rank could make a context; nothing was measured"),
            std::string::npos)
      << unstarted.error;
}

TEST(BenchCommandLine, MeasuresOnOneAndThreeRanks) {
  const std::string path = temporary_path("bench_figures.json");
  const CommandResult result = run_command(
      quick({"bench", "put", "device_barrier", "-n", "1,3", "--bytes", "1K,4K", "--out", path}));
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NE(result.output.find("device_barrier"), std::string::npos) << result.output;
  const BenchRun run = read_run(path);
  EXPECT_TRUE(run.complete);
  EXPECT_TRUE(run.command.starts_with("bench put device_barrier -n 1,3 --bytes 1K,4K"));
  EXPECT_EQ(run.command.find("--out"), std::string::npos) << run.command;
  EXPECT_EQ(run.command.find(path), std::string::npos) << run.command;
  EXPECT_EQ(run.machine.device, "");
  EXPECT_GT(run.machine.cores, 0);
  // Two sizes with three contenders, and the barrier; both modes, both numbers of ranks.
  EXPECT_EQ(run.figures.size(), (2u * 3 + 1) * 2 * 2);
  for (const BenchFigure& figure : run.figures) {
    EXPECT_TRUE(figure.has_numbers()) << figure.failed;
    EXPECT_EQ(figure.copy_share > 0, figure.bytes > 0);
  }
  EXPECT_NE(result.error.find("28 of 28 figures\n"), std::string::npos) << result.error;

  const CommandResult same = run_command({"bench", "--compare", path, path});
  EXPECT_EQ(same.status, 0) << same.output;
  std::filesystem::remove(path);
}

TEST(BenchCommandLine, MeasuresProductsOfTheShapesGiven) {
  const CommandResult result = run_command(
      quick({"bench", "matmul", "-n", "2", "--shape", "5x7x9,16x24x8", "--shape", "3x2x1",
             "--layout", "kn", "--dtype", "fp16", "--algorithm", "simple", "--format", "json"}));
  EXPECT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_TRUE(json["complete"]);
  ASSERT_EQ(json["figures"].size(), 6u);
  std::vector<std::string> shapes;
  for (const Json& figure : json["figures"]) {
    ASSERT_TRUE(figure.contains("median_us")) << figure;
    EXPECT_EQ(figure["layout"], "kn");
    EXPECT_EQ(figure["dtype"], "fp16");
    EXPECT_EQ(figure["algorithm"], "simple");
    EXPECT_EQ(figure["bytes"], 0);
    EXPECT_EQ(figure["algorithm_gbps"], 0);
    const double work =
        2.0 * figure["m"].get<double>() * figure["n"].get<double>() * figure["k"].get<double>();
    EXPECT_NEAR(figure["tflops"].get<double>(), work / figure["median_us"].get<double>() / 1e6,
                1e-9);
    shapes.push_back(figure["m"].dump() + "x" + figure["n"].dump() + "x" + figure["k"].dump());
  }
  EXPECT_EQ(shapes, (Words{"5x7x9", "5x7x9", "16x24x8", "16x24x8", "3x2x1", "3x2x1"}));
}

TEST(BenchCommandLine, MeasuresTheDefaultShapesOfProducts) {
  const CommandResult result = run_command(
      quick({"bench", "matmul", "-n", "1", "--algorithm", "automatic", "--format", "csv"}));
  EXPECT_EQ(result.status, 0) << result.error;
  for (const char* shape : {",1,512,512,nk,", ",16,512,512,nk,", ",128,256,512,nk,"})
    EXPECT_NE(result.output.find(shape), std::string::npos) << result.output;
}

TEST(BenchCommandLine, ShowsAnExampleToWhomGivesNoShape) {
  const CommandResult result = run_command({"bench", "matmul", "-n", "1", "--shape", "4096x3584"});
  EXPECT_EQ(result.status, 2) << result.error;
  EXPECT_NE(result.error.find("shape is '4096x3584': expected MxNxK, such as 4096x3584x8192"),
            std::string::npos)
      << result.error;
}

TEST(BenchCommandLine, PrintsJsonAndCsv) {
  const CommandResult json =
      run_command(quick({"bench", "signal_all", "-n", "2", "--format", "json"}));
  EXPECT_EQ(json.status, 0) << json.error;
  EXPECT_EQ(Json::parse(json.output)["figures"].size(), 2u);
  const CommandResult csv = run_command(
      quick({"bench", "get", "-n", "2", "--bytes", "4K", "--format", "csv", "--no-baseline"}));
  EXPECT_EQ(csv.status, 0) << csv.error;
  EXPECT_EQ(std::ranges::count(csv.output, '\n'), 3);
}

TEST(BenchCommandLine, MeasuresBlockCounts) {
  const CommandResult result = run_command(
      quick({"bench", "put", "-n", "1", "--bytes", "1M", "--bytes", "64K", "--blocks", "1,2",
             "--algorithm", "all", "--baseline", "copy_kernel", "--format", "json"}));
  EXPECT_EQ(result.status, 0) << result.error;
  std::vector<std::pair<std::string, int>> seen;
  const Json json = Json::parse(result.output);
  for (const Json& figure : json["figures"]) {
    EXPECT_EQ(figure["bytes"], 64 << 10);
    if (figure["mode"] == "graph") seen.emplace_back(figure["contender"], figure["blocks"]);
  }
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, int>>{
                      {"iridium", 0}, {"copy_kernel", 1}, {"copy_kernel", 2}}));
}

TEST(BenchCommandLine, SkipsGridsThatTheLaneHasNoRoomFor) {
  const CommandResult result =
      run_command(quick({"bench", "broadcast", "-n", "2", "--bytes", "4K", "--blocks", "64,65",
                         "--algorithm", "pull", "--no-baseline", "--format", "json"}));
  EXPECT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  ASSERT_EQ(json["figures"].size(), 4u);
  EXPECT_TRUE(json["figures"][0].contains("median_us"));
  EXPECT_EQ(json["figures"][2]["skipped"], "unsupported: 65 blocks; the team's lane has 64");
}

TEST(BenchCommandLine, TakesSettingsBesideOptionsOfTheirOwn) {
  const CommandResult result = run_command(
      quick({"bench", "put", "-n", "4", "-n", "1", "--bytes", "4K", "--blocks", "1,2", "--set",
             "algorithm=all", "--baseline", "copy_kernel", "--format", "csv"}));
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 1 + 2 * 3) << result.output;
}

TEST(BenchCommandLine, RefusesBadInput) {
  const auto expect_refused = [](const Words& arguments, const std::string& reason) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.status, 2) << reason;
    EXPECT_NE(result.error.find(reason), std::string::npos) << result.error;
  };
  expect_refused({"bench", "-n", "2"}, "no operation is given; there are ");
  expect_refused({"bench", "put"}, "-n 4, or -n 2,4,8");
  expect_refused({"bench", "putt", "-n", "2"}, "there is no operation 'putt'; did you mean put");
  expect_refused({"bench", "xyzzy", "-n", "2"}, "device_barrier, get");
  expect_refused({"bench", "put", "-n", "0"}, "'0' is not a number from 1 to");
  expect_refused({"bench", "put", "-n", "2", "--bytes", "64K:4K"}, "ends before it begins");
  expect_refused({"bench", "put", "-n", "2", "--bytes", ""}, "is not a size");
  expect_refused({"bench", "put", "-n", "2", "--bytes", "6"}, "6 is not a multiple of 4 bytes");
  expect_refused({"bench", "put", "-n", "2", "--bytes", "4K,2T"},
                 "'4K,2T': 2 TiB is over the limit of 64 GiB");
  expect_refused({"bench", "put", "-n", "2", "--baseline", "copy"}, "there is no baseline 'copy'");
  expect_refused({"bench", "put", "-n", "2", "--samples", "3"}, "--samples");
  expect_refused({"bench", "put", "-n", "2", "--dtype", "float"},
                 "--set dtype: none of the operations has such a parameter");
  expect_refused({"bench", "all_reduce", "-n", "2", "--dtype", "float"}, "'float'");
  expect_refused({"bench", "all_reduce", "-n", "2", "--op", "sun"}, "'sun'");
  expect_refused({"bench", "all_reduce", "-n", "2", "--memory", "plane"},
                 "there is no memory 'plane'; did you mean plain?");
  expect_refused({"bench", "all_reduce", "put", "-n", "2", "--algorithm", "ring,rnig"},
                 "there is no algorithm 'rnig'; did you mean ring?");
  const CommandResult unwritable =
      run_command({"bench", "put", "-n", "2", "--out", "/nowhere/f.json"});
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_NE(unwritable.error.find("cannot write to /nowhere/f.json"), std::string::npos)
      << unwritable.error;
}

TEST(BenchCommandLine, KeepsWhatWasMeasuredWhenItIsInterrupted) {
  const std::string path = temporary_path("bench_interrupted.json");
  Command command({"bench", "signal_all", "-n", "1,2", "--sample-time", "300", "--out", path});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  command.send_signal(SIGTERM);
  EXPECT_EQ(command.wait().status, 128 + SIGTERM);
  EXPECT_FALSE(read_run(path).complete);
  EXPECT_EQ(count_files_like(path), 1);
  std::filesystem::remove(path);
}

TEST(BenchCommandLine, WritesNothingOverWhatIsNoFile) {
  const CommandResult result =
      run_command({"bench", "signal_all", "-n", "1", "--out", "/dev/null"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.error.find("cannot write to /dev/null: it is no file"), std::string::npos)
      << result.error;
}

BenchRun run_of_one_figure() {
  BenchRun run;
  run.complete = true;
  BenchFigure figure;
  figure.operation = "put";
  figure.ranks = 2;
  figure.samples = figure.calls = 7;
  figure.median_us = figure.p10_us = figure.p90_us = 1;
  run.figures = {figure};
  return run;
}

TEST(BenchCommandLine, ComparesNothingUnderOtherConditions) {
  BenchRun run = run_of_one_figure();
  const std::string before = temporary_path("bench_before.json");
  const std::string after = temporary_path("bench_after.json");
  std::ofstream(before) << as_json(run);
  run.figures[0].link = Link::apart;
  run.figures[0].beside_compute = true;
  std::ofstream(after) << as_json(run);
  const CommandResult result = run_command({"bench", "--compare", before, after});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("put, 2 ranks, apart, beside compute, graph"), std::string::npos)
      << result.output;
  EXPECT_NE(result.error.find("no figure in common"), std::string::npos) << result.error;
  std::filesystem::remove(before);
  std::filesystem::remove(after);
}

TEST(BenchCommandLine, CountsWhatIsMissingAsWorse) {
  BenchRun run = run_of_one_figure();
  const std::string before = temporary_path("bench_before.json");
  const std::string after = temporary_path("bench_after.json");
  std::ofstream(before) << as_json(run);
  run.figures = {};
  std::ofstream(after) << as_json(run);
  const CommandResult result = run_command({"bench", "--compare", before, after});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("\nworse: 1 missing after\n"), std::string::npos) << result.output;
  EXPECT_EQ(run_command({"bench", "--compare", after, before}).status, 0);
  std::filesystem::remove(before);
  std::filesystem::remove(after);
}

TEST(BenchCommandLine, RefusesFilesItCannotCompare) {
  const std::string path = temporary_path("bench_cut.json");
  std::ofstream(path) << "{\"schema\": 1, ";
  const CommandResult result = run_command({"bench", "--compare", path, path});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.error.find(path + " is cut off"), std::string::npos) << result.error;
  std::filesystem::remove(path);
  EXPECT_EQ(run_command({"bench", "--compare", path, path}).status, 2);

  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const CommandResult endless = run_command({"bench", "--compare", path, path});
  EXPECT_EQ(endless.status, 2);
  EXPECT_NE(endless.error.find("cannot open " + path + ": it is no file"), std::string::npos)
      << endless.error;
  std::filesystem::remove(path);
}

TEST(Progress, SaysWhatIsLeft) {
  using Seconds = std::chrono::duration<double>;
  EXPECT_EQ(progress_text("figures", 0, 4, Seconds(0)), "0 of 4 figures");
  EXPECT_EQ(progress_text("figures", 1, 4, Seconds(10)), "1 of 4 figures, about 30 s left");
  EXPECT_EQ(progress_text("figures", 1, 100, Seconds(10)), "1 of 100 figures, about 16 min left");
  EXPECT_EQ(progress_text("figures", 4, 4, Seconds(10)), "4 of 4 figures");
}

}  // namespace
}  // namespace iridium::cli

#include "cli/bench_results.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::ordered_json;

BenchFigure measured_figure() {
  BenchFigure figure;
  figure.operation = "all_reduce";
  figure.algorithm = "two_shot";
  figure.dtype = "bf16";
  figure.op = "max";
  figure.memory = "symmetric";
  figure.mode = "eager";
  figure.ranks = 4;
  figure.bytes = 4096;
  figure.blocks = 16;
  figure.rows = 5;
  figure.tile = 2;
  figure.link = Link::pcie_atomics;
  figure.beside_compute = true;
  figure.samples = 15;
  figure.calls = 100;
  figure.median_us = 1.0 / 3;
  figure.p10_us = 0.25;
  figure.p90_us = 0.5;
  figure.algorithm_gbps = 12.288;
  figure.bus_gbps = 18.432;
  figure.copy_share = 0.875;
  return figure;
}

BenchFigure barrier_figure() {
  BenchFigure figure;
  figure.operation = "barrier";
  figure.ranks = 2;
  figure.samples = 9;
  figure.calls = 10;
  figure.median_us = 2.5;
  figure.p10_us = 2.25;
  figure.p90_us = 3;
  return figure;
}

BenchFigure product_figure() {
  BenchFigure figure = barrier_figure();
  figure.operation = "matmul";
  figure.algorithm = "simple";
  figure.dtype = "bf16";
  figure.shape = {16, 264, 1000};
  figure.chosen = "narrow";
  figure.layout = "nk";
  figure.tflops = 3.375;
  return figure;
}

BenchFigure skipped_figure() {
  BenchFigure figure;
  figure.operation = "all_reduce";
  figure.contender = "torch";
  figure.ranks = 4;
  figure.bytes = 1536;
  figure.skipped = "torch is not installed";
  return figure;
}

BenchFigure failed_figure() {
  BenchFigure figure;
  figure.operation = "all_gather";
  figure.ranks = 4;
  figure.bytes = std::size_t{3} << 30;
  figure.failed = "element 3 is 5,\nnot \"7\"";
  return figure;
}

BenchRun run_of(std::vector<BenchFigure> figures) {
  BenchRun run;
  run.version = "1.2.3";
  run.commit = "0123abc";
  run.command = "iridium bench all_reduce -n 4";
  run.machine = {"h200", "Xeon 8480", 16, "NVIDIA H200", "550.54"};
  run.versions["torch"] = {{"torch", "2.9.0"}, {"cuda", "12.8"}};
  run.complete = true;
  run.figures = std::move(figures);
  return run;
}

BenchRun whole_run() {
  return run_of({measured_figure(), barrier_figure(), skipped_figure(), failed_figure()});
}

/// What is wrong with the text, as a file "f.json".
std::string refusal_of(const std::string& text) {
  try {
    run_from_json(text, "f.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "none";
}

/// What is wrong with a file of one measured figure after `change`.
template <typename Change>
std::string refusal_after(Change change) {
  Json json = Json::parse(as_json(run_of({measured_figure()})));
  change(json);
  return refusal_of(json.dump());
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("iridium-bench-results-" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void expect_same(const BenchFigure& left, const BenchFigure& right) {
  EXPECT_EQ(left.operation, right.operation);
  EXPECT_EQ(left.contender, right.contender);
  EXPECT_EQ(left.algorithm, right.algorithm);
  EXPECT_EQ(left.dtype, right.dtype);
  EXPECT_EQ(left.op, right.op);
  EXPECT_EQ(left.memory, right.memory);
  EXPECT_EQ(left.mode, right.mode);
  EXPECT_EQ(left.ranks, right.ranks);
  EXPECT_EQ(left.bytes, right.bytes);
  EXPECT_EQ(left.shape, right.shape);
  EXPECT_EQ(left.layout, right.layout);
  EXPECT_EQ(left.chosen, right.chosen);
  EXPECT_EQ(left.blocks, right.blocks);
  EXPECT_EQ(left.rows, right.rows);
  EXPECT_EQ(left.tile, right.tile);
  EXPECT_EQ(left.link, right.link);
  EXPECT_EQ(left.beside_compute, right.beside_compute);
  EXPECT_EQ(left.skipped, right.skipped);
  EXPECT_EQ(left.failed, right.failed);
  EXPECT_EQ(left.samples, right.samples);
  EXPECT_EQ(left.calls, right.calls);
  EXPECT_EQ(left.median_us, right.median_us);
  EXPECT_EQ(left.p10_us, right.p10_us);
  EXPECT_EQ(left.p90_us, right.p90_us);
  EXPECT_EQ(left.algorithm_gbps, right.algorithm_gbps);
  EXPECT_EQ(left.bus_gbps, right.bus_gbps);
  EXPECT_EQ(left.copy_share, right.copy_share);
  EXPECT_EQ(left.tflops, right.tflops);
}

TEST(BenchFiles, GiveBackWhatWasWritten) {
  BenchRun run = whole_run();
  run.figures.push_back(product_figure());
  run.complete = false;
  const BenchRun read = run_from_json(as_json(run), "f.json");
  EXPECT_EQ(read.version, run.version);
  EXPECT_EQ(read.commit, run.commit);
  EXPECT_EQ(read.command, run.command);
  EXPECT_EQ(read.machine.name, run.machine.name);
  EXPECT_EQ(read.machine.cpu, run.machine.cpu);
  EXPECT_EQ(read.machine.cores, run.machine.cores);
  EXPECT_EQ(read.machine.device, run.machine.device);
  EXPECT_EQ(read.machine.driver, run.machine.driver);
  EXPECT_EQ(read.versions, run.versions);
  EXPECT_FALSE(read.complete);
  ASSERT_EQ(read.figures.size(), run.figures.size());
  for (std::size_t i = 0; i < read.figures.size(); ++i)
    expect_same(read.figures[i], run.figures[i]);
  EXPECT_EQ(as_json(read), as_json(run));
  EXPECT_TRUE(run_from_json(as_json(run_of({})), "f.json").complete);
}

TEST(BenchFiles, HoldTheFieldsOfTheManual) {
  const Json json = Json::parse(as_json(whole_run()));
  const auto fields = [](const Json& object) {
    std::string text;
    for (const auto& [name, value] : object.items()) text += name + " ";
    return text;
  };
  EXPECT_EQ(fields(json), "schema kind version commit command machine versions complete figures ");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["kind"], "iridium bench");
  EXPECT_EQ(fields(json["machine"]), "name cpu cores device driver ");
  EXPECT_EQ(json["versions"], (Json{{"torch", {{"cuda", "12.8"}, {"torch", "2.9.0"}}}}));
  const std::string identity = "operation contender algorithm dtype mode ranks bytes blocks ";
  const std::string numbers =
      "samples calls median_us p10_us p90_us algorithm_gbps bus_gbps copy_share ";
  EXPECT_EQ(fields(json["figures"][0]),
            "operation contender algorithm dtype op memory mode ranks bytes blocks rows tile link "
            "beside_compute " +
                numbers);
  EXPECT_EQ(json["figures"][0]["link"], "pcie_atomics");
  EXPECT_EQ(json["figures"][0]["beside_compute"], true);
  EXPECT_EQ(fields(json["figures"][1]), identity + numbers);
  EXPECT_EQ(fields(json["figures"][2]), identity + "skipped ");
  EXPECT_EQ(fields(json["figures"][3]), identity + "failed ");
  const Json product = Json::parse(as_line(product_figure()));
  EXPECT_EQ(fields(product), identity + "chosen m n k layout " + numbers + "tflops ");
  EXPECT_EQ(product["m"], 16);
  EXPECT_EQ(product["n"], 264);
  EXPECT_EQ(product["k"], 1000);
}

TEST(BenchFiles, HaveOneFigurePerLine) {
  const BenchRun run = whole_run();
  std::istringstream lines(as_json(run));
  std::vector<std::string> figures;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("    {")) figures.push_back(line.substr(4));
  ASSERT_EQ(figures.size(), run.figures.size());
  for (std::size_t i = 0; i < figures.size(); ++i)
    EXPECT_EQ(figures[i], as_line(run.figures[i]) + (i + 1 < figures.size() ? "," : ""));
}

TEST(BenchFiles, AreWrittenWhateverBytesAReasonHas) {
  BenchFigure figure = failed_figure();
  figure.failed = "\xff";
  EXPECT_FALSE(run_from_json(as_json(run_of({figure})), "f.json").figures[0].failed.empty());
}

TEST(BenchFiles, MayHaveFieldsThatAreNotKnown) {
  EXPECT_EQ(refusal_after([](Json& json) { json["figures"][0]["more"] = 1; }), "none");
  EXPECT_EQ(refusal_after([](Json& json) { json["figures"][0]["skipped"] = ""; }), "none");
}

TEST(BenchFiles, MayLackWhatOlderOnesDidNotHave) {
  EXPECT_EQ(refusal_after([](Json& json) {
              json.erase("versions");
              json["figures"][0].erase("op");
              json["figures"][0].erase("memory");
              json["figures"][0].erase("rows");
              json["figures"][0].erase("tile");
              json["figures"][0].erase("link");
              json["figures"][0].erase("beside_compute");
            }),
            "none");
}

TEST(BenchFiles, AreRefusedWhereverTheyAreCutOff) {
  const std::string text = as_json(whole_run());
  EXPECT_EQ(refusal_of(""), "invalid_argument: f.json is empty");
  for (std::size_t bytes = 1; bytes < text.size() - 1; ++bytes)
    ASSERT_EQ(refusal_of(text.substr(0, bytes)), "invalid_argument: f.json is cut off") << bytes;
}

TEST(BenchFiles, AreRefusedWhenTheyAreNotJson) {
  EXPECT_EQ(refusal_of("operation,contender\n"),
            "invalid_argument: f.json is not JSON: it cannot be read from byte 1 on");
  EXPECT_EQ(refusal_of("{\"kind\": 1}\n{}"),
            "invalid_argument: f.json is not JSON: it cannot be read from byte 13 on");
  EXPECT_EQ(refusal_of("[1e999]"),
            "invalid_argument: f.json cannot be read: it has a number that is too large");
}

TEST(BenchFiles, AreRefusedWhenTheyHoldSomethingElse) {
  const std::string refusal = "invalid_argument: f.json is not a file of figures of iridium bench";
  EXPECT_EQ(refusal_of("[]"), refusal);
  EXPECT_EQ(refusal_of("{\"schema\": 1}"), refusal);
  EXPECT_EQ(refusal_of("{\"kind\": \"sizes\"}"), refusal + ": its kind is \"sizes\"");
  EXPECT_EQ(refusal_of("{\"kind\": [1]}"), refusal + ": its kind is array");
}

TEST(BenchFiles, AreRefusedWhenTheirSchemaIsAnother) {
  EXPECT_EQ(refusal_after([](Json& json) { json["schema"] = 2; }),
            "invalid_argument: f.json has schema 2; this build reads 1");
  EXPECT_EQ(refusal_after([](Json& json) { json["schema"] = "1"; }),
            "invalid_argument: f.json has schema \"1\"; this build reads 1");
  EXPECT_EQ(refusal_after([](Json& json) { json.erase("schema"); }),
            "invalid_argument: f.json has no field 'schema'");
}

TEST(BenchFiles, AreRefusedWithoutAField) {
  const Json whole = Json::parse(as_json(run_of({measured_figure()})));
  const auto refusal_without = [&](const Json::json_pointer& object, const std::string& field) {
    Json json = whole;
    json[object].erase(field);
    return refusal_of(json.dump());
  };
  for (const char* field : {"version", "commit", "command", "machine", "complete", "figures"})
    EXPECT_EQ(refusal_without(Json::json_pointer(""), field),
              std::string("invalid_argument: f.json has no field '") + field + "'");
  for (const auto& [field, value] : whole["machine"].items())
    EXPECT_EQ(refusal_without(Json::json_pointer("/machine"), field),
              "invalid_argument: f.json: machine has no field '" + field + "'");
  const std::set<std::string> optional = {"op", "memory", "rows", "tile", "link", "beside_compute"};
  for (const auto& [field, value] : whole["figures"][0].items()) {
    if (optional.contains(field)) continue;
    EXPECT_EQ(refusal_without(Json::json_pointer("/figures/0"), field),
              std::string("invalid_argument: f.json: figure 1") +
                  (field == "operation" ? "" : " (all_reduce)") + " has no field '" + field + "'");
  }
}

TEST(BenchFiles, AreRefusedWithAFieldOfAnotherType) {
  const auto refusal_with = [](const char* pointer, const Json& value) {
    return refusal_after([&](Json& json) { json[Json::json_pointer(pointer)] = value; });
  };
  const std::string file = "invalid_argument: f.json";
  EXPECT_EQ(refusal_with("/version", 1), file + " has a field 'version' that is 1, not text");
  EXPECT_EQ(refusal_with("/complete", "yes"),
            file + " has a field 'complete' that is \"yes\", not true or false");
  EXPECT_EQ(refusal_with("/figures/0/link", "string"),
            file +
                ": figure 1 (all_reduce) has a field 'link' that is \"string\", not shared, apart, "
                "nvlink, pcie_atomics or pcie");
  EXPECT_EQ(refusal_with("/figures", Json::object()),
            file + " has a field 'figures' that is object, not a list");
  EXPECT_EQ(refusal_with("/machine", "h200"), file + ": machine is \"h200\", not an object");
  EXPECT_EQ(refusal_with("/machine/cpu", nullptr),
            file + ": machine has a field 'cpu' that is null, not text");
  EXPECT_EQ(refusal_with("/versions", 7),
            file + " has a field 'versions' that is 7, not an object");
  EXPECT_EQ(refusal_with("/versions/torch", "2.9"),
            file + ": versions of torch is \"2.9\", not an object");
  EXPECT_EQ(refusal_with("/versions/torch/cuda", 12.8),
            file + ": versions of torch has a field 'cuda' that is 12.8, not text");
  EXPECT_EQ(refusal_with("/figures/0", 7), file + ": figure 1 is 7, not an object");
  const std::string figure = file + ": figure 1 (all_reduce) has a field ";
  EXPECT_EQ(refusal_with("/figures/0/median_us", "7"),
            figure + "'median_us' that is \"7\", not a number");
  EXPECT_EQ(refusal_with("/figures/0/bus_gbps", true),
            figure + "'bus_gbps' that is true, not a number");
  EXPECT_EQ(refusal_with("/figures/0/failed", 1), figure + "'failed' that is 1, not text");
}

TEST(BenchFiles, AreRefusedWithNumbersThatAreNotWholeOrTooLarge) {
  const auto refusal_with = [](const char* field, const Json& value) {
    return refusal_after([&](Json& json) { json["figures"][0][field] = value; });
  };
  const std::string figure = "invalid_argument: f.json: figure 1 (all_reduce) has a field ";
  const std::string range = ", not a whole number from 0 to 2147483647";
  EXPECT_EQ(refusal_with("ranks", 2.5), figure + "'ranks' that is 2.5" + range);
  EXPECT_EQ(refusal_with("ranks", true), figure + "'ranks' that is true" + range);
  EXPECT_EQ(refusal_with("blocks", -1), figure + "'blocks' that is -1" + range);
  EXPECT_EQ(refusal_with("blocks", 2147483648), figure + "'blocks' that is 2147483648" + range);
  EXPECT_EQ(refusal_with("bytes", -1),
            figure + "'bytes' that is -1, not a whole number from 0 to 18446744073709551615");
}

TEST(BenchFiles, AreRefusedWithAFigureThatWasSkippedAndFailed) {
  EXPECT_EQ(
      refusal_after([](Json& json) {
        json["figures"][0]["skipped"] = "one";
        json["figures"][0]["failed"] = "two";
      }),
      "invalid_argument: f.json: figure 1 (all_reduce) has both fields 'skipped' and 'failed'");
}

TEST(BenchFiles, AreReadFromDisk) {
  const TemporaryFile file(as_json(whole_run()));
  EXPECT_EQ(as_json(read_run(file.path())), as_json(whole_run()));
}

TEST(BenchFiles, AreNamedWhenTheyAreCutOffOnDisk) {
  const TemporaryFile file("{");
  try {
    read_run(file.path());
    FAIL() << "half a file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "invalid_argument: " + file.path() + " is cut off");
  }
}

TEST(BenchFiles, ThatCannotBeReadAreErrorsOfTheSystem) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      read_run(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::system);
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("/nowhere/f.json"),
            "system: cannot open /nowhere/f.json: No such file or directory");
  const std::string too_long = "/tmp/" + std::string(300, 'x');
  EXPECT_EQ(refusal(too_long), "system: cannot open " + too_long + ": File name too long");
  const std::string folder = std::filesystem::temp_directory_path();
  EXPECT_EQ(refusal(folder), "system: cannot open " + folder + ": it is no file");
}

TEST(BenchFigures, AreCommaSeparatedForPrograms) {
  EXPECT_EQ(
      as_csv(whole_run()),
      "operation,contender,algorithm,dtype,op,memory,mode,ranks,bytes,m,n,k,layout,blocks,rows,"
      "tile,skipped,failed,samples,calls,median_us,p10_us,p90_us,algorithm_gbps,bus_gbps,"
      "copy_share,tflops\n"
      "all_reduce,iridium,two_shot,bf16,max,symmetric,eager,4,4096,,,,,16,5,2,,,15,100,"
      "0.3333333333333333,0.25,0.5,12.288,18.432,0.875,0\n"
      "barrier,iridium,,,,,graph,2,0,,,,,0,0,0,,,9,10,2.5,2.25,3,0,0,0,0\n"
      "all_reduce,torch,,,,,graph,4,1536,,,,,0,0,0,torch is not installed,,,,,,,,,,\n"
      "all_gather,iridium,,,,,graph,4,3221225472,,,,,0,0,0,,\"element 3 is 5,\nnot \"\"7\"\"\",,,,,"
      ",,,,\n");
  EXPECT_NE(
      as_csv(run_of({product_figure()}))
          .find("\nmatmul,iridium,simple,bf16,,,graph,2,0,16,264,1000,nk,0,0,0,,,9,10,2.5,2.25,"
                "3,0,0,0,3.375\n"),
      std::string::npos);
}

TEST(BenchFigures, AreQuotedInCsvOnlyWhereTheyMustBe) {
  const auto cell = [](const std::string& text) {
    BenchFigure figure = barrier_figure();
    figure.operation = text;
    const std::string lines = as_csv(run_of({figure}));
    const std::size_t begin = lines.find('\n') + 1;
    return lines.substr(begin, lines.find(",iridium,,,,,graph", begin) - begin);
  };
  EXPECT_EQ(cell("a b;c'"), "a b;c'");
  EXPECT_EQ(cell("a,b"), "\"a,b\"");
  EXPECT_EQ(cell("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(cell("a\nb"), "\"a\nb\"");
  EXPECT_EQ(cell("a\rb"), "\"a\rb\"");
}

TEST(BenchFigures, AreTablesForPeople) {
  BenchRun run = whole_run();
  run.complete = false;
  EXPECT_EQ(
      as_table(run),
      "operation   contender  algorithm  dtype  op   memory     blocks  rows  tile  ranks  bytes   "
      " "
      "mode   median us  10 %   90 %   GB/s   bus GB/s  copy share  remark\n"
      "all_reduce  iridium    two_shot   bf16   max  symmetric  16      5     2     4      4 KiB   "
      " "
      "eager  0.333      0.250  0.500  12.29  18.43     88 %\n"
      "barrier     iridium                                                          2              "
      " "
      "graph  2.500      2.250  3.000\n"
      "all_reduce  torch                                                            4      1.5 KiB "
      " "
      "graph                                                        skipped: torch is not "
      "installed\n"
      "all_gather  iridium                                                          4      3 GiB   "
      " "
      "graph                                                        failed: element 3 is 5, not "
      "\"7\"\n"
      "\n"
      "4 figures, 1 skipped, 1 failed; the run is not complete\n");
}

TEST(BenchFigures, HaveNoColumnsForWhatNoneHas) {
  EXPECT_EQ(as_table(run_of({barrier_figure()})),
            "operation  contender  ranks  mode   median us  10 %   90 %\n"
            "barrier    iridium    2      graph  2.500      2.250  3.000\n"
            "\n"
            "1 figure, 0 skipped, 0 failed\n");
  EXPECT_EQ(as_table(run_of({product_figure()})),
            "operation  contender  algorithm        dtype  layout  ranks  M x N x K    mode   "
            "median us  10 %   90 %   TFLOP/s\n"
            "matmul     iridium    simple (narrow)  bf16   nk      2      16x264x1000  graph  "
            "2.500      2.250  3.000  3.375\n"
            "\n"
            "1 figure, 0 skipped, 0 failed\n");
  EXPECT_EQ(as_table(run_of({})), "0 figures, 0 skipped, 0 failed\n");
}

}  // namespace
}  // namespace iridium::cli

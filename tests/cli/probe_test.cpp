#include "cli/probe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/probe_report.h"
#include "command.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::json;

ProbeRow right_row() {
  ProbeRow row;
  row.operation = "put";
  row.arguments = {{"count", "3"}, {"type", "float"}};
  row.result.node_count = 4;
  row.milliseconds = 1.5;
  return row;
}

ProbeRow wrong_row() {
  ProbeRow row;
  row.operation = "get";
  row.as_expected = false;
  row.result.verdict = Verdict::wrong_result;
  row.result.step = "replay 2";
  row.result.reason = "element 3 is 5, not 7";
  row.result.rank = 1;
  row.result.node_count = 4;
  return row;
}

ProbeReport report_of(std::vector<ProbeRow> rows, std::size_t cases) {
  return {{"host", 2, cases}, std::move(rows)};
}

std::string last_line(const std::string& text) {
  const std::size_t begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin == std::string::npos ? 0 : begin + 1);
}

TEST(ProbeReports, GoThroughAFileUnchanged) {
  std::stringstream file;
  write(file, ProbeRun{"host", 2, 3});
  write(file, right_row());
  write(file, wrong_row());
  const ProbeReport report = read_report(file);
  EXPECT_EQ(report.run.backend, "host");
  EXPECT_EQ(report.run.ranks, 2);
  EXPECT_EQ(report.run.cases, 3u);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].arguments, right_row().arguments);
  EXPECT_EQ(report.rows[1].result.verdict, Verdict::wrong_result);
  EXPECT_EQ(report.rows[1].result.step, "replay 2");
  EXPECT_EQ(report.rows[1].result.reason, "element 3 is 5, not 7");
  EXPECT_EQ(report.rows[1].result.rank, 1);
  EXPECT_EQ(report.rows[0].milliseconds, 1.5);
  EXPECT_FALSE(report.is_complete());
}

TEST(ProbeReports, AreReadUpToALineThatIsCutOff) {
  std::stringstream whole;
  write(whole, ProbeRun{"host", 2, 2});
  write(whole, right_row());
  write(whole, wrong_row());
  std::istringstream cut(whole.str().substr(0, whole.str().size() - 20));
  EXPECT_EQ(read_report(cut).rows.size(), 1u);
  std::istringstream empty;
  EXPECT_EQ(read_report(empty).run.cases, 0u);
}

TEST(ProbeReports, AreTablesForPeople) {
  EXPECT_EQ(as_table(report_of({right_row(), wrong_row()}, 2)),
            "backend host, 2 ranks\n"
            "\n"
            "operation  arguments           verdict       as expected  nodes  found\n"
            "put        count=3 type=float  capturable    yes          4\n"
            "get                            wrong_result  NO           4      rank 1, replay 2: "
            "element 3 is 5, not 7\n"
            "\n"
            "1 of 2 verdicts are not as expected\n");
  EXPECT_EQ(last_line(as_table(report_of({right_row()}, 1))), "1 of 1 verdicts are as expected\n");
  EXPECT_EQ(last_line(as_table(report_of({right_row()}, 4))),
            "1 of 4 verdicts are as expected; the ranks ended after 1 of 4 cases\n");
}

TEST(ProbeReports, AreObjectsForPrograms) {
  const Json json = Json::parse(as_json("1.2.3", report_of({right_row(), wrong_row()}, 2)));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["as_expected"], false);
  EXPECT_EQ(json["cases"][0]["arguments"]["type"], "float");
  EXPECT_EQ(json["cases"][1]["expected"], "capturable");
  EXPECT_EQ(json["cases"][1]["verdict"], "wrong_result");
  EXPECT_EQ(json["cases"][1]["rank"], 1);
  const auto as_expected = [](const ProbeReport& report) {
    return Json::parse(as_json("1", report))["as_expected"].get<bool>();
  };
  EXPECT_TRUE(as_expected(report_of({right_row()}, 1)));
  EXPECT_FALSE(as_expected(report_of({right_row()}, 2)));
}

TEST(ProbeCommandLine, ProbesEverything) {
  const CommandResult result = run_command({"probe", "-n", "2", "--format", "json"});
  EXPECT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json["backend"], "host");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["as_expected"], true);
  std::size_t cases = 0;
  for (const auto* list : {&operations(), &host_calls()})
    for (const Operation& operation : *list) cases += combinations(operation).size();
  EXPECT_EQ(json["cases"].size(), cases);
  // Progress, one line per case.
  const std::string last = std::to_string(cases) + " of " + std::to_string(cases);
  EXPECT_NE(result.error.find(last + ": make_team: not_capturable\n"), std::string::npos)
      << result.error;
}

TEST(ProbeCommandLine, ProbesWhatItIsAskedFor) {
  const CommandResult result =
      run_command({"probe", "-n", "3", "--op", "make_team", "--op", "device_barrier"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.output.find("backend host, 3 ranks\n"), 0u) << result.output;
  EXPECT_NE(result.output.find("make_team(0, 1, 2) cannot be part of a capture"), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("put"), std::string::npos) << result.output;
  EXPECT_EQ(last_line(result.output), "3 of 3 verdicts are as expected\n");
}

TEST(ProbeCommandLine, LeavesNoFileBehind) {
  const std::filesystem::path folder = temporary_path("probe_leaves_nothing");
  std::filesystem::create_directories(folder);
  ASSERT_EQ(::setenv("TMPDIR", folder.c_str(), 1), 0);
  EXPECT_EQ(run_command({"probe", "-n", "1", "--op", "allocate"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  EXPECT_EQ(run_command({"probe", "-n", "1", "--op", "allocate"}).status, 0) << "it needs none";
  ::unsetenv("TMPDIR");
}

TEST(ProbeCommandLine, NamesTheCaseThatCannotRun) {
  ASSERT_EQ(::setenv("IRIDIUM_HEAP_BYTES", "25M", 1), 0);
  const CommandResult result = run_command({"probe", "-n", "1", "--op", "put", "--format", "json"});
  ::unsetenv("IRIDIUM_HEAP_BYTES");
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.error.find("of 3: put bytes="), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("out_of_memory"), std::string::npos) << result.error;
  EXPECT_EQ(Json::parse(result.output)["complete"], false);
}

TEST(ProbeCommandLine, RefusesBadInput) {
  const CommandResult unknown = run_command({"probe", "-n", "2", "--op", "alocate"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(
      unknown.error.find("there is no operation 'alocate'; there are all_gather, all_gather_"),
      std::string::npos)
      << unknown.error;
  EXPECT_EQ(run_command({"probe"}).status, 2);
  EXPECT_EQ(run_command({"probe", "-n", "0"}).status, 2);
  EXPECT_EQ(run_command({"probe", "-n", "2", "--format", "csv"}).status, 2);
  EXPECT_EQ(run_command({"probe", "-n", "2", "put"}).status, 2);
}

TEST(ProbeCommandLine, SaysWhyRanksCannotStart) {
  const CommandResult result = run_command({"probe", "-n", "1", "--rows", "/nowhere/rows"});
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.error.find("/nowhere/rows"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace iridium::cli

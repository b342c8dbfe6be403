#include "cli/info.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "command.h"
#include "iridium/tuning.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::json;

std::vector<BackendInfo> two_backends() {
  return {
      {.kind = BackendKind::cuda,
       .available = false,
       .reason = "no driver",
       .devices = {},
       .capabilities = {}},
      {.kind = BackendKind::host,
       .available = true,
       .reason = "",
       .devices = {{.name = "Some CPU", .memory_bytes = 3ull << 29, .processors = 2},
                   {.name = "Another",
                    .memory_bytes = 1ull << 30,
                    .processors = 1,
                    .objection = "it is slow"}},
       .capabilities = {{.name = "capture", .available = true, .detail = "always"},
                        {.name = "kernels", .available = false, .detail = "not yet"}}},
  };
}

TEST(InfoTable, ShowsBackendsDevicesAndCapabilities) {
  EXPECT_EQ(backends_as_table("1.2.3", two_backends()),
            "iridium 1.2.3\n"
            "\n"
            "backend  available  why not\n"
            "cuda     no         no driver\n"
            "host     yes\n"
            "\n"
            "backend  device  name      memory   processors  why not\n"
            "host     0       Some CPU  1.5 GiB  2\n"
            "host     1       Another   1.0 GiB  1           it is slow\n"
            "\n"
            "backend  capability  available  detail\n"
            "host     capture     yes        always\n"
            "host     kernels     no         not yet\n");
}

TEST(InfoTable, LeavesEmptyTablesOut) {
  EXPECT_EQ(backends_as_table("1.2.3", {}), "iridium 1.2.3\n");
}

TEST(InfoJson, HoldsAllFields) {
  const Json json = Json::parse(backends_as_json("1.2.3", two_backends()));
  EXPECT_EQ(json, Json::parse(R"({
    "schema": 1, "version": "1.2.3", "backends": [
      {"name": "cuda", "available": false, "reason": "no driver", "devices": [],
       "capabilities": []},
      {"name": "host", "available": true, "reason": "",
       "devices": [{"name": "Some CPU", "memory_bytes": 1610612736, "processors": 2,
                    "objection": ""},
                   {"name": "Another", "memory_bytes": 1073741824, "processors": 1,
                    "objection": "it is slow"}],
       "capabilities": [{"name": "capture", "available": true, "detail": "always"},
                        {"name": "kernels", "available": false, "detail": "not yet"}]}]})"));
}

TEST(InfoJson, IsValidWhateverADeviceIsCalled) {
  const std::vector<BackendInfo> backends = {{.kind = BackendKind::host,
                                              .available = true,
                                              .reason = "",
                                              .devices = {{.name = "bad \xff name"}},
                                              .capabilities = {}}};
  EXPECT_TRUE(Json::accept(backends_as_json("1.2.3", backends)));
}

TEST(SettingsJson, HoldsAllFields) {
  const std::vector<Setting> settings = {{.option = "Options::value",
                                          .flag = "--value",
                                          .variable = "VALUE",
                                          .default_value = "1",
                                          .meaning = "A value."}};
  EXPECT_EQ(Json::parse(settings_as_json("1.2.3", settings)), Json::parse(R"({
    "schema": 1, "version": "1.2.3", "settings": [
      {"option": "Options::value", "flag": "--value", "variable": "VALUE", "default": "1",
       "meaning": "A value."}]})"));
}

TEST(Info, PrintsATableByDefault) {
  const CommandResult result = run_command({"info"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.output, backends_as_table(version(), describe_backends()));
  EXPECT_NE(result.output.find("\nhost     yes"), std::string::npos);
}

TEST(Info, PrintsJson) {
  const CommandResult result = run_command({"info", "--format", "json"});
  EXPECT_EQ(result.status, 0);
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("version"), IR_VERSION);
  EXPECT_EQ(json.at("backends").size(), describe_backends().size());
}

TEST(Info, PrintsSettings) {
  const CommandResult table = run_command({"info", "--settings"});
  EXPECT_EQ(table.status, 0);
  EXPECT_EQ(table.output, settings_markdown());

  const CommandResult result = run_command({"info", "--settings", "--format=json"});
  EXPECT_EQ(result.status, 0);
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("schema"), 1);
  ASSERT_EQ(json.at("settings").size(), settings().size());
  EXPECT_EQ(json.at("settings").at(0).at("variable"), settings()[0].variable);
}

TEST(InfoChoice, TellsWhatTheTuningTableDecides) {
  const InfoOptions options = {.operation = "all_reduce", .backend = "cuda", .bytes = "4K"};
  const Choice choice = tuning_table().choose({.operation = "all_reduce",
                                               .symmetric = false,
                                               .backend = "cuda",
                                               .members = 2,
                                               .bytes = 4096});
  const std::string text = choice_text(options);
  EXPECT_NE(text.find(choice.algorithm), std::string::npos) << text;
  EXPECT_NE(text.find("4 KiB"), std::string::npos) << text;

  InfoOptions for_programs = options;
  for_programs.format = "json";
  const Json json = Json::parse(choice_text(for_programs));
  EXPECT_EQ(json["choice"]["algorithm"], choice.algorithm);
  EXPECT_EQ(json["choice"]["blocks"], choice.blocks);
  EXPECT_EQ(json["choice"]["bytes"], 4096);
}

TEST(InfoChoice, TellsWhatIsChosenForALinkAndThatNobodyMeasuredIt) {
  InfoOptions options = {.operation = "all_reduce", .backend = "cuda", .ranks = 8, .bytes = "16K"};
  constexpr const char* remark = "for links other than shared was ever measured";
  EXPECT_EQ(choice_text(options).find(remark), std::string::npos);
  options.link = "nvlink";
  const std::string text = choice_text(options);
  EXPECT_NE(text.find("all_reduce  cuda     nvlink  plain   8      16 KiB  packet"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(remark), std::string::npos) << text;
  options.link = "pcie";
  options.format = "json";
  const Json json = Json::parse(choice_text(options))["choice"];
  EXPECT_EQ(json["link"], "pcie");
  EXPECT_EQ(json["algorithm"], "one_shot");
  EXPECT_NE(json["note"].get<std::string>().find(remark), std::string::npos) << json;
  const CommandResult result =
      run_command({"info", "--choose", "all_reduce", "--backend", "cuda", "--link", "pcie"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_NE(result.output.find(remark), std::string::npos) << result.output;
}

TEST(InfoChoice, TellsWhatAProductGets) {
  const std::vector<std::string> asked = {"info",     "--choose", "matmul", "--shape",
                                          "16x24x40", "--layout", "kn",     "--dtype",
                                          "tf32",     "--format", "json"};
  const auto choice = [&] {
    const CommandResult result = run_command(asked);
    EXPECT_EQ(result.status, 0) << result.error;
    return Json::parse(result.output)["choice"];
  };
  const Json estimated = choice();
  EXPECT_EQ(estimated["m"], 16);
  EXPECT_EQ(estimated["n"], 24);
  EXPECT_EQ(estimated["k"], 40);
  EXPECT_EQ(estimated["layout"], "kn");
  EXPECT_EQ(estimated["dtype"], "tf32");
  EXPECT_EQ(estimated["by"], "estimate");
  const std::string path = temporary_path("info_rows.txt");
  std::ofstream(path) << "matmul tf32 kn host 16 24 40 simple\n";
  ASSERT_EQ(::setenv("IRIDIUM_TUNING_TABLE", path.c_str(), 1), 0);
  const Json by_row = choice();
  const CommandResult table = run_command(
      {"info", "--choose", "matmul", "--shape", "16x24x40", "--layout", "kn", "--dtype", "tf32"});
  ::unsetenv("IRIDIUM_TUNING_TABLE");
  EXPECT_EQ(by_row["by"], "row");
  EXPECT_EQ(by_row["algorithm"], "simple");
  EXPECT_NE(table.output.find("16x24x40   tf32   kn      simple     a row of the tuning table"),
            std::string::npos)
      << table.output;
  std::filesystem::remove(path);
}

TEST(InfoChoice, RefusesProductsThatAreNone) {
  const auto refusal = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"info", "--choose", "matmul"});
    const CommandResult result = run_command(more);
    EXPECT_EQ(result.status, 2);
    return result.error;
  };
  EXPECT_NE(refusal({}).find("--shape 4096x3584x8192"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "16x24"}).find("such as 4096x3584x8192"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "1x1x1", "--dtype", "int8"}).find("'int8'"), std::string::npos);
  EXPECT_NE(refusal({"--shape", "1x1x1", "--device", "Abacus"}).find("no device 'Abacus'"),
            std::string::npos);
  refusal({"--shape", "1x1x1", "--layout", "nn"});
}

TEST(InfoChoice, RefusesWhatIsNoCase) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"info", "--choose", "all_the_things"},
           {"info", "--choose", "all_reduce", "-n", "0"},
           {"info", "--choose", "all_reduce", "--backend", "abacus"},
           {"info", "--choose", "all_reduce", "--link", "string"},
           {"info", "--link", "pcie"},
           {"info", "--choose", "all_reduce", "--settings"},
           {"info", "--bytes", "4K"}})
    EXPECT_EQ(run_command(arguments).status, 2) << arguments.back();
  for (const char* bytes : {"many", "4K:1M", "-1"})
    EXPECT_NE(run_command({"info", "--choose", "all_reduce", "--bytes", bytes}).status, 0) << bytes;
}

}  // namespace
}  // namespace iridium::cli

#include "cli/info.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "command.h"
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
       .devices = {{.name = "Some CPU", .memory_bytes = 3ull << 29, .processors = 2}},
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
            "backend  device  name      memory   processors\n"
            "host     0       Some CPU  1.5 GiB  2\n"
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
       "devices": [{"name": "Some CPU", "memory_bytes": 1610612736, "processors": 2}],
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

}  // namespace
}  // namespace iridium::cli

#include "base/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "support/ranks.h"
#include "support/source_folder.h"

namespace iridium {
namespace {

using std::chrono::milliseconds;
using test::expect_error;

Environment environment_with(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* variable) -> std::optional<std::string> {
    const auto found = values.find(variable);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

void expect_bad_value(const char* variable, const std::string& value,
                      const std::function<void(const Environment&)>& read) {
  const Error error =
      expect_error(Errc::invalid_argument, [&] { read(environment_with({{variable, value}})); });
  const std::string message = error.what();
  EXPECT_NE(message.find(variable), std::string::npos) << message;
  EXPECT_NE(message.find("'" + value + "'"), std::string::npos) << message;
}

/// Every variable that src/base/settings.h names.
std::set<std::string> named_variables() {
  std::ifstream file(test::source_file("src/base/settings.h"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::regex variable("\"(IRIDIUM_[A-Z_]+)\"");
  std::set<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), variable);
       match != std::sregex_iterator(); ++match)
    names.insert((*match)[1]);
  return names;
}

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedVariable() { ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

TEST(Settings, BackendIsReadOrChosen) {
  EXPECT_EQ(backend_setting(environment_with({})), std::nullopt);
  EXPECT_EQ(backend_setting(environment_with({{variables::backend, "auto"}})), std::nullopt);
  EXPECT_EQ(backend_setting(environment_with({{variables::backend, "host"}})), BackendKind::host);
  EXPECT_EQ(backend_setting(environment_with({{variables::backend, "cuda"}})), BackendKind::cuda);
  EXPECT_EQ(backend_setting(environment_with({{variables::backend, "hip"}})), BackendKind::hip);
}

TEST(Settings, BadBackendNamesVariableAndValue) {
  for (const char* value : {"Host", "rocm", " host"})
    expect_bad_value(variables::backend, value,
                     [](const Environment& environment) { backend_setting(environment); });
}

TEST(Settings, HeapBytesAreReadOrDefault) {
  EXPECT_EQ(heap_bytes_setting(environment_with({})), default_heap_bytes);
  EXPECT_EQ(heap_bytes_setting(environment_with({{variables::heap_bytes, "1"}})), 1u);
  EXPECT_EQ(heap_bytes_setting(environment_with({{variables::heap_bytes, "64M"}})), 64u << 20);
}

TEST(Settings, BadHeapBytesNameVariableAndValue) {
  for (const char* value : {"0", "0K", "-1", "64MB", "lots", "1.5G", " 1", "18446744073709551616"})
    expect_bad_value(variables::heap_bytes, value,
                     [](const Environment& environment) { heap_bytes_setting(environment); });
}

TEST(Settings, TimeoutIsReadOrDefault) {
  EXPECT_EQ(timeout_setting(environment_with({})), default_timeout);
  EXPECT_EQ(timeout_setting(environment_with({{variables::timeout, "2"}})), milliseconds(2000));
  EXPECT_EQ(timeout_setting(environment_with({{variables::timeout, "0.25"}})), milliseconds(250));
}

TEST(Settings, ConstructionTimeoutIsReadOrDefault) {
  EXPECT_EQ(construction_timeout_setting(environment_with({})), default_construction_timeout);
  EXPECT_EQ(
      construction_timeout_setting(environment_with({{variables::construction_timeout, "2"}})),
      milliseconds(2000));
  EXPECT_EQ(construction_timeout_setting(environment_with({{variables::timeout, "2"}})),
            default_construction_timeout);
}

TEST(Settings, TimeoutsArePatientByDefault) {
  EXPECT_EQ(default_timeout, std::chrono::minutes(5));
  EXPECT_EQ(default_construction_timeout, std::chrono::minutes(5));
}

TEST(Settings, BadConstructionTimeoutNamesVariableAndValue) {
  for (const char* value : {"0", "-3", "30s", "nan"})
    expect_bad_value(variables::construction_timeout, value, [](const Environment& environment) {
      construction_timeout_setting(environment);
    });
}

TEST(Settings, BadTimeoutNamesVariableAndValue) {
  for (const char* value : {"0", "-3", "30s", "soon", "1e9", "nan", "99999999999"})
    expect_bad_value(variables::timeout, value,
                     [](const Environment& environment) { timeout_setting(environment); });
}

TEST(Settings, CheckedModeIsOffOrOn) {
  EXPECT_FALSE(checked_setting(environment_with({})));
  EXPECT_FALSE(checked_setting(environment_with({{variables::checked, "0"}})));
  EXPECT_TRUE(checked_setting(environment_with({{variables::checked, "1"}})));
}

TEST(Settings, BadCheckedModeNamesVariableAndValue) {
  for (const char* value : {"true", "2", "yes", "01", "1 "})
    expect_bad_value(variables::checked, value,
                     [](const Environment& environment) { checked_setting(environment); });
}

TEST(Settings, LinksAreNamedOrDetected) {
  EXPECT_EQ(link_setting(environment_with({})), std::nullopt);
  for (const Link link : {Link::apart, Link::nvlink, Link::pcie_atomics, Link::pcie})
    EXPECT_EQ(link_setting(environment_with({{variables::link, std::string(name(link))}})), link);
}

TEST(Settings, BadLinkNamesVariableAndValue) {
  for (const char* value : {"shared", "none", "NVLink", "pcie "})
    expect_bad_value(variables::link, value,
                     [](const Environment& environment) { link_setting(environment); });
}

TEST(Settings, LanesAtOnceAreReadOrDefault) {
  EXPECT_EQ(lanes_at_once_setting(environment_with({})), default_lanes_at_once);
  EXPECT_EQ(lanes_at_once_setting(environment_with({{variables::lanes_at_once, "3"}})), 3);
  EXPECT_EQ(lanes_at_once_setting(environment_with({{variables::lanes_at_once, "64"}})), 64);
}

TEST(Settings, BadLanesAtOnceNameVariableAndValue) {
  for (const char* value : {"0", "-1", "65", "two", "1.5", "4294967297"})
    expect_bad_value(variables::lanes_at_once, value,
                     [](const Environment& environment) { lanes_at_once_setting(environment); });
}

TEST(Settings, RoomForComputeIsLeftUnlessRefused) {
  EXPECT_TRUE(beside_compute_setting(environment_with({})));
  EXPECT_TRUE(beside_compute_setting(environment_with({{variables::beside_compute, "1"}})));
  EXPECT_FALSE(beside_compute_setting(environment_with({{variables::beside_compute, "0"}})));
}

TEST(Settings, BadRoomForComputeNamesVariableAndValue) {
  for (const char* value : {"false", "2", "no", "00"})
    expect_bad_value(variables::beside_compute, value,
                     [](const Environment& environment) { beside_compute_setting(environment); });
}

TEST(Settings, BlocksAreWholeOrSplit) {
  EXPECT_FALSE(split_blocks_setting(environment_with({})));
  EXPECT_FALSE(split_blocks_setting(environment_with({{variables::split_blocks, "0"}})));
  EXPECT_TRUE(split_blocks_setting(environment_with({{variables::split_blocks, "1"}})));
}

TEST(Settings, BadSplitBlocksNameVariableAndValue) {
  for (const char* value : {"true", "4", "yes", "01", "1 "})
    expect_bad_value(variables::split_blocks, value,
                     [](const Environment& environment) { split_blocks_setting(environment); });
}

TEST(Settings, ScheduleSeedIsReadOrNone) {
  EXPECT_EQ(schedule_seed_setting(environment_with({})), std::nullopt);
  EXPECT_EQ(schedule_seed_setting(environment_with({{variables::schedule_seed, "0"}})), 0u);
  EXPECT_EQ(schedule_seed_setting(environment_with({{variables::schedule_seed, "42"}})), 42u);
  EXPECT_EQ(
      schedule_seed_setting(environment_with({{variables::schedule_seed, "18446744073709551615"}})),
      18446744073709551615u);
}

TEST(Settings, BadScheduleSeedNamesVariableAndValue) {
  for (const char* value : {"none", "-1", "1.5", "0x1", " 1", "1K", "18446744073709551616"})
    expect_bad_value(variables::schedule_seed, value,
                     [](const Environment& environment) { schedule_seed_setting(environment); });
}

TEST(Settings, RuntimeDirectoryIsTakenAsItIs) {
  EXPECT_EQ(runtime_dir_setting(environment_with({})), "");
  EXPECT_EQ(runtime_dir_setting(environment_with({{variables::runtime_dir, "/some/where"}})),
            "/some/where");
}

TEST(Settings, ReadersLookAtTheirOwnVariableOnly) {
  const auto others = [](const char* own) {
    return [own](const char* variable) -> std::optional<std::string> {
      if (std::string(variable) == own) return std::nullopt;
      return "not a value";
    };
  };
  EXPECT_EQ(backend_setting(others(variables::backend)), std::nullopt);
  EXPECT_EQ(heap_bytes_setting(others(variables::heap_bytes)), default_heap_bytes);
  EXPECT_EQ(timeout_setting(others(variables::timeout)), default_timeout);
  EXPECT_EQ(construction_timeout_setting(others(variables::construction_timeout)),
            default_construction_timeout);
  EXPECT_EQ(lanes_at_once_setting(others(variables::lanes_at_once)), default_lanes_at_once);
  EXPECT_TRUE(beside_compute_setting(others(variables::beside_compute)));
  EXPECT_FALSE(checked_setting(others(variables::checked)));
  EXPECT_FALSE(split_blocks_setting(others(variables::split_blocks)));
  EXPECT_EQ(schedule_seed_setting(others(variables::schedule_seed)), std::nullopt);
  EXPECT_EQ(runtime_dir_setting(others(variables::runtime_dir)), "");
}

TEST(Settings, ProcessEnvironmentTakesEmptyAsAbsent) {
  constexpr const char* name = "IRIDIUM_TEST_VARIABLE";
  EXPECT_EQ(process_environment(name), std::nullopt);
  {
    const ScopedVariable set(name, "value");
    EXPECT_EQ(process_environment(name), "value");
  }
  const ScopedVariable empty(name, "");
  EXPECT_EQ(process_environment(name), std::nullopt);
}

TEST(Settings, EmptyVariablesOfTheProcessMeanTheDefault) {
  const ScopedVariable backend(variables::backend, "");
  const ScopedVariable heap_bytes(variables::heap_bytes, "");
  const ScopedVariable timeout(variables::timeout, "");
  const ScopedVariable checked(variables::checked, "");
  const ScopedVariable split_blocks(variables::split_blocks, "");
  const ScopedVariable schedule_seed(variables::schedule_seed, "");
  EXPECT_EQ(backend_setting(process_environment), std::nullopt);
  EXPECT_EQ(heap_bytes_setting(process_environment), default_heap_bytes);
  EXPECT_EQ(timeout_setting(process_environment), default_timeout);
  EXPECT_FALSE(checked_setting(process_environment));
  EXPECT_FALSE(split_blocks_setting(process_environment));
  EXPECT_EQ(schedule_seed_setting(process_environment), std::nullopt);
}

TEST(SettingsTable, HasEveryVariableThatIsRead) {
  const std::set<std::string> named = named_variables();
  ASSERT_TRUE(named.contains(variables::backend)) << "the header was not read";
  std::set<std::string> in_table;
  for (const Setting& row : settings())
    if (!row.variable.empty()) in_table.emplace(row.variable);
  EXPECT_EQ(in_table, named);
}

TEST(SettingsTable, NamesNothingTwice) {
  std::multiset<std::string_view> names;
  for (const Setting& row : settings())
    for (const std::string_view name : {row.option, row.flag, row.variable})
      if (!name.empty()) names.insert(name);
  for (const std::string_view name : names) EXPECT_EQ(names.count(name), 1u) << name;
}

TEST(SettingsTable, RowsAreWhole) {
  for (const Setting& row : settings()) {
    EXPECT_FALSE(row.option.empty() && row.flag.empty() && row.variable.empty()) << row.meaning;
    EXPECT_FALSE(row.default_value.empty()) << row.meaning;
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.meaning;
    EXPECT_EQ(row.meaning.find('|'), std::string_view::npos) << row.meaning;
    EXPECT_EQ(row.meaning.find('\n'), std::string_view::npos) << row.meaning;
  }
}

TEST(SettingsTable, DefaultsAreThoseOfTheCode) {
  const auto default_of = [](const char* variable) {
    const auto rows = settings();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Setting& s) { return s.variable == variable; });
    return row == rows.end() ? std::string() : std::string(row->default_value);
  };
  const Environment defaults = environment_with(
      {{variables::backend, default_of(variables::backend)},
       {variables::heap_bytes, default_of(variables::heap_bytes)},
       {variables::timeout, default_of(variables::timeout)},
       {variables::construction_timeout, default_of(variables::construction_timeout)},
       {variables::lanes_at_once, default_of(variables::lanes_at_once)},
       {variables::beside_compute, default_of(variables::beside_compute)},
       {variables::checked, default_of(variables::checked)},
       {variables::split_blocks, default_of(variables::split_blocks)}});
  const Environment nothing = environment_with({});
  EXPECT_EQ(backend_setting(defaults), backend_setting(nothing));
  EXPECT_EQ(heap_bytes_setting(defaults), heap_bytes_setting(nothing));
  EXPECT_EQ(timeout_setting(defaults), timeout_setting(nothing));
  EXPECT_EQ(construction_timeout_setting(defaults), construction_timeout_setting(nothing));
  EXPECT_EQ(lanes_at_once_setting(defaults), lanes_at_once_setting(nothing));
  EXPECT_EQ(beside_compute_setting(defaults), beside_compute_setting(nothing));
  EXPECT_EQ(checked_setting(defaults), checked_setting(nothing));
  EXPECT_EQ(split_blocks_setting(defaults), split_blocks_setting(nothing));
}

TEST(SettingsTable, MarkdownHasFiveColumnsAndARowPerSetting) {
  std::istringstream text(settings_markdown());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), settings().size() + 2);
  EXPECT_EQ(lines[1], "| --- | --- | --- | --- | --- |");
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("| ") && line.ends_with(" |")) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 6) << line;
  }
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const Setting& row = settings()[i];
    for (const std::string_view cell : {row.option, row.flag, row.variable, row.meaning})
      EXPECT_NE(lines[i + 2].find(cell), std::string::npos) << lines[i + 2];
  }
}

}  // namespace
}  // namespace iridium

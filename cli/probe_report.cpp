#include "cli/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/text_table.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Raised whenever a field changes its meaning or goes away.
constexpr int schema = 1;

constexpr Verdict all_verdicts[] = {Verdict::capturable, Verdict::not_capturable,
                                    Verdict::wrong_result, Verdict::replay_error,
                                    Verdict::unsupported};

Verdict verdict_from(const std::string& text) {
  const auto found =
      std::ranges::find_if(all_verdicts, [&](Verdict verdict) { return name(verdict) == text; });
  if (found == std::end(all_verdicts)) throw std::runtime_error("unknown verdict " + text);
  return *found;
}

/// Errors quote what other programs wrote, which need not be UTF-8.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const ProbeRow& row) {
  return {{"operation", row.operation},          {"arguments", row.arguments},
          {"expected", name(row.expected)},      {"as_expected", row.as_expected},
          {"verdict", name(row.result.verdict)}, {"step", row.result.step},
          {"reason", row.result.reason},         {"rank", row.result.rank},
          {"node_count", row.result.node_count}, {"milliseconds", row.milliseconds}};
}

ProbeRow row_from(const Json& json) {
  ProbeRow row;
  row.operation = json.at("operation");
  row.arguments = json.at("arguments").get<Arguments>();
  row.expected = verdict_from(json.at("expected"));
  row.result.verdict = verdict_from(json.at("verdict"));
  row.as_expected = json.at("as_expected");
  row.result.step = json.at("step");
  row.result.reason = json.at("reason");
  row.result.rank = json.at("rank");
  row.result.node_count = json.at("node_count");
  row.milliseconds = json.at("milliseconds");
  return row;
}

/// "rank 2, replay 1: element 3 is 5, not 7".
std::string remark(const ProbeResult& result) {
  if (result.verdict == Verdict::capturable) return "";
  if (result.rank < 0) return fmt::format("{}: {}", result.step, result.reason);
  return fmt::format("rank {}, {}: {}", result.rank, result.step, result.reason);
}

std::string summary(const ProbeReport& report) {
  const std::size_t unexpected = report.unexpected();
  std::string text =
      unexpected == 0
          ? fmt::format("{} of {} verdicts are as expected", report.rows.size(), report.run.cases)
          : fmt::format("{} of {} verdicts are not as expected", unexpected, report.rows.size());
  if (!report.is_complete())
    text +=
        fmt::format("; the ranks ended after {} of {} cases", report.rows.size(), report.run.cases);
  return text + "\n";
}

}  // namespace

std::size_t ProbeReport::unexpected() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const ProbeRow& row) { return !row.as_expected; }));
}

void write(std::ostream& to, const ProbeRun& run) {
  to << text_of(Json{{"backend", run.backend}, {"ranks", run.ranks}, {"cases", run.cases}}, -1)
     << std::flush;
}

void write(std::ostream& to, const ProbeRow& row) {
  to << text_of(to_json(row), -1) << std::flush;
}

ProbeReport read_report(std::istream& from) {
  ProbeReport report;
  std::string line;
  for (bool is_first = true; std::getline(from, line); is_first = false) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) break;
    if (is_first)
      report.run = {json.at("backend"), json.at("ranks"), json.at("cases")};
    else
      report.rows.push_back(row_from(json));
  }
  return report;
}

std::string text_of(const Arguments& arguments) {
  std::string text;
  for (const auto& [name, value] : arguments)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string as_table(const ProbeReport& report) {
  TextTable table({"operation", "arguments", "verdict", "as expected", "nodes", "found"});
  for (const ProbeRow& row : report.rows)
    table.add_row({row.operation, text_of(row.arguments), std::string(name(row.result.verdict)),
                   row.as_expected ? "yes" : "NO",
                   row.result.node_count == 0 ? "" : std::to_string(row.result.node_count),
                   remark(row.result)});
  std::string text = fmt::format("backend {}, {} {}\n", report.run.backend, report.run.ranks,
                                 report.run.ranks == 1 ? "rank" : "ranks");
  if (!table.is_empty()) text += "\n" + table.render() + "\n";
  return text + summary(report);
}

std::string as_json(std::string_view version, const ProbeReport& report) {
  Json json = {{"schema", schema},
               {"version", version},
               {"backend", report.run.backend},
               {"ranks", report.run.ranks},
               {"complete", report.is_complete()},
               {"as_expected", report.is_complete() && report.unexpected() == 0},
               {"cases", Json::array()}};
  for (const ProbeRow& row : report.rows) json["cases"].push_back(to_json(row));
  return text_of(json, 2);
}

}  // namespace iridium::cli

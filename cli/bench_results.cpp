#include "cli/bench_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench_axes.h"
#include "cli/descriptor.h"
#include "cli/text_table.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Raised whenever a field changes its meaning or goes away.
constexpr int schema = 1;
constexpr std::string_view kind = "iridium bench";

/// Reasons quote what other programs wrote, which need not be UTF-8.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// A value in a message.
std::string shown(const Json& value) {
  return value.is_structured() ? value.type_name() : text_of(value, -1);
}

Json to_json(const BenchMachine& machine) {
  return {{"name", machine.name},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"device", machine.device},
          {"driver", machine.driver}};
}

Json to_json(const BenchFigure& figure) {
  Json json = {{"operation", figure.operation},
               {"contender", figure.contender},
               {"algorithm", figure.algorithm},
               {"dtype", figure.dtype}};
  if (!figure.op.empty()) json["op"] = figure.op;
  if (!figure.memory.empty()) json["memory"] = figure.memory;
  json.update({{"mode", figure.mode},
               {"ranks", figure.ranks},
               {"bytes", figure.bytes},
               {"blocks", figure.blocks}});
  if (!figure.chosen.empty()) json["chosen"] = figure.chosen;
  if (figure.shape)
    json.update({{"m", figure.shape->rows},
                 {"n", figure.shape->columns},
                 {"k", figure.shape->depth},
                 {"layout", figure.layout}});
  if (figure.rows != 0) json["rows"] = figure.rows;
  if (figure.tile != 0) json["tile"] = figure.tile;
  if (figure.link != Link::shared) json["link"] = name(figure.link);
  if (figure.beside_compute) json["beside_compute"] = true;
  if (!figure.skipped.empty()) json["skipped"] = figure.skipped;
  if (!figure.failed.empty()) json["failed"] = figure.failed;
  if (!figure.has_numbers()) return json;
  json.update({{"samples", figure.samples},
               {"calls", figure.calls},
               {"median_us", figure.median_us},
               {"p10_us", figure.p10_us},
               {"p90_us", figure.p90_us},
               {"algorithm_gbps", figure.algorithm_gbps},
               {"bus_gbps", figure.bus_gbps},
               {"copy_share", figure.copy_share}});
  if (figure.shape) json["tflops"] = figure.tflops;
  return json;
}

/// An object of the file whose fields are checked as they are read. JSON's own conversions would
/// take `true` for 1 and 2.5 for 2.
class Fields {
 public:
  /// `where` is how messages begin: the path, and the object's place in the file.
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(fmt::format("is {}, not an object", shown(object)));
  }

  bool has(const char* name) const { return object_.contains(name); }

  const Json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) fail(fmt::format("has no field '{}'", name));
    return *found;
  }

  std::string text(const char* name) const {
    return checked(name, at(name).is_string(), "text").get<std::string>();
  }
  /// Empty where there is none.
  std::string optional_text(const char* name) const { return has(name) ? text(name) : ""; }
  Link link(const char* name) const {
    const std::string word = text(name);
    for (const Link link :
         {Link::shared, Link::apart, Link::nvlink, Link::pcie_atomics, Link::pcie})
      if (word == iridium::name(link)) return link;
    fail(fmt::format("has a field '{}' that is {}, not shared, apart, nvlink, pcie_atomics or pcie",
                     name, shown(at(name))));
  }
  bool flag(const char* name) const {
    return checked(name, at(name).is_boolean(), "true or false").get<bool>();
  }
  double number(const char* name) const {
    return checked(name, at(name).is_number(), "a number").get<double>();
  }

  template <std::integral Value>
  Value whole(const char* name) const {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Value>::max());
    const Json& value = at(name);
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
    return checked(name, fits, fmt::format("a whole number from 0 to {}", most)).get<Value>();
  }

  const Json& list(const char* name) const { return checked(name, at(name).is_array(), "a list"); }
  const Json& object(const char* name) const {
    return checked(name, at(name).is_object(), "an object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::invalid_argument, where_ + " " + what);
  }

 private:
  const Json& checked(const char* name, bool is_right, std::string_view wanted) const {
    const Json& value = at(name);
    if (!is_right)
      fail(fmt::format("has a field '{}' that is {}, not {}", name, shown(value), wanted));
    return value;
  }

  const Json& object_;
  std::string where_;
};

BenchMachine machine_from(const Fields& fields) {
  return {fields.text("name"), fields.text("cpu"), fields.whole<int>("cores"),
          fields.text("device"), fields.text("driver")};
}

BenchFigure figure_from(const Fields& fields) {
  BenchFigure figure;
  figure.operation = fields.text("operation");
  figure.contender = fields.text("contender");
  figure.algorithm = fields.text("algorithm");
  figure.chosen = fields.optional_text("chosen");
  figure.dtype = fields.text("dtype");
  figure.op = fields.optional_text("op");
  figure.memory = fields.optional_text("memory");
  figure.mode = fields.text("mode");
  figure.ranks = fields.whole<int>("ranks");
  figure.bytes = fields.whole<std::size_t>("bytes");
  figure.blocks = fields.whole<int>("blocks");
  if (fields.has("m")) {
    figure.shape = {fields.whole<std::size_t>("m"), fields.whole<std::size_t>("n"),
                    fields.whole<std::size_t>("k")};
    figure.layout = fields.text("layout");
  }
  if (fields.has("rows")) figure.rows = fields.whole<int>("rows");
  if (fields.has("tile")) figure.tile = fields.whole<int>("tile");
  if (fields.has("link")) figure.link = fields.link("link");
  if (fields.has("beside_compute")) figure.beside_compute = fields.flag("beside_compute");
  figure.skipped = fields.optional_text("skipped");
  figure.failed = fields.optional_text("failed");
  if (!figure.skipped.empty() && !figure.failed.empty())
    fields.fail("has both fields 'skipped' and 'failed'");
  if (!figure.has_numbers()) return figure;
  figure.samples = fields.whole<std::size_t>("samples");
  figure.calls = fields.whole<std::size_t>("calls");
  figure.median_us = fields.number("median_us");
  figure.p10_us = fields.number("p10_us");
  figure.p90_us = fields.number("p90_us");
  figure.algorithm_gbps = fields.number("algorithm_gbps");
  figure.bus_gbps = fields.number("bus_gbps");
  figure.copy_share = fields.number("copy_share");
  if (figure.shape) figure.tflops = fields.number("tflops");
  return figure;
}

Versions versions_from(const Json& json, const std::string& where) {
  const Fields fields(json, where);
  Versions versions;
  for (const auto& [name, value] : json.items()) versions[name] = fields.text(name.c_str());
  return versions;
}

/// "f.json: figure 3 (all_reduce)", counted from 1.
std::string place_of(const std::string& path, std::size_t index, const Json& figure) {
  std::string place = fmt::format("{}: figure {}", path, index + 1);
  if (figure.is_object() && figure.contains("operation") && figure["operation"].is_string())
    place += fmt::format(" ({})", figure["operation"].get<std::string>());
  return place;
}

Json parsed(const std::string& text, const std::string& path) {
  if (text.empty()) throw Error(Errc::invalid_argument, path + " is empty");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // The parser counts bytes from 1, and the end as one more.
    if (error.byte > text.size()) throw Error(Errc::invalid_argument, path + " is cut off");
    throw Error(Errc::invalid_argument,
                fmt::format("{} is not JSON: it cannot be read from byte {} on", path, error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(Errc::invalid_argument,
                path + " cannot be read: it has a number that is too large");
  }
}

void check_kind(const Json& json, const std::string& path) {
  const std::string refusal = path + " is not a file of figures of iridium bench";
  if (!json.is_object() || !json.contains("kind")) throw Error(Errc::invalid_argument, refusal);
  if (json["kind"] != kind)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: its kind is {}", refusal, shown(json["kind"])));
}

struct Column {
  std::string_view heading;
  std::string (*cell)(const BenchFigure& figure);
  bool is_optional = false;  ///< left out where every cell is empty
};

/// The cell of a number that failed and skipped figures do not have.
template <auto member, int digits = -1>
std::string measured(const BenchFigure& figure) {
  if (!figure.has_numbers()) return "";
  if constexpr (digits < 0)
    return fmt::format("{}", figure.*member);
  else
    return fmt::format("{:.{}f}", figure.*member, digits);
}

/// The same, where 0 says that there is none.
template <auto member, int digits>
std::string measured_if_any(const BenchFigure& figure) {
  return figure.*member > 0 ? measured<member, digits>(figure) : "";
}

template <auto member>
std::string plain(const BenchFigure& figure) {
  return fmt::format("{}", figure.*member);
}

template <auto extent>
std::string extent_cell(const BenchFigure& figure) {
  return figure.shape ? std::to_string(*figure.shape.*extent) : "";
}

constexpr std::array csv_columns = {
    Column{"operation", plain<&BenchFigure::operation>},
    Column{"contender", plain<&BenchFigure::contender>},
    Column{"algorithm", plain<&BenchFigure::algorithm>},
    Column{"dtype", plain<&BenchFigure::dtype>},
    Column{"op", plain<&BenchFigure::op>},
    Column{"memory", plain<&BenchFigure::memory>},
    Column{"mode", plain<&BenchFigure::mode>},
    Column{"ranks", plain<&BenchFigure::ranks>},
    Column{"bytes", plain<&BenchFigure::bytes>},
    Column{"m", extent_cell<&MatmulShape::rows>},
    Column{"n", extent_cell<&MatmulShape::columns>},
    Column{"k", extent_cell<&MatmulShape::depth>},
    Column{"layout", plain<&BenchFigure::layout>},
    Column{"blocks", plain<&BenchFigure::blocks>},
    Column{"rows", plain<&BenchFigure::rows>},
    Column{"tile", plain<&BenchFigure::tile>},
    Column{"skipped", plain<&BenchFigure::skipped>},
    Column{"failed", plain<&BenchFigure::failed>},
    Column{"samples", measured<&BenchFigure::samples>},
    Column{"calls", measured<&BenchFigure::calls>},
    Column{"median_us", measured<&BenchFigure::median_us>},
    Column{"p10_us", measured<&BenchFigure::p10_us>},
    Column{"p90_us", measured<&BenchFigure::p90_us>},
    Column{"algorithm_gbps", measured<&BenchFigure::algorithm_gbps>},
    Column{"bus_gbps", measured<&BenchFigure::bus_gbps>},
    Column{"copy_share", measured<&BenchFigure::copy_share>},
    Column{"tflops", measured<&BenchFigure::tflops>},
};

/// As RFC 4180 has it.
std::string quoted_for_csv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char character : cell) {
    if (character == '"') text += '"';
    text += character;
  }
  return text + '"';
}

std::string size_cell(const BenchFigure& figure) {
  return figure.bytes == 0 ? "" : size_text(figure.bytes);
}

std::string algorithm_cell(const BenchFigure& figure) {
  return figure.algorithm + (figure.chosen.empty() ? "" : fmt::format(" ({})", figure.chosen));
}

std::string shape_cell(const BenchFigure& figure) {
  return figure.shape ? name(*figure.shape) : "";
}

/// The cell of a number that an operation chooses where it is 0.
template <auto member>
std::string chosen(const BenchFigure& figure) {
  return figure.*member == 0 ? "" : std::to_string(figure.*member);
}

std::string share_text(const BenchFigure& figure) {
  if (!figure.has_numbers() || figure.copy_share <= 0) return "";
  return fmt::format("{:.0f} %", 100 * figure.copy_share);
}

std::string remark(const BenchFigure& figure) {
  std::string text = !figure.failed.empty()    ? "failed: " + figure.failed
                     : !figure.skipped.empty() ? "skipped: " + figure.skipped
                                               : "";
  std::ranges::replace(text, '\n', ' ');
  return text;
}

constexpr std::array table_columns = {
    Column{"operation", plain<&BenchFigure::operation>},
    Column{"contender", plain<&BenchFigure::contender>},
    Column{"algorithm", algorithm_cell, true},
    Column{"dtype", plain<&BenchFigure::dtype>, true},
    Column{"op", plain<&BenchFigure::op>, true},
    Column{"memory", plain<&BenchFigure::memory>, true},
    Column{"layout", plain<&BenchFigure::layout>, true},
    Column{"blocks", chosen<&BenchFigure::blocks>, true},
    Column{"rows", chosen<&BenchFigure::rows>, true},
    Column{"tile", chosen<&BenchFigure::tile>, true},
    Column{"ranks", plain<&BenchFigure::ranks>},
    Column{"M x N x K", shape_cell, true},
    Column{"bytes", size_cell, true},
    Column{"mode", plain<&BenchFigure::mode>},
    Column{"median us", measured<&BenchFigure::median_us, 3>},
    Column{"10 %", measured<&BenchFigure::p10_us, 3>},
    Column{"90 %", measured<&BenchFigure::p90_us, 3>},
    Column{"TFLOP/s", measured_if_any<&BenchFigure::tflops, 3>, true},
    Column{"GB/s", measured_if_any<&BenchFigure::algorithm_gbps, 2>, true},
    Column{"bus GB/s", measured_if_any<&BenchFigure::bus_gbps, 2>, true},
    Column{"copy share", share_text, true},
    Column{"remark", remark, true},
};

std::vector<Column> columns_for(const std::vector<BenchFigure>& figures) {
  std::vector<Column> columns;
  std::ranges::copy_if(table_columns, std::back_inserter(columns), [&](const Column& column) {
    const auto has_cell = [&](const BenchFigure& figure) { return !column.cell(figure).empty(); };
    return !column.is_optional || std::ranges::any_of(figures, has_cell);
  });
  return columns;
}

std::string summary(const BenchRun& run) {
  const auto count_set = [&](std::string BenchFigure::* reason) {
    return std::ranges::count_if(
        run.figures, [&](const BenchFigure& figure) { return !(figure.*reason).empty(); });
  };
  return fmt::format("{} {}, {} skipped, {} failed{}\n", run.figures.size(),
                     run.figures.size() == 1 ? "figure" : "figures",
                     count_set(&BenchFigure::skipped), count_set(&BenchFigure::failed),
                     run.complete ? "" : "; the run is not complete");
}

}  // namespace

bool BenchRun::has_failed() const {
  return std::ranges::any_of(figures, [](const BenchFigure& one) { return !one.failed.empty(); });
}

std::string as_json(const BenchRun& run) {
  const Json head = {{"schema", schema},         {"kind", kind},
                     {"version", run.version},   {"commit", run.commit},
                     {"command", run.command},   {"machine", to_json(run.machine)},
                     {"versions", run.versions}, {"complete", run.complete}};
  std::string figures;
  for (const BenchFigure& figure : run.figures)
    figures += fmt::format("{}\n    {}", figures.empty() ? "" : ",", as_line(figure));
  std::string text = text_of(head, 2);
  text.resize(text.size() - std::string_view("\n}").size());
  return text +
         fmt::format(",\n  \"figures\": [{}{}]\n}}\n", figures, figures.empty() ? "" : "\n  ");
}

BenchRun run_from_json(const std::string& text, const std::string& path) {
  const Json json = parsed(text, path);
  check_kind(json, path);
  const Fields fields(json, path);
  if (const Json& found = fields.at("schema"); found != schema)
    fields.fail(fmt::format("has schema {}; this build reads {}", shown(found), schema));
  BenchRun run;
  run.version = fields.text("version");
  run.commit = fields.text("commit");
  run.command = fields.text("command");
  run.machine = machine_from(Fields(fields.at("machine"), path + ": machine"));
  if (fields.has("versions"))
    for (const auto& [contender, versions] : fields.object("versions").items())
      run.versions[contender] =
          versions_from(versions, fmt::format("{}: versions of {}", path, contender));
  run.complete = fields.flag("complete");
  const Json& figures = fields.list("figures");
  for (std::size_t i = 0; i < figures.size(); ++i)
    run.figures.push_back(figure_from(Fields(figures[i], place_of(path, i, figures[i]))));
  return run;
}

BenchRun read_run(const std::string& path) {
  // Others may never end.
  std::error_code problem;
  if (std::filesystem::exists(path, problem) && !std::filesystem::is_regular_file(path, problem))
    throw Error(Errc::system, fmt::format("cannot open {}: it is no file", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_system_error("cannot open " + path);
  std::string text;
  std::array<char, 4096> chunk;
  do {
    file.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  if (file.bad()) throw_system_error("cannot read " + path);
  return run_from_json(text, path);
}

std::string as_csv(const BenchRun& run) {
  std::string text;
  for (const Column& column : csv_columns)
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.heading);
  text += "\n";
  for (const BenchFigure& figure : run.figures) {
    std::string line;
    for (const Column& column : csv_columns)
      line += (&column == csv_columns.data() ? "" : ",") + quoted_for_csv(column.cell(figure));
    text += line + "\n";
  }
  return text;
}

std::string as_table(const BenchRun& run) {
  const std::vector<Column> columns = columns_for(run.figures);
  TextTable::Row heading;
  for (const Column& column : columns) heading.emplace_back(column.heading);
  TextTable table(std::move(heading));
  for (const BenchFigure& figure : run.figures) {
    TextTable::Row row;
    for (const Column& column : columns) row.push_back(column.cell(figure));
    table.add_row(std::move(row));
  }
  return (table.is_empty() ? "" : table.render() + "\n") + summary(run);
}

Versions versions_from_json(const std::string& text, const std::string& where) {
  return versions_from(parsed(text, where), where);
}

std::string as_line(const BenchFigure& figure) {
  return text_of(to_json(figure), -1);
}

BenchFigure figure_from_line(const std::string& line, const std::string& where) {
  const Json json = parsed(line, where);
  return figure_from(Fields(json, where));
}

}  // namespace iridium::cli

// What `iridium bench` is to measure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "cli/bench.h"
#include "cli/bench_axes.h"
#include "cli/names.h"
#include "iridium/errors.h"
#include "iridium/numbers.h"

namespace iridium::cli {
namespace {

constexpr int most_blocks = 65'535;
constexpr std::size_t element_bytes = 4;
constexpr std::size_t most_bytes = std::size_t{64} << 30;

const Operation& require(const std::vector<Operation>& list, const std::string& kind,
                         const std::string& name) {
  const auto found = std::ranges::find(list, name, &Operation::name);
  if (found == list.end()) refuse_name(kind, name, names_of(list));
  return *found;
}

const Parameter* find_parameter(const std::vector<Parameter>& parameters, const std::string& name) {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

/// Of a parameter that a call can leave to the operation.
constexpr std::string_view automatic = "automatic";

std::vector<std::string> distinct(std::vector<std::string> words) {
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  return words;
}

/// "blocks=8,16" as a parameter.
Parameter parse_setting(const std::string& text) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(Errc::invalid_argument, fmt::format("--set is '{}': {}", text, reason));
  };
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size() || text.back() == ',')
    refuse("expected NAME=VALUE or NAME=VALUE,VALUE");
  Parameter setting = {text.substr(0, sign), {}};
  std::istringstream values(text.substr(sign + 1));
  for (std::string value; std::getline(values, value, ',');) {
    if (value.empty()) refuse("a value is empty");
    if (std::ranges::find(setting.values, value) != setting.values.end())
      refuse(fmt::format("{} stands twice", value));
    setting.values.push_back(value);
  }
  if (setting.name == "bytes") refuse("sizes are given by --bytes");
  if (setting.name == "shape") refuse("shapes are given by --shape");
  for (const std::string& value : setting.values) {
    if (setting.name == "blocks" && value != automatic)
      parse_numbers("--blocks", value, 1, most_blocks);
    if (setting.name == "tile" && value != automatic && value != "1" && value != "2" &&
        value != "4")
      refuse("a tile is 1, 2 or 4 vectors");
  }
  return setting;
}

/// Throws for a value that means nothing to any of the operations, before a long run finds out.
void check_values(const Parameter& setting, const std::vector<const Operation*>& operations) {
  std::vector<std::string> known;
  for (const Operation* operation : operations)
    if (const Parameter* parameter = find_parameter(operation->parameters, setting.name))
      known.insert(known.end(), parameter->values.begin(), parameter->values.end());
  for (const std::string& value : setting.values) {
    const bool is_known = std::ranges::find(known, value) != known.end();
    // Of collectives the registry does not list all types.
    if (setting.name == "dtype" && !is_known) parse_data_type(value);
    if (setting.name == "op") parse_reduce_op(value);
    const bool is_listed =
        setting.name == "algorithm" || setting.name == "memory" || setting.name == "layout";
    if (is_listed && !is_known) refuse_name(setting.name, value, distinct(std::move(known)));
  }
}

std::vector<Parameter> parse_settings(const std::vector<std::string>& texts,
                                      const std::vector<const Operation*>& operations) {
  std::vector<Parameter> settings;
  for (const std::string& text : texts) {
    // All of them are measured anyway.
    if (text == "algorithm=all") continue;
    Parameter setting = parse_setting(text);
    const auto has_it = [&](const Operation* operation) {
      return find_parameter(operation->parameters, setting.name) != nullptr;
    };
    if (std::ranges::none_of(operations, has_it))
      throw Error(
          Errc::invalid_argument,
          fmt::format("--set {}: none of the operations has such a parameter", setting.name));
    if (find_parameter(settings, setting.name) != nullptr)
      throw Error(Errc::invalid_argument, fmt::format("--set {} is given twice", setting.name));
    check_values(setting, operations);
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<std::size_t> parse_bytes(const std::string& text) {
  std::vector<std::size_t> sizes = parse_sizes("--bytes", text);
  for (const std::size_t size : sizes) {
    if (size > most_bytes)
      throw Error(Errc::invalid_argument,
                  fmt::format("--bytes is '{}': {} is over the limit of {}", text, size_text(size),
                              size_text(most_bytes)));
    if (size % element_bytes != 0)
      throw Error(Errc::invalid_argument,
                  fmt::format("--bytes is '{}': {} is not a multiple of {} bytes", text, size,
                              element_bytes));
  }
  return sizes;
}

/// The values of a parameter that are to be measured: those given, else the default; one empty
/// value where the operation has no such parameter.
std::vector<std::string> values_of(const Operation& operation, const std::string& name,
                                   const std::vector<Parameter>& settings) {
  const Parameter* parameter = find_parameter(operation.parameters, name);
  if (parameter == nullptr) return {""};
  const Parameter* given = find_parameter(settings, name);
  std::vector<std::string> values = given != nullptr ? given->values : std::vector<std::string>();
  // Those of other operations in the same run.
  if (name == "algorithm" || name == "memory")
    std::erase_if(values, [&](const std::string& value) {
      return std::ranges::find(parameter->values, value) == parameter->values.end();
    });
  // Plain copies choose nothing.
  if (std::ranges::find(parameter->values, automatic) == parameter->values.end())
    std::erase(values, automatic);
  return values.empty() ? std::vector{parameter->values.at(0)} : values;
}

/// The operation with the values of its parameters that take turns in the heat: all algorithms,
/// unless told.
Operation chosen(const Operation& operation, const BenchHeat& heat,
                 const std::vector<Parameter>& settings) {
  const Arguments of_heat = {{"bytes", std::to_string(heat.bytes)},
                             {"shape", heat.shape ? iridium::name(*heat.shape) : ""},
                             {"dtype", heat.dtype},
                             {"op", heat.op},
                             {"layout", heat.layout}};
  Operation chosen = operation;
  for (Parameter& parameter : chosen.parameters) {
    if (const auto fixed = of_heat.find(parameter.name); fixed != of_heat.end())
      parameter.values = {fixed->second};
    else if (parameter.name != "algorithm" || find_parameter(settings, "algorithm") != nullptr)
      parameter.values = values_of(operation, parameter.name, settings);
  }
  return chosen;
}

void add_entries(BenchHeat& heat, const std::string& contender, const Operation& operation,
                 const std::vector<Parameter>& settings) {
  constexpr std::array in_figures = {"bytes",  "shape",     "dtype", "op",
                                     "layout", "algorithm", "memory"};
  for (Arguments& arguments : combinations(chosen(operation, heat, settings))) {
    // What nobody asked for stays as the operation chooses, and out of the figures.
    std::erase_if(arguments, [&](const auto& argument) {
      return std::ranges::find(in_figures, argument.first) == in_figures.end() &&
             find_parameter(settings, argument.first) == nullptr;
    });
    heat.entries.push_back({contender, &operation, std::move(arguments)});
  }
}

/// Every operation with a payload has plain copies beside it, an all-gather those it could be made
/// of, too.
bool is_limit_of(const Operation& limit, const Operation& operation) {
  return limit.name != "gather_copies" || operation.name == "all_gather";
}

/// How large heats are: each has bytes, or a shape, or neither.
struct Sizes {
  std::vector<std::size_t> bytes;
  std::vector<MatmulShape> shapes;

  /// The operation's heats, still without anything but a size.
  std::vector<BenchHeat> heats(const Operation& operation) const {
    std::vector<BenchHeat> heats;
    if (find_parameter(operation.parameters, "bytes") != nullptr)
      for (const std::size_t each : bytes) heats.push_back({operation.name, each});
    else if (const Parameter* shape = find_parameter(operation.parameters, "shape"))
      for (const MatmulShape& each :
           shapes.empty() ? std::vector{parse_matmul_shape(shape->values.at(0))} : shapes)
        heats.push_back({operation.name, 0, each});
    else
      heats.push_back({operation.name});
    return heats;
  }
};

Sizes sizes_of(const BenchCommand& command, const std::vector<const Operation*>& operations) {
  const bool has_shapes = std::ranges::any_of(operations, [](const Operation* operation) {
    return find_parameter(operation->parameters, "shape") != nullptr;
  });
  if (!command.shapes.empty() && !has_shapes)
    throw Error(Errc::invalid_argument, "--shape: none of the operations is a product");
  return {parse_bytes(command.bytes), parse_shapes("--shape", command.shapes)};
}

/// What is the same thing: another type, reduction or layout is a heat of its own.
std::vector<BenchHeat> empty_heats(const Operation& operation, const Sizes& sizes,
                                   const std::vector<Parameter>& settings) {
  std::vector<BenchHeat> heats;
  for (const std::string& dtype : values_of(operation, "dtype", settings))
    for (const std::string& op : values_of(operation, "op", settings))
      for (const std::string& layout : values_of(operation, "layout", settings))
        for (BenchHeat& heat : sizes.heats(operation)) {
          heat.dtype = dtype;
          heat.op = op;
          heat.layout = layout;
          heats.push_back(std::move(heat));
        }
  return heats;
}

std::string argument(const Arguments& arguments, const std::string& name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? "" : found->second;
}

/// 0 where it is left to the operation.
int number_argument(const Arguments& arguments, const std::string& name) {
  const std::string text = argument(arguments, name);
  return text.empty() || text == automatic ? 0 : std::stoi(text);
}

}  // namespace

std::vector<std::string> default_shapes(const std::string& backend) {
  // On CPUs some 50 ms each with the slowest algorithm.
  if (backend == "host") return {"1x512x512", "16x512x512", "128x256x512"};
  return {"16x4096x4096", "256x4096x4096", "4096x4096x4096"};
}

std::vector<std::string> names_of(const std::vector<Operation>& list) {
  std::vector<std::string> names;
  for (const Operation& operation : list) names.push_back(operation.name);
  return names;
}

std::vector<BenchHeat> plan(const BenchCommand& command, const std::vector<Operation>& known) {
  std::vector<const Operation*> selected;
  for (const std::string& name : command.operations)
    selected.push_back(&require(known, "operation", name));
  std::vector<const Operation*> baselines;
  for (const std::string& name : command.baselines)
    baselines.push_back(&require(copy_limits(), "baseline", name));
  std::vector<const Operation*> all = selected;
  all.insert(all.end(), baselines.begin(), baselines.end());
  const std::vector<Parameter> settings = parse_settings(command.settings, all);
  const Sizes sizes = sizes_of(command, selected);

  std::vector<BenchHeat> heats;
  for (const Operation* operation : selected) {
    const bool has_payload = find_parameter(operation->parameters, "bytes") != nullptr;
    for (BenchHeat& heat : empty_heats(*operation, sizes, settings)) {
      add_entries(heat, "iridium", *operation, settings);
      if (has_payload)
        for (const Operation* baseline : baselines)
          if (is_limit_of(*baseline, *operation))
            add_entries(heat, baseline->name, *baseline, settings);
      heats.push_back(std::move(heat));
    }
  }
  return heats;
}

bool is_of(const BenchFigure& figure, const BenchHeat& heat) {
  return figure.operation == heat.operation && figure.bytes == heat.bytes &&
         figure.shape == heat.shape && figure.dtype == heat.dtype && figure.op == heat.op &&
         figure.layout == heat.layout;
}

BenchFigure blank_figure(const BenchHeat& heat, const BenchHeat::Entry& entry, int ranks,
                         const std::string& mode) {
  BenchFigure figure;
  figure.operation = heat.operation;
  figure.contender = entry.contender;
  figure.algorithm = argument(entry.arguments, "algorithm");
  figure.dtype = heat.dtype;
  figure.op = heat.op;
  figure.memory = argument(entry.arguments, "memory");
  figure.blocks = number_argument(entry.arguments, "blocks");
  figure.rows = number_argument(entry.arguments, "rows");
  figure.tile = number_argument(entry.arguments, "tile");
  figure.mode = mode;
  figure.ranks = ranks;
  figure.bytes = heat.bytes;
  figure.shape = heat.shape;
  figure.layout = heat.layout;
  return figure;
}

}  // namespace iridium::cli

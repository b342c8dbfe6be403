// What `iridium bench` is to measure.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cli/bench.h"
#include "cli/bench_axes.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

constexpr int most_blocks = 65'535;
constexpr std::size_t element_bytes = 4;
constexpr std::size_t most_bytes = std::size_t{64} << 30;

const Operation& require(const std::vector<Operation>& list, const std::string& kind,
                         const std::string& name) {
  const auto found = std::ranges::find(list, name, &Operation::name);
  if (found != list.end()) return *found;
  std::vector<std::string> names = nearest_names(name, names_of(list));
  const bool is_like_some = !names.empty();
  if (!is_like_some) names = names_of(list);
  throw Error(Errc::invalid_argument,
              fmt::format("there is no {} '{}'; {} {}", kind, name,
                          is_like_some ? "did you mean" : "there are", fmt::join(names, ", ")));
}

bool has_parameter(const Operation& operation, const std::string& name) {
  return std::ranges::find(operation.parameters, name, &Parameter::name) !=
         operation.parameters.end();
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
  if (setting.name == "blocks") parse_numbers("--blocks", text.substr(sign + 1), 1, most_blocks);
  return setting;
}

std::vector<Parameter> parse_settings(const std::vector<std::string>& texts,
                                      const std::vector<const Operation*>& operations) {
  std::vector<Parameter> settings;
  for (const std::string& text : texts) {
    // All of them are measured anyway.
    if (text == "algorithm=all") continue;
    Parameter setting = parse_setting(text);
    const auto has_it = [&](const Operation* operation) {
      return has_parameter(*operation, setting.name);
    };
    if (std::ranges::none_of(operations, has_it))
      throw Error(
          Errc::invalid_argument,
          fmt::format("--set {}: none of the operations has such a parameter", setting.name));
    if (std::ranges::find(settings, setting.name, &Parameter::name) != settings.end())
      throw Error(Errc::invalid_argument, fmt::format("--set {} is given twice", setting.name));
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::vector<std::size_t> parse_bytes(const std::string& text) {
  std::vector<std::size_t> sizes = parse_sizes("--bytes", text);
  for (const std::size_t size : sizes)
    if (size % element_bytes != 0 || size > most_bytes)
      throw Error(Errc::invalid_argument,
                  fmt::format("--bytes is '{}': {} is not a multiple of {} bytes up to {}", text,
                              size, element_bytes, size_text(most_bytes)));
  return sizes;
}

/// The operation with the values of its parameters that are to be measured: those given, else the
/// default, but all algorithms.
Operation chosen(const Operation& operation, const std::vector<Parameter>& settings) {
  Operation chosen = operation;
  for (Parameter& parameter : chosen.parameters) {
    const auto given = std::ranges::find(settings, parameter.name, &Parameter::name);
    if (given != settings.end())
      parameter.values = given->values;
    else if (parameter.name != "algorithm")
      parameter.values.resize(1);
  }
  return chosen;
}

void add_entries(BenchHeat& heat, const std::string& contender, const Operation& operation,
                 const std::vector<Parameter>& settings) {
  for (Arguments& arguments : combinations(chosen(operation, settings))) {
    if (heat.bytes > 0) arguments["bytes"] = std::to_string(heat.bytes);
    // What nobody asked for stays as the operation chooses, and out of the figures.
    std::erase_if(arguments, [&](const auto& argument) {
      return argument.first != "bytes" && argument.first != "algorithm" &&
             std::ranges::find(settings, argument.first, &Parameter::name) == settings.end();
    });
    heat.entries.push_back({contender, &operation, std::move(arguments)});
  }
}

std::string argument(const Arguments& arguments, const std::string& name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? "" : found->second;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Operation>& list) {
  std::vector<std::string> names;
  for (const Operation& operation : list) names.push_back(operation.name);
  return names;
}

std::vector<BenchHeat> plan(const BenchCommand& command) {
  std::vector<const Operation*> selected;
  for (const std::string& name : command.operations)
    selected.push_back(&require(operations(), "operation", name));
  std::vector<const Operation*> baselines;
  for (const std::string& name : command.baselines)
    baselines.push_back(&require(copy_limits(), "baseline", name));
  std::vector<const Operation*> all = selected;
  all.insert(all.end(), baselines.begin(), baselines.end());
  const std::vector<Parameter> settings = parse_settings(command.settings, all);
  const std::vector<std::size_t> sizes = parse_bytes(command.bytes);

  std::vector<BenchHeat> heats;
  for (const Operation* operation : selected) {
    const bool has_payload = has_parameter(*operation, "bytes");
    for (const std::size_t bytes : has_payload ? sizes : std::vector<std::size_t>{0}) {
      BenchHeat heat = {operation->name, bytes, {}};
      add_entries(heat, "iridium", *operation, settings);
      if (has_payload)
        for (const Operation* baseline : baselines)
          add_entries(heat, baseline->name, *baseline, settings);
      heats.push_back(std::move(heat));
    }
  }
  return heats;
}

BenchFigure blank_figure(const BenchHeat& heat, const BenchHeat::Entry& entry, int ranks,
                         const std::string& mode) {
  BenchFigure figure;
  figure.operation = heat.operation;
  figure.contender = entry.contender;
  figure.algorithm = argument(entry.arguments, "algorithm");
  figure.dtype = argument(entry.arguments, "dtype");
  const std::string blocks = argument(entry.arguments, "blocks");
  figure.blocks = blocks.empty() ? 0 : std::stoi(blocks);
  figure.mode = mode;
  figure.ranks = ranks;
  figure.bytes = heat.bytes;
  return figure;
}

}  // namespace iridium::cli

#include "cli/variable_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/names.h"
#include "iridium/settings.h"

namespace iridium::cli {
namespace {

constexpr std::string_view prefix = "IRIDIUM_";

/// The settings' variables, without the prefix.
std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Setting& setting : settings())
    if (setting.variable.starts_with(prefix))
      names.emplace_back(setting.variable.substr(prefix.size()));
  return names;
}

}  // namespace

std::vector<std::string> misspelt_settings(const std::vector<std::string>& environment) {
  const std::vector<std::string> known = known_names();
  std::vector<std::string> lines;
  for (const std::string_view entry : environment) {
    if (!entry.starts_with(prefix)) continue;
    const std::string_view name = entry.substr(prefix.size(), entry.find('=') - prefix.size());
    if (name.empty() || std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string> near = nearest_names(name, known);
    if (!near.empty())
      lines.push_back(fmt::format("{}{} is no setting and does nothing; did you mean {}{}?", prefix,
                                  name, prefix, near.front()));
  }
  return lines;
}

}  // namespace iridium::cli

// Every setting there is, in one table: the documentation page and `iridium info --settings` are
// made from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace iridium {

/// One row of the table. A value given in the program wins over the environment, which wins over
/// the default.
struct Setting {
  std::string_view option;    ///< where a program sets it, "ContextOptions::timeout"; may be empty
  std::string_view flag;      ///< the flag of `iridium run`; may be empty
  std::string_view variable;  ///< the environment variable; may be empty
  std::string_view default_value;  ///< as a person writes it
  std::string_view meaning;        ///< one sentence
};

/// All settings, in the order of the documentation.
std::span<const Setting> settings();

/// The settings as a Markdown table.
std::string settings_markdown();

}  // namespace iridium

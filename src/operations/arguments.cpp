#include "operations/arguments.h"

#include <fmt/format.h>

#include "base/text.h"

namespace iridium {

std::string text_argument(const Arguments& arguments, const Parameter& parameter) {
  const auto given = arguments.find(parameter.name);
  return given == arguments.end() ? parameter.values.front() : given->second;
}

std::size_t count_argument(const Arguments& arguments, const Parameter& parameter) {
  const std::string text = text_argument(arguments, parameter);
  const auto count = parse_number(text);
  if (!count || *count == 0)
    throw Error(Errc::invalid_argument,
                fmt::format("{} is '{}': expected a number from 1 up", parameter.name, text));
  return *count;
}

}  // namespace iridium

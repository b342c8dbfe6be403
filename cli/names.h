// Names that people type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace iridium::cli {

/// The names most like `word`, best first: what somebody who wrote it may have meant.
std::vector<std::string> nearest_names(std::string_view word,
                                       const std::vector<std::string>& names);

/// Throws `invalid_argument`: there is no such `kind` as `name`, but these are like it, or there
/// are these at all.
[[noreturn]] void refuse_name(std::string_view kind, std::string_view name,
                              const std::vector<std::string>& known);

}  // namespace iridium::cli

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "iridium/errors.h"
#include "iridium/matmul_shape.h"

namespace iridium {

std::string name(const MatmulShape& shape) {
  return fmt::format("{}x{}x{}", shape.rows, shape.columns, shape.depth);
}

MatmulShape parse_matmul_shape(std::string_view text) {
  constexpr std::size_t most = std::size_t{1} << 30;
  std::array<std::size_t, 3> extents = {};
  std::string_view rest = text;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool is_last = i + 1 == extents.size();
    const std::size_t end = is_last ? rest.size() : rest.find('x');
    const auto extent =
        end == std::string_view::npos ? std::nullopt : parse_number(rest.substr(0, end));
    if (!extent || *extent == 0 || *extent > most)
      throw Error(Errc::invalid_argument,
                  fmt::format("shape is '{}': expected MxNxK, such as 4096x3584x8192, each from 1 "
                              "to {}",
                              text, most));
    extents[i] = *extent;
    if (!is_last) rest.remove_prefix(end + 1);
  }
  return {extents[0], extents[1], extents[2]};
}

}  // namespace iridium

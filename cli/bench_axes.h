// The axes of a benchmark, as they are written on a command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/matmul_shape.h"

namespace iridium::cli {

/// "2,4,8": numbers from `least` to `most`, in this order, each once. Throws `invalid_argument`,
/// naming `option`.
std::vector<int> parse_numbers(std::string_view option, std::string_view text, int least, int most);

/// Sizes in bytes: "64K", a list "4K,1M", or a range "4K:64M", "4K:64M:x2" in which every size is
/// four, or so many, times the one before. K, M and G are powers of 1024. Throws
/// `invalid_argument`, naming `option`.
std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text);

/// Shapes of products, in this order, each once: every text is one or a list,
/// "16x3584x8192,64x64x64". Throws `invalid_argument`, with an example.
std::vector<MatmulShape> parse_shapes(std::string_view option,
                                      const std::vector<std::string>& texts);

/// "4 KiB", "1.5 MiB".
std::string size_text(std::size_t bytes);

}  // namespace iridium::cli

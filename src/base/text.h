// How values are read from text and written into messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iridium {

/// "rank 3" or "ranks 1, 2, 5".
std::string list_ranks(const std::vector<int>& ranks);
/// "1536 bytes (1.5 KiB)".
std::string format_bytes(std::size_t bytes);
/// "30 s" or "1.5 s".
std::string format_seconds(std::chrono::milliseconds time);

/// A whole decimal number without sign or blanks, nothing else.
std::optional<std::uint64_t> parse_number(std::string_view text);
/// Bytes, with an optional K, M, G or T (powers of 1024).
std::optional<std::size_t> parse_bytes(std::string_view text);
/// A positive number of seconds, fractions allowed, at most a year.
std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text);

/// A 64-bit FNV-1a hash.
std::uint64_t hash_text(std::string_view text);

}  // namespace iridium

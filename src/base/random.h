// Names and tokens nobody can guess.
#pragma once

#include <cstdint>
#include <string>

namespace iridium {

/// 64 random bits from the operating system, never 0.
std::uint64_t random_id();
/// 128 random bits as 32 hexadecimal digits.
std::string random_token();

}  // namespace iridium

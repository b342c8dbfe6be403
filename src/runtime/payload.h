// Values to bytes and back, for control messages. Reading checks every bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "iridium/errors.h"

namespace iridium {

using Bytes = std::vector<std::byte>;

class PayloadWriter {
 public:
  template <class T>
  PayloadWriter& number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    return bytes(std::as_bytes(std::span(&value, 1)));
  }
  PayloadWriter& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    return bytes(std::as_bytes(std::span(value)));
  }
  /// Raw bytes, without their number.
  PayloadWriter& bytes(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Throws `protocol` when the bytes end too early.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto bytes = take(number<std::uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size()) throw Error(Errc::protocol, "a control message ends too early");
    const auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }

  std::span<const std::byte> bytes_;
};

}  // namespace iridium

// File descriptors that close themselves.
#pragma once

#include <string>
#include <utility>

namespace iridium::cli {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void reset() noexcept;

 private:
  int number_ = -1;
};

/// Both ends of a pipe, closed on exec.
struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

Pipe make_pipe();

/// Throws `Errc::system` with `what` and the text of `errno`.
[[noreturn]] void throw_system_error(const std::string& what);

/// Opens /dev/null in place of a closed standard input, output or error, so that no pipe gets one
/// of their numbers.
void open_standard_descriptors();

}  // namespace iridium::cli

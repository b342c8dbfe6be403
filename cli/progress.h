// How far a long command is: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace iridium::cli {

/// "12 of 40 figures, about 2 min left".
std::string progress_text(const std::string& unit, std::size_t done, std::size_t total,
                          std::chrono::duration<double> elapsed);

/// Writes to standard error.
class ProgressBar {
 public:
  ProgressBar(std::string unit, std::size_t total);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Ends the line of a bar.
  ~ProgressBar();

  /// Shows that so many are done, if that has changed.
  void show(std::size_t done);

 private:
  std::string unit_;
  std::size_t total_;
  std::optional<std::size_t> shown_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// While it lives, asks now and then how much is done, and shows it.
class ProgressWatch {
 public:
  ProgressWatch(ProgressBar& bar, std::function<std::size_t()> done);
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;
  ~ProgressWatch();

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace iridium::cli

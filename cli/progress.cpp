#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <utility>

namespace iridium::cli {
namespace {

constexpr std::chrono::milliseconds interval{200};
constexpr std::size_t bar_width = 30;

std::string time_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

std::string progress_text(const std::string& unit, std::size_t done, std::size_t total,
                          std::chrono::duration<double> elapsed) {
  std::string text = fmt::format("{} of {} {}", done, total, unit);
  if (done > 0 && done < total)
    text += fmt::format(", about {} left", time_text(elapsed.count() / static_cast<double>(done) *
                                                     static_cast<double>(total - done)));
  return text;
}

ProgressBar::ProgressBar(std::string unit, std::size_t total)
    : unit_(std::move(unit)), total_(total), is_terminal_(::isatty(2) == 1) {}

ProgressBar::~ProgressBar() {
  if (is_terminal_ && shown_) std::cerr << '\n' << std::flush;
}

void ProgressBar::show(std::size_t done) {
  if (done == shown_) return;
  shown_ = done;
  const std::string text =
      progress_text(unit_, done, total_, std::chrono::steady_clock::now() - start_);
  if (!is_terminal_) {
    std::cerr << text + "\n" << std::flush;
    return;
  }
  const std::size_t filled = total_ == 0 ? bar_width : std::min(done, total_) * bar_width / total_;
  // The cursor stays at the beginning: other lines replace the bar.
  std::cerr << fmt::format("\r\x1b[K[{}{}] {}\r", std::string(filled, '#'),
                           std::string(bar_width - filled, ' '), text)
            << std::flush;
}

ProgressWatch::ProgressWatch(ProgressBar& bar, std::function<std::size_t()> done) {
  // Signals are for the thread that waits for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, &bar, done = std::move(done)] {
    while (!stop_) {
      bar.show(done());
      std::this_thread::sleep_for(interval);
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressWatch::~ProgressWatch() {
  stop_ = true;
  thread_.join();
}

}  // namespace iridium::cli

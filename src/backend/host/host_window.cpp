#include "backend/host/host_window.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <vector>

#include "base/system_error.h"
#include "base/text.h"

namespace iridium {
namespace {

class HostWindow final : public Window {
 public:
  HostWindow(int ranks, std::size_t stride) : mapped_(static_cast<std::size_t>(ranks), false) {
    bytes_ = static_cast<std::size_t>(ranks) * stride;
    void* address =
        ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      throw Error(Errc::out_of_memory, fmt::format("cannot reserve {} of addresses for {} segments",
                                                   format_bytes(bytes_), ranks));
    base_ = static_cast<std::byte*>(address);
    stride_ = stride;
  }

  ~HostWindow() override { ::munmap(base_, bytes_); }

  void map(int rank, const FileDescriptor& descriptor) override {
    const std::lock_guard lock(mutex_);
    if (mapped_[static_cast<std::size_t>(rank)]) return;
    check(rank, descriptor);
    void* address = ::mmap(segment(rank), stride_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           descriptor.get(), 0);
    if (address == MAP_FAILED)
      throw system_error(fmt::format("cannot map the segment of rank {}", rank));
    mapped_[static_cast<std::size_t>(rank)] = true;
  }

 private:
  /// A segment that a peer could still shrink would end this process by SIGBUS.
  void check(int rank, const FileDescriptor& descriptor) const {
    struct stat status = {};
    if (::fstat(descriptor.get(), &status) != 0) throw system_error("fstat on a segment");
    const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
    if (static_cast<std::size_t>(status.st_size) != stride_ || seals < 0 ||
        (seals & F_SEAL_SHRINK) == 0)
      throw Error(
          Errc::protocol,
          fmt::format(
              "rank {} sent a segment of {} bytes with seals {:#x}; expected {} bytes, sealed",
              rank, status.st_size, seals, stride_),
          {rank});
  }

  std::size_t bytes_ = 0;
  std::mutex mutex_;
  std::vector<bool> mapped_;
};

struct OpenWindows {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<HostWindow>> by_context;
};

/// Never destroyed: threads may still close windows while the process exits.
OpenWindows& open_windows() {
  static auto& windows = *new OpenWindows;
  return windows;
}

}  // namespace

std::shared_ptr<Window> open_host_window(std::uint64_t context_id, int ranks, std::size_t stride) {
  OpenWindows& windows = open_windows();
  const std::lock_guard lock(windows.mutex);
  std::erase_if(windows.by_context, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<HostWindow>& slot = windows.by_context[context_id];
  std::shared_ptr<HostWindow> window = slot.lock();
  if (!window) slot = window = std::make_shared<HostWindow>(ranks, stride);
  return window;
}

}  // namespace iridium

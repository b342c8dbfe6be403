#include "backend/host/host_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "backend/host/host_stream.h"
#include "backend/host/host_window.h"
#include "base/system_error.h"
#include "base/text.h"

namespace iridium {
namespace {

int cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return "CPU";
}

class HostBackend final : public Backend {
 public:
  HostBackend(const Schedule& schedule, Link link) : schedule_(schedule), link_(link) {}

  BackendKind kind() const override { return BackendKind::host; }

  Placement placement() const override { return Placement::host; }
  std::string place() const override { return {}; }
  std::string stream_place() const override { return host_place; }
  std::string device_name() const override { return device_name_; }
  void check_peers(int rank, const std::vector<std::string>&) override { rank_ = rank; }

  std::size_t granularity() const override {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }

  void check_heap(std::size_t bytes, int ranks) const override {
    const std::size_t limit = host_memory_bytes();
    const auto count = static_cast<std::size_t>(ranks);
    if (bytes > limit / count)
      throw Error(
          Errc::out_of_memory,
          fmt::format(
              "a heap of {} on each of {} ranks is larger than the memory of this machine, {}",
              format_bytes(bytes), ranks, format_bytes(limit)));
  }

  FileDescriptor create_segment(std::size_t bytes) override {
    FileDescriptor segment(::memfd_create("iridium-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!segment) throw system_error("memfd_create");
    if (::ftruncate(segment.get(), static_cast<off_t>(bytes)) != 0)
      throw system_error(fmt::format("cannot make a segment of {}", format_bytes(bytes)));
    if (::fcntl(segment.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      throw system_error("cannot seal a segment");
    return segment;
  }

  std::shared_ptr<Window> open_window(std::uint64_t context_id, int ranks,
                                      std::size_t stride) override {
    return open_host_window(context_id, ranks, stride);
  }

  void zero(std::byte* at, std::size_t bytes) override {
    // Whole pages are given back to the kernel, which is quicker than writing them and costs no
    // memory until they are used.
    const auto page = granularity();
    const auto start = reinterpret_cast<std::uintptr_t>(at);
    const std::size_t head = std::min(bytes, (page - start % page) % page);
    const std::size_t pages = (bytes - head) / page * page;
    if (pages > 0 && ::madvise(at + head, pages, MADV_REMOVE) != 0)
      std::memset(at + head, 0, pages);
    std::memset(at, 0, head);
    std::memset(at + head + pages, 0, bytes - head - pages);
  }

  void write(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  std::shared_ptr<void> allocate_host_visible(std::size_t bytes) override {
    constexpr std::align_val_t line{128};
    void* memory = ::operator new(bytes, line);
    std::memset(memory, 0, bytes);
    return {memory, [](void* address) { ::operator delete(address, line); }};
  }

  Link link(int peer) const override { return peer == rank_ ? Link::shared : link_; }
  std::string object_to_memory(const void*) const override { return {}; }
  // Every fiber gets its turn, however many there are.
  int max_blocks(const WaitingGrids&) const override { return 1024; }
  void check_resident(const detail::KernelEntry&, int, int) const override {}
  std::string object_to_kernel(const detail::KernelEntry& entry) const override {
    return object_to_host_kernel(entry);
  }
  void prepare(const detail::KernelEntry&) override {}

  std::shared_ptr<detail::StreamImpl> make_stream() override {
    Schedule schedule = schedule_;
    if (schedule.seed) *schedule.seed += streams_made_++;
    return make_host_stream(schedule);
  }

  std::shared_ptr<detail::StreamImpl> borrow_stream(void* native_handle) override {
    return find_host_stream(native_handle);
  }

 private:
  const Schedule schedule_;
  const Link link_;
  int rank_ = 0;
  const std::string device_name_ = processor_name();
  std::atomic<std::uint64_t> streams_made_ = 0;
};

}  // namespace

std::size_t host_memory_bytes() {
  std::size_t limit = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::string text;
    if (!(file >> text)) continue;
    if (const auto allowed = parse_number(text)) limit = std::min<std::size_t>(limit, *allowed);
  }
  return limit;
}

BackendInfo describe_host_backend() {
  return {
      .kind = BackendKind::host,
      .available = true,
      .reason = {},
      .devices = {{.name = processor_name(),
                   .memory_bytes = host_memory_bytes(),
                   .processors = cores()}},
      .capabilities = {{"ranks as processes", true, "memfd segments, passed over Unix sockets"},
                       {"ranks as threads", true, "spawn(n, body)"},
                       {"stream capture", true, "recorded and replayed by the library"},
                       {"several hosts", false, "the control plane has no network transport yet"}}};
}

std::unique_ptr<Backend> make_host_backend(const Schedule& schedule, Link link) {
  return std::make_unique<HostBackend>(schedule, link);
}

}  // namespace iridium

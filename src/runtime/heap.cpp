#include "runtime/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "base/text.h"
#include "iridium/errors.h"
#include "runtime/retired_windows.h"

namespace iridium {
namespace {

constexpr std::size_t max_frees_per_report = 8192;

// A report's first byte.
constexpr std::uint8_t report_all = 0;      ///< nothing freed is left out
constexpr std::uint8_t report_more = 1;     ///< more will be reported when its work is done
constexpr std::uint8_t report_gave_up = 2;  ///< more, but its work did not end in time

}  // namespace

class Heap::Block final : public detail::Allocation {
 public:
  Block(std::shared_ptr<Heap> heap, std::uint64_t id, std::size_t offset, std::size_t bytes)
      : Allocation(heap->segment() + offset, bytes),
        heap_(std::move(heap)),
        id_(id),
        offset_(offset) {}
  ~Block() override {
    try {
      heap_->free(id_, offset_);
    } catch (const std::exception& error) {
      log(LogLevel::error, heap_->rank_, "an array was not freed: {}", error.what());
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* at(int rank) const override { return heap_->translate(data(), rank); }
  void keep_until(std::shared_ptr<const Marker> work) const override {
    heap_->streams_->add_work(std::move(work));
  }

 private:
  std::shared_ptr<Heap> heap_;
  std::uint64_t id_;
  std::size_t offset_;
};

Heap::Heap(std::shared_ptr<Window> window, int rank, int size, std::size_t bytes,
           std::shared_ptr<StreamRegistry> streams)
    : window_(std::move(window)),
      rank_(rank),
      size_(size),
      streams_(std::move(streams)),
      allocator_(bytes) {
  sweep_retired_windows();
}

Heap::~Heap() {
  try {
    retire(std::move(window_), streams_);
  } catch (const std::exception& error) {
    log(LogLevel::error, rank_, "a window stays mapped: {}", error.what());
  }
}

void Heap::mark_frees() {
  std::ptrdiff_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = std::ssize(freed_);
  }
  if (count == 0) return;
  // Streams have locks of their own: not under this one.
  auto work = streams_->mark_all();
  if (!work) return;
  const std::lock_guard lock(mutex_);
  pending_.push_back({{freed_.begin(), freed_.begin() + count}, std::move(*work)});
  freed_.erase(freed_.begin(), freed_.begin() + count);
}

Bytes Heap::report(bool gave_up) {
  mark_frees();
  const std::lock_guard lock(mutex_);
  std::erase_if(pending_, [&](const PendingFrees& frees) {
    if (!all_reached(frees.work)) return false;
    reportable_.insert(reportable_.end(), frees.ids.begin(), frees.ids.end());
    return true;
  });
  const std::size_t count = std::min(reportable_.size(), max_frees_per_report);
  const bool more = !freed_.empty() || !pending_.empty() || count < reportable_.size();
  PayloadWriter writer;
  writer.number(static_cast<std::uint8_t>(gave_up ? report_gave_up
                                          : more  ? report_more
                                                  : report_all));
  for (std::size_t i = 0; i < count; ++i) writer.number(reportable_[i]);
  return writer.take();
}

std::vector<int> Heap::gave_up(const std::vector<std::span<const std::byte>>& reports) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    if (PayloadReader(reports[rank]).number<std::uint8_t>() == report_gave_up)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

bool Heap::apply(const std::vector<std::span<const std::byte>>& reports) {
  const std::uint64_t everyone = size_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size_) - 1;
  const std::lock_guard lock(mutex_);
  bool more = false;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    PayloadReader reader(reports[rank]);
    more |= reader.number<std::uint8_t>() != report_all;
    const std::size_t count = reader.rest().size() / sizeof(std::uint64_t);
    if (static_cast<int>(rank) == rank_)
      reportable_.erase(
          reportable_.begin(),
          reportable_.begin() + static_cast<std::ptrdiff_t>(std::min(count, reportable_.size())));
    while (!reader.rest().empty()) {
      const auto record = records_.find(reader.number<std::uint64_t>());
      if (record == records_.end())
        throw Error(Errc::protocol, fmt::format("rank {} freed an unknown array", rank));
      record->second.freed_by |= std::uint64_t{1} << rank;
      if (record->second.freed_by != everyone) continue;
      allocator_.release(record->second.offset);
      records_.erase(record);
    }
  }
  return more;
}

std::shared_ptr<detail::Allocation> Heap::allocate(std::size_t bytes, std::size_t alignment) {
  std::size_t offset = 0;
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocator_.allocate(bytes, alignment);
    if (!found) return nullptr;
    offset = *found;
    id = next_id_++;
    records_[id] = {offset, bytes, 0};
    live_[offset] = bytes;
  }
  return std::make_shared<Block>(shared_from_this(), id, offset, bytes);
}

std::optional<Markers> Heap::try_mark() noexcept {
  try {
    if (window_->calls_are_allowed_here()) return streams_->mark_all();
  } catch (const std::exception& error) {
    log(LogLevel::debug, rank_, "streams are marked later: {}", error.what());
  }
  return std::nullopt;
}

void Heap::free(std::uint64_t id, std::size_t offset) {
  if (!process_.is_here()) return;
  std::optional<Markers> work = try_mark();
  const std::lock_guard lock(mutex_);
  live_.erase(offset);
  if (work)
    pending_.push_back({{id}, std::move(*work)});
  else
    freed_.push_back(id);
}

bool Heap::frees_are_done() {
  mark_frees();
  const std::lock_guard lock(mutex_);
  return freed_.empty() &&
         std::all_of(pending_.begin(), pending_.end(),
                     [](const PendingFrees& frees) { return all_reached(frees.work); });
}

bool Heap::contains(const void* pointer, std::size_t bytes) const {
  const auto* address = static_cast<const std::byte*>(pointer);
  if (address < segment() || address >= segment() + stride()) return false;
  const auto offset = static_cast<std::size_t>(address - segment());
  const std::lock_guard lock(mutex_);
  const auto after = live_.upper_bound(offset);
  if (after == live_.begin()) return false;
  const auto& [start, length] = *std::prev(after);
  return offset - start <= length && bytes <= length - (offset - start);
}

std::byte* Heap::translate(const void* pointer, int rank) const {
  if (rank < 0 || rank >= size_)
    throw Error(Errc::invalid_argument,
                fmt::format("rank {} does not exist: the job has {} ranks", rank, size_));
  const auto* address = static_cast<const std::byte*>(pointer);
  if (address < segment() || address >= segment() + stride())
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} is not in the symmetric heap of rank {}, which is {} to {}",
                    fmt::ptr(pointer), rank_, fmt::ptr(segment()), fmt::ptr(segment() + stride())));
  return window_->segment(rank) + (address - segment());
}

std::string Heap::describe_room(std::size_t requested) const {
  const std::lock_guard lock(mutex_);
  std::size_t waiting = 0;
  for (const auto& [id, record] : records_)
    if (!live_.contains(record.offset)) waiting += record.bytes;
  return fmt::format(
      "requested {}; free {}, largest free block {}, heap {}; freed on this rank but not on all "
      "yet: {}",
      format_bytes(requested), format_bytes(allocator_.free_bytes()),
      format_bytes(allocator_.largest_free_block()), format_bytes(allocator_.total_bytes()),
      format_bytes(waiting));
}

}  // namespace iridium

#include "backend/host/block_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "iridium/device/block_memory.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::size_t vector_bytes = 16;
constexpr int unwritten = 0xff;

constexpr std::size_t up_to_vectors(std::size_t bytes) {
  return (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
}

}  // namespace

struct alignas(64) HostBlockMemory::Storage {
  std::array<std::byte, max_block_memory_bytes> bytes;
};

HostBlockMemory::~HostBlockMemory() {
  delete storage_.load();
}

void HostBlockMemory::renew() {
  if (used_.get() > 0) std::memset(storage().bytes.data(), unwritten, used_.get());
  count_.set(0);
  used_.set(0);
}

HostBlockMemory::Storage& HostBlockMemory::storage() {
  // Acquired from the fiber that made it, for ThreadSanitizer.
  Storage* known = storage_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  known = new Storage;
  std::memset(known->bytes.data(), unwritten, known->bytes.size());
  storage_.store(known, std::memory_order_release);
  return *known;
}

std::byte* HostBlockMemory::find(const void* key, std::size_t bytes) {
  const auto number = reinterpret_cast<std::uintptr_t>(key);
  const std::size_t count = count_.get();
  for (std::size_t i = 0; i < count; ++i)
    if (places_[i].key.get() == number) return storage().bytes.data() + places_[i].offset.get();
  const std::size_t offset = used_.get();
  if (count == places_.size() || up_to_vectors(bytes) > max_block_memory_bytes - offset)
    throw Error(Errc::invalid_argument,
                fmt::format("a block asks for {} more bytes of block memory and has {} in {} "
                            "objects; the most is {} bytes in {} objects",
                            bytes, offset, count, max_block_memory_bytes, places_.size()));
  places_[count].key.set(number);
  places_[count].offset.set(offset);
  count_.set(count + 1);
  used_.set(offset + up_to_vectors(bytes));
  return storage().bytes.data() + offset;
}

bool HostBlockMemory::contains(const std::byte* first, std::size_t bytes) const {
  const Storage* const known = storage_.load(std::memory_order_acquire);
  if (known == nullptr) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(known->bytes.data());
  const auto offset = reinterpret_cast<std::uintptr_t>(first) - begin;
  return offset < used_.get() && bytes <= used_.get() - offset;
}

void VectorFetches::begin(std::byte* to, const void* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % vector_bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % vector_bytes != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("a vector of {} bytes is fetched from {} to {}, which are not both "
                            "multiples of {}",
                            vector_bytes, from, fmt::ptr(to), vector_bytes));
  std::memset(to, unwritten, vector_bytes);
  waiting_.push_back({to, from, group_});
}

void VectorFetches::await(std::size_t open) {
  while (!waiting_.empty() && waiting_.front().group + open < group_) land(0);
}

void VectorFetches::land(std::size_t which) {
  const Fetch fetch = waiting_[which];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
  std::memcpy(fetch.to, fetch.from, vector_bytes);
}

void VectorFetches::forget() {
  waiting_.clear();
  group_ = 0;
}

}  // namespace iridium

// Memory at the same offset of every rank's segment.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "iridium/stream.h"

namespace iridium {

namespace detail {
/// A block of the symmetric heap. Giving up the last reference frees it: locally, at once, without
/// a collective.
class Allocation : public Resource {
 public:
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// The same block in `rank`'s segment; throws `invalid_argument` for a rank that does not exist.
  virtual std::byte* at(int rank) const = 0;

 protected:
  Allocation(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  std::byte* data_;
  std::size_t bytes_;
};
}  // namespace detail

/// `size()` elements of T on every rank, at the same offset of each segment. Made by
/// `Context::allocate`.
///
/// Freed by destruction, from any thread, never blocking. The memory is used again only after every
/// rank has freed it and the work each rank had submitted to its streams before that has completed;
/// ranks agree on this at their next allocation. May outlive its context. Contents start
/// unspecified. Thread safety: like a `std::vector`; what the elements hold is for the program's
/// own ordering.
template <class T>
class SymmetricArray {
  static_assert(std::is_trivially_copyable_v<T>, "peers copy elements as bytes");

 public:
  SymmetricArray() = default;
  SymmetricArray(SymmetricArray&& other) noexcept
      : allocation_(std::move(other.allocation_)), size_(std::exchange(other.size_, 0)) {}
  SymmetricArray& operator=(SymmetricArray&& other) noexcept {
    allocation_ = std::move(other.allocation_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  /// This rank's elements. Not null, also for zero elements; null only when default-constructed or
  /// moved from.
  T* data() const { return allocation_ ? reinterpret_cast<T*>(allocation_->data()) : nullptr; }
  /// The elements of `rank`, as addressed from here.
  T* at(int rank) const { return reinterpret_cast<T*>(allocation_->at(rank)); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::span<T> span() const { return {data(), size_}; }
  T& operator[](std::size_t index) const { return data()[index]; }

  /// Keeps the memory alive for what `stream` runs or captures from here on: for kernels that hold
  /// plain pointers. While capturing, as long as the graph lives; otherwise until the work queued
  /// so far is done.
  void retain_on(StreamRef& stream) const { stream.retain(allocation_); }
  /// Keeps the memory alive as long as the graph that Iridium is capturing on `stream`; does
  /// nothing when there is none. In a capture begun elsewhere the caller keeps it. The collectives
  /// do this with their arrays.
  void retain_in_capture(StreamRef& stream) const { stream.retain_in_capture(allocation_); }

 private:
  friend class Context;
  SymmetricArray(std::shared_ptr<detail::Allocation> allocation, std::size_t size)
      : allocation_(std::move(allocation)), size_(size) {}

  std::shared_ptr<detail::Allocation> allocation_;
  std::size_t size_ = 0;
};

}  // namespace iridium

// Memory for many cases at a time, which ranks write in each other's segments.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "support/memory.h"
#include "support/ranks.h"
#include "support/sanitizers.h"

namespace iridium::test {

/// What element `index` of a rank's source holds: all kinds of bits, and others on every rank.
template <class T>
T source_element(int rank, std::size_t index) {
  std::array<std::uint64_t, 2> bits = {};
  std::uint64_t state = static_cast<std::uint64_t>(rank) * 0x100000001b3 + index;
  for (std::uint64_t& word : bits) {
    state += 0x9e3779b97f4a7c15;
    word = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    word ^= word >> 31;
  }
  T element;
  std::memcpy(static_cast<void*>(&element), bits.data(), sizeof(T));
  return element;
}

/// Leaves one case of five under ThreadSanitizer, which is slow, and does not care for sizes.
template <class Case>
std::vector<Case> thinned(const std::vector<Case>& cases) {
  if (!under_thread_sanitizer) return cases;
  std::vector<Case> few;
  for (std::size_t i = 0; i < cases.size(); i += 5) few.push_back(cases[i]);
  return few;
}

/// On every rank a source, and areas that cases write to: each case has one of its own.
template <class T>
class Areas {
 public:
  /// Elements before and after what a case may write; a multiple of every vector.
  static constexpr std::size_t guard = 32;

  /// Areas of so many elements each. Collective over the world.
  Areas(Context& context, std::size_t source_elements, const std::vector<std::size_t>& sizes)
      : stream_(context.make_stream()) {
    std::size_t elements = 0;
    for (const std::size_t size : sizes) {
      begins_.push_back(elements + guard);
      elements += (size + 3 * guard - 1) / guard * guard;
    }
    begins_.push_back(elements + guard);
    source_ = context.allocate<T>(source_elements);
    areas_ = context.allocate<T>(elements + guard);
    std::vector<T> values(source_elements);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = source_element<T>(context.rank(), i);
    Memory(context).write(source_, values);
  }

  /// This rank's.
  const T* source() const { return source_.data(); }
  T* area(std::size_t index) const { return areas_.data() + begins_[index]; }

  /// Makes all areas untouched. Before a peer writes to them, all ranks must have done it.
  void reset() {
    stream_.fill(areas_.data(), untouched_byte, areas_.bytes());
    stream_.synchronize();
  }
  static T untouched() {
    T element;
    std::memset(static_cast<void*>(&element), untouched_byte, sizeof(T));
    return element;
  }

  /// Reads what has become of the areas, for `require_area`.
  void read() {
    found_.resize(areas_.size());
    stream_.copy(found_.data(), areas_.data(), areas_.bytes());
    stream_.synchronize();
  }
  /// Throws unless this rank's area holds `expected`, and what lies around it is untouched.
  void require_area(std::size_t index, const std::vector<T>& expected,
                    const std::string& what) const {
    const std::size_t begin = begins_[index];
    for (std::size_t i = begin - guard; i < begins_[index + 1] - guard; ++i) {
      const T wanted =
          i >= begin && i < begin + expected.size() ? expected[i - begin] : untouched();
      if (same(found_[i], wanted)) continue;
      std::ostringstream text;
      text << what << ": element " << static_cast<std::ptrdiff_t>(i - begin) << " is "
           << hex(found_[i]) << ", not " << hex(wanted);
      require(false, text.str());
    }
  }

 private:
  static constexpr unsigned char untouched_byte = 0xa5;

  static bool same(const T& x, const T& y) {
    using Bytes = std::array<std::byte, sizeof(T)>;
    return std::bit_cast<Bytes>(x) == std::bit_cast<Bytes>(y);
  }
  static std::string hex(const T& element) {
    std::ostringstream text;
    for (const std::byte byte : std::bit_cast<std::array<std::byte, sizeof(T)>>(element))
      text << std::hex << std::to_integer<int>(byte) << ' ';
    return text.str();
  }

  Stream stream_;
  std::vector<std::size_t> begins_;
  SymmetricArray<T> source_;
  SymmetricArray<T> areas_;
  std::vector<T> found_;
};

}  // namespace iridium::test

// What the tests of atomics run, told without kernel code; see tile_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/atomic_calls.h"
#include "iridium/context.h"

namespace iridium::test {

/// Makes access i to word i of `words` at the member at `place`, and stores what it returned to
/// result i. For integers of 4 and 8 bytes and all floating-point numbers.
template <class T>
void run_accesses(const Context& context, StreamRef& stream, const Lane& lane,
                  const AtomicCase<T>* accesses, std::size_t count, T* words, T* results,
                  int place);

/// The words that all threads update at once.
enum ContendedWord : std::size_t {
  added,        ///< grows by an item's number
  subtracted,   ///< shrinks by it
  set,          ///< gets an item's bit
  cleared,      ///< loses an item's bit
  flipped,      ///< by an item's mark
  smallest,     ///< of all marks
  largest,      ///< of all marks
  incremented,  ///< once per item, by compare_exchange
  latest,       ///< exchanged for an item's mark
  replaced,     ///< sum of what was in `latest`
  tickets,      ///< grows by 1
  contended_words
};

/// A number with all kinds of bits, another one for every item.
IR_DEVICE constexpr std::uint64_t mark_of(std::uint64_t item) {
  return (item + 1) * 0x9e3779b97f4a7c15u;
}

/// Items of work that are done at once: `items` for each of `blocks` blocks of every member, with
/// numbers of their own that start at `first_item` on each member.
template <class T>
struct Contention {
  Scope scope = Scope::system;
  int place = 0;
  int blocks = 1;
  std::uint32_t items = 1;
  std::uint64_t first_item = 0;
  T* words = nullptr;             ///< `contended_words`; at block scope, for every block
  std::uint32_t* seen = nullptr;  ///< how often each ticket was drawn, and last those out of range
  std::uint32_t limit = 0;        ///< number of tickets; at block scope, of a block
};

/// For integers of 4 and 8 bytes.
template <class T>
void run_contention(const Context& context, StreamRef& stream, const Lane& lane,
                    const Contention<T>& work);

/// Every item adds 1 to the even and −1 to the odd ones of so many numbers, side by side.
inline constexpr std::size_t summed_numbers = 15;
/// For floating-point numbers; what `number 0` held before is the ticket.
template <class T>
void run_sums(const Context& context, StreamRef& stream, const Lane& lane,
              const Contention<T>& work);

/// Place 0 writes a message and raises the flag of place 1, with every operation that can release;
/// that one waits with every operation that can acquire, and reads.
struct Messages {
  static constexpr std::uint32_t words = 64;
  static constexpr std::uint32_t expired = 1'000'000;
  std::uint32_t* flag = nullptr;
  std::uint32_t* answer = nullptr;
  std::uint32_t* data = nullptr;
  std::uint32_t* wrong = nullptr;  ///< words read with other values, or `expired`
};
void run_messages(const Context& context, StreamRef& stream, const Lane& lane,
                  const Messages& work);
/// Loads the kernel, whose first launch must not wait for a peer's.
void prepare_messages(const Context& context);

}  // namespace iridium::test

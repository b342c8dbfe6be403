// Reading and writing the members' memory from kernels: single elements, tiles, whole vectors.
//
// A member's object is named by this rank's counterpart of it, `mine`, and the member's place.
// These are plain accesses: what orders them between ranks are barriers and signals. In checked
// mode an address outside the segment or a place that does not exist fails the team, with an error
// that says so, and the access does not take place. `peers.at` and plain pointers do the same
// without checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/copy.h"
#include "iridium/device/fault.h"

namespace iridium {

namespace detail {

/// Fails the team, from one thread, with what a check has found.
template <int Threads>
IR_DEVICE void report(BlockOf<Threads> block, const Lane& lane, FaultKind kind, std::uint64_t a,
                      std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  FaultRecord fault = {};
  fault.kind = kind;
  fault.step = step_of(block, lane);
  fault.detail[0] = a;
  fault.detail[1] = b;
  fault.detail[2] = c;
  fault.detail[3] = d;
  raise(block, lane, fault);
}

/// In checked mode, fails the team unless `mine`, for `bytes` bytes, lies in this rank's segment
/// and `place` is a member. `reports`: on the thread that is to tell of it.
template <int Threads>
IR_DEVICE bool may_access(BlockOf<Threads> block, const Lane& lane, const void* mine,
                          std::size_t bytes, int place, bool reports) {
  if (!lane.is_checked()) return true;
  const Lane::Terms& terms = lane.terms();
  const auto address = reinterpret_cast<std::uintptr_t>(mine);
  const auto begin = reinterpret_cast<std::uintptr_t>(terms.segment);
  const bool is_member = place >= 0 && place < lane.peers().size();
  if (is_member && address >= begin && bytes <= terms.segment_bytes &&
      address - begin <= terms.segment_bytes - bytes)
    return true;
  if (!reports) return false;
  // One call for both, for the sake of small kernels.
  report(block, lane, is_member ? FaultKind::outside_segment : FaultKind::no_such_place,
         is_member ? address : static_cast<std::uint64_t>(place), bytes, begin,
         terms.segment_bytes);
  return false;
}

/// a × b, or the largest number there is.
IR_DEVICE inline std::size_t bounded_product(std::size_t a, std::size_t b) {
  constexpr std::size_t largest = ~std::size_t{0};
  return b != 0 && a > largest / b ? largest : a * b;
}

/// `may_access` for `count` elements, asked by the whole block.
template <class T, int Threads>
IR_DEVICE bool block_may_access(BlockOf<Threads> block, const Lane& lane, const T* mine,
                                std::size_t count, int place) {
  // The product is not needed, and dividing is slow, where nothing is checked.
  if (!lane.is_checked()) return true;
  return may_access(block, lane, mine, bounded_product(count, sizeof(T)), place, block.is_leader());
}

}  // namespace detail

/// The element at `place`. One thread.
template <class T, int Threads>
[[nodiscard]] IR_DEVICE T remote_load(BlockOf<Threads> block, const Lane& lane, const T* mine,
                                      int place) {
  if (!detail::may_access(block, lane, mine, sizeof(T), place, true)) return T();
  return *lane.peers().at(mine, place);
}

/// Writes the element at `place`. One thread.
template <class T, int Threads>
IR_DEVICE void remote_store(BlockOf<Threads> block, const Lane& lane, T* mine,
                            std::type_identity_t<T> value, int place) {
  if (!detail::may_access(block, lane, mine, sizeof(T), place, true)) return;
  *lane.peers().at(mine, place) = value;
}

/// What `update` returns, called with the address of the element at `place`: remote_update(block,
/// lane, counter, place, [&](int* there) { return atomic_add(block, there, 1); }). One thread.
/// Checked mode also refuses it where the link between members has no native atomics.
template <class T, int Threads, class Update>
IR_DEVICE T remote_update(BlockOf<Threads> block, const Lane& lane, T* mine, int place,
                          Update update) {
  if (!detail::may_access(block, lane, mine, sizeof(T), place, true)) return T();
  if (lane.is_checked() && !lane.peers().have_native_atomics() && place != lane.peers().rank()) {
    detail::report(block, lane, FaultKind::no_native_atomics, static_cast<std::uint64_t>(place), 0,
                   0, 0);
    return T();
  }
  return update(lane.peers().at(mine, place));
}

/// `load` at the member at `place`. Block-collective.
template <int N, class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
[[nodiscard]] IR_DEVICE Tile<T, N, Threads> load_from(BlockOf<Threads> block, const Lane& lane,
                                                      const T* mine, int place, std::size_t first,
                                                      std::size_t count, Mask mask = {},
                                                      CacheTag<C> hint = {}) {
  // A tile made here instead would have to be moved to where the loaded one is, and moving waits
  // for the loads.
  if (!detail::block_may_access(block, lane, mine, count, place)) {
    mine = reinterpret_cast<const T*>(lane.terms().base);
    count = 0;
    place = lane.peers().rank();
  }
  return load<N>(block, lane.peers().at(mine, place), first, count, mask, hint);
}

/// `store` at the member at `place`. Block-collective.
template <class T, int N, int Threads, int Chunk, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void store_to(BlockOf<Threads> block, const Lane& lane, T* mine, int place,
                        std::size_t first, std::size_t count,
                        const Tile<T, N, Threads, Chunk>& tile, Mask mask = {},
                        CacheTag<C> hint = {}) {
  if (!detail::block_may_access(block, lane, mine, count, place)) return;
  store(block, lane.peers().at(mine, place), first, count, tile, mask, hint);
}

/// Copies `count` elements from the member at `source` to the member at `target`, either of which
/// may be this rank or another one. Block-collective; see `copy` in copy.h.
template <class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void copy(BlockOf<Threads> block, const Lane& lane, T* to, int target, const T* from,
                    int source, std::size_t count, By by = By::block, Mask mask = {},
                    CacheTag<C> hint = {}) {
  if (!detail::block_may_access(block, lane, to, count, target) ||
      !detail::block_may_access(block, lane, from, count, source))
    return;
  copy(block, lane.peers().at(to, target), lane.peers().at(from, source), count, by, mask, hint);
}

/// Copies `count` elements from `from`, any memory of this rank, to the member at `place`.
/// Block-collective, as `copy`.
template <class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void put(BlockOf<Threads> block, const Lane& lane, T* to, const T* from,
                   std::size_t count, int place, By by = By::block, Mask mask = {},
                   CacheTag<C> hint = {}) {
  if (!detail::block_may_access(block, lane, to, count, place)) return;
  copy(block, lane.peers().at(to, place), from, count, by, mask, hint);
}

/// Copies `count` elements from the member at `place` to `to`, any memory of this rank.
/// Block-collective, as `copy`.
template <class T, int Threads, class Mask = Everywhere, Cache C = Cache::normal>
IR_DEVICE void get(BlockOf<Threads> block, const Lane& lane, T* to, const T* from,
                   std::size_t count, int place, By by = By::block, Mask mask = {},
                   CacheTag<C> hint = {}) {
  if (!detail::block_may_access(block, lane, from, count, place)) return;
  copy(block, to, lane.peers().at(from, place), count, by, mask, hint);
}

}  // namespace iridium

// Many copies at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/spread.h"
#include "collectives/vector_queue.h"
#include "iridium/device/copy.h"
#include "iridium/device/lane_call.h"

namespace iridium {

/// What one of many copies reads.
template <class T>
struct ArraySource {
  const T* from;
  std::size_t count;
};

/// Copies of several arrays at once: block-collective. Every array has groups of threads of its
/// own, so that many short copies take no longer than one; and looking up addresses, reading and
/// writing are steps of their own, for what has to be waited for between them. A whole block copies
/// one array after the other in `finish`.
///
///     ArrayCopies<T, Threads> copies(block, arrays);
///     copies.prepare(source_of);          // source_of(i): an `ArraySource`, for i below `arrays`
///     copies.start();                     // the first vectors are on their way
///     copies.finish(source_of, target_of);
template <class T, int Threads>
class ArrayCopies {
 public:
  IR_DEVICE ArrayCopies(BlockOf<Threads> block, int arrays)
      : block_(block), arrays_(arrays), queue_(block) {
    if (target::is_whole(block.seat())) return;
    constexpr int group = target::group_threads;
    const int groups = block.thread_count() / group;
    const int each = arrays < groups ? groups / (arrays > 0 ? arrays : 1) : 1;
    const int mine = block.thread() / group / each;
    const int threads = each * group;
    groups_ = groups / each;
    threads_ = static_cast<std::size_t>(threads);
    thread_ = static_cast<std::size_t>(block.thread() - mine * each * group);
    mine_ = mine;
  }

  template <class SourceOf>
  IR_DEVICE void prepare(SourceOf source_of) {
    if (target::is_whole(block_.seat())) return;
    if (mine_ < arrays_) source_ = source_of(mine_);
    target::settle(source_.from, source_.count, thread_, threads_);
  }
  IR_DEVICE void start() {
    if (target::is_whole(block_.seat())) return;
    const bool vectors = target::allows_vectors(block_.seat(), source_.from);
    whole_ = vectors ? source_.count - source_.count % chunk : 0;
    ahead_ = thread_ * chunk;
    IR_ROLLED for (int i = 0; i < queue_.depth; ++i) push();
  }
  /// `prepare` and `start`, in a call's first round before and while the call begins: its step and
  /// parity are known afterwards. False when it does not begin.
  template <class SourceOf>
  [[nodiscard]] IR_DEVICE bool start_round(LaneCall<Threads>& call, std::uint32_t round,
                                           SourceOf source_of) {
    prepare(source_of);
    if (round > 0) {
      start();
    } else if (!call.begin([&] { start(); })) {
      drop();
      return false;
    }
    return true;
  }
  /// Instead of `finish`: waits for what is on its way, and leaves it.
  IR_DEVICE void drop() {
    if (!target::is_whole(block_.seat())) target::await_fetches<0>(block_.seat());
  }
  /// target_of(i): where array i goes; several, where it goes to several places.
  template <class SourceOf, class... TargetOf>
  IR_DEVICE void finish(SourceOf source_of, TargetOf... target_of) {
    target::point(block_.seat());
    if constexpr (target::has_whole_blocks) {
      if (target::is_whole(block_.seat())) {
        for (int i = 0; i < arrays_; ++i) write_at_once(source_of(i), target_of(i)...);
        return;
      }
    }
    IR_ROLLED for (int i = mine_; i < arrays_;) {
      write(target_of(i)...);
      i += groups_;
      if (i >= arrays_) break;
      source_ = source_of(i);
      start();
    }
  }

 private:
  static constexpr std::size_t chunk = vector_elements<T>;

  IR_UNUSED_ADDRESSES IR_DEVICE void push() {
    queue_.push(source_.from + ahead_, ahead_ < whole_);
    ahead_ += threads_ * chunk;
  }
  template <class... To>
  IR_DEVICE void write_at_once(const ArraySource<T>& source, To*... to) {
    if constexpr (sizeof...(to) == 1) {
      copy(block_, to..., source.from, source.count);
    } else {
      std::uint8_t* const targets[] = {reinterpret_cast<std::uint8_t*>(to)...};
      spread<4>(
          block_, sizeof...(to), [&](int i) { return targets[i]; },
          reinterpret_cast<const std::uint8_t*>(source.from), source.count * sizeof(T));
    }
  }
  template <class... To>
  IR_DEVICE void write(To*... to) {
    if (!(target::allows_vectors(block_.seat(), to) && ...)) {
      // One by one, neighbours by neighbouring threads.
      drop();
      whole_ = 0;
    }
    IR_ROLLED for (std::size_t at = thread_ * chunk; at < whole_; at += threads_ * chunk) {
      alignas(16) T part[chunk];
      queue_.read(part);
      (target::store_vector<Cache::normal>(to + at, part), ...);
      push();
    }
    IR_ROLLED for (std::size_t at = whole_ + thread_; at < source_.count; at += threads_) {
      const T element = source_.from[at];
      ((to[at] = element), ...);
    }
  }

  BlockOf<Threads> block_;
  int arrays_;
  VectorQueue<T, max_queued_vectors, Threads> queue_;
  int groups_ = 1;           ///< of threads, each with an array at a time
  int mine_ = 0;             ///< this thread's group, and its first array
  std::size_t threads_ = 1;  ///< of a group
  std::size_t thread_ = 0;   ///< in it
  ArraySource<T> source_ = {};
  std::size_t whole_ = 0;  ///< elements that go in vectors
  std::size_t ahead_ = 0;  ///< the next to ask for
};

/// One of many copies.
template <class T>
struct ArrayCopy {
  T* to;
  const T* from;
  std::size_t count;
};

/// Does copy_of(i), for i below `arrays`, all at once. Block-collective.
template <class T, int Threads, class CopyOf>
IR_DEVICE void copy_arrays(BlockOf<Threads> block, int arrays, CopyOf copy_of) {
  ArrayCopies<T, Threads> copies(block, arrays);
  const auto source_of = [&](int i) {
    const ArrayCopy<T> array = copy_of(i);
    return ArraySource<T>{array.from, array.count};
  };
  copies.prepare(source_of);
  copies.start();
  copies.finish(source_of, [&](int i) { return copy_of(i).to; });
}

}  // namespace iridium

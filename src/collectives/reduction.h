// What the kernels of reducing collectives are made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/vector_queue.h"
#include "iridium/device/peers.h"
#include "iridium/device/tile.h"
#include "iridium/numbers.h"

namespace iridium {

struct Sum {
  template <class T>
  IR_DEVICE T operator()(T a, T b) const {
    return add(a, b);
  }
};
struct Product {
  template <class T>
  IR_DEVICE T operator()(T a, T b) const {
    return multiply(a, b);
  }
};
struct Minimum {
  template <class T>
  IR_DEVICE T operator()(T a, T b) const {
    return minimum(a, b);
  }
};
struct Maximum {
  template <class T>
  IR_DEVICE T operator()(T a, T b) const {
    return maximum(a, b);
  }
};

/// use(combine) with what combines two elements. The operation is the same for the whole kernel, so
/// that only one of the paths is ever fetched.
template <class Use>
IR_DEVICE void with_combine(ReduceOp op, Use use) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return use(Sum());
    case ReduceOp::prod:
      return use(Product());
    case ReduceOp::min:
      return use(Minimum());
    case ReduceOp::max:
      return use(Maximum());
  }
}

/// What turns a sum into the result: an average is the sum times the rounded 1 / members, and
/// integers lose their fraction.
template <class A>
class Finish {
 public:
  IR_DEVICE Finish(ReduceOp op, int members)
      : averages_(op == ReduceOp::avg), factor_(A(1) / static_cast<A>(members)) {}
  // Not times 1 where it does not average: that changes the bits of some NaNs, unless the compiler
  // leaves it out.
  IR_DEVICE A operator()(A total) const { return averages_ ? total * factor_ : total; }

 private:
  bool averages_;
  A factor_;
};
template <IntegerNumber A>
class Finish<A> {
 public:
  IR_DEVICE Finish(ReduceOp op, int members)
      : divisor_(op == ReduceOp::avg ? static_cast<A>(members) : A(1)) {}
  IR_DEVICE A operator()(A total) const { return divisor_ == 1 ? total : divide(total, divisor_); }

 private:
  IR_COLD IR_DEVICE static A divide(A total, A divisor) { return static_cast<A>(total / divisor); }

  A divisor_;
};

namespace detail {

/// Combines what a thread holds of the next member's tile with what it has.
template <int Count, class T, class Combine>
IR_DEVICE void accumulate(Accumulator<T>* totals, const T* part, bool is_first, Combine combine) {
  // Two loops, so that a CPU's compiler vectorises both.
  if (is_first) {
    for (int i = 0; i < Count; ++i) totals[i] = convert<Accumulator<T>>(part[i]);
  } else {
    for (int i = 0; i < Count; ++i)
      totals[i] = combine(totals[i], convert<Accumulator<T>>(part[i]));
  }
}

/// What a thread reduces: `count` elements of every member's array, source(place), into `targets`
/// arrays, target(i).
template <class T, class Source, class Target>
struct Reduction {
  ReduceOp op;
  std::size_t count;
  int members;
  Source source;
  int targets;
  Target target;
};

struct SourceMemory {};
struct TargetMemory {};

/// Looked up once by the block: where the arrays are that all its threads go through.
template <class T>
struct ReductionTable {
  const T** sources;
  T** targets;

  IR_DEVICE ReductionTable()
      : sources(target::block_memory<SourceMemory, const T*, max_team_size>()),
        targets(target::block_memory<TargetMemory, T*, max_team_size>()) {}
};

/// A GPU thread's share of the `whole` elements that are in whole vectors, of which it has `Depth`
/// on their way.
template <int Depth, class T, int Threads, class Combine>
IR_DEVICE void reduce_vectors(BlockOf<Threads> block, const ReductionTable<T>& table, ReduceOp op,
                              std::size_t whole, int members, int targets, Combine combine) {
  constexpr std::size_t chunk = vector_elements<T>;
  constexpr std::size_t step = Threads * chunk;
  const std::size_t begin = static_cast<std::size_t>(block.thread()) * chunk;
  const Finish<Accumulator<T>> finish(op, members);
  VectorQueue<T, Depth, Threads> queue(block);
  std::size_t ahead = begin;
  int ahead_place = 0;
  const auto push = [&] {
    queue.push(table.sources[ahead_place] + ahead, ahead < whole);
    if (++ahead_place == members) {
      ahead_place = 0;
      ahead += step;
    }
  };
  IR_ROLLED for (int i = 0; i < Depth; ++i) push();
  IR_ROLLED for (std::size_t at = begin; at < whole; at += step) {
    Accumulator<T> totals[chunk];
    IR_ROLLED for (int place = 0; place < members; ++place) {
      alignas(16) T part[chunk];
      target::read_vector(part, queue.front());
      accumulate<chunk>(totals, part, place == 0, combine);
      push();
    }
    alignas(16) T results[chunk];
    for (std::size_t i = 0; i < chunk; ++i) results[i] = convert<T>(finish(totals[i]));
    IR_ROLLED for (int i = 0; i < targets; ++i) {
      target::store_vector<Cache::normal>(table.targets[i] + at, results);
    }
  }
}

/// A CPU block's whole tiles; returns where they end.
template <int Vectors, class T, int Threads, class Source, class Target>
IR_DEVICE std::size_t reduce_tiles(BlockOf<Threads> block,
                                   const Reduction<T, Source, Target>& work) {
  constexpr int chunk = vector_elements<T>;
  // Short enough for the shards of small messages.
  constexpr int size = Vectors * 128 * chunk;
  const Finish<Accumulator<T>> finish(work.op, work.members);
  Seat* const seat = block.seat();
  std::size_t at = 0;
  for (; work.count - at >= size; at += size) {
    Tile<Accumulator<T>, size, Threads, chunk> total;
    for (int place = 0; place < work.members; ++place) {
      Tile<T, size, Threads> part;
      target::begin_tile<size>(seat, part.elements);
      target::load_tile<size, chunk, Threads, Cache::normal>(seat, part.elements,
                                                             work.source(place) + at);
      with_combine(work.op, [&](auto combine) {
        accumulate<size>(total.elements, part.elements, place == 0, combine);
      });
    }
    // Two loops again.
    const auto result =
        work.op == ReduceOp::avg
            ? total.map([&](Accumulator<T> value) { return convert<T>(finish(value)); })
            : total.map([](Accumulator<T> value) { return convert<T>(value); });
    for (int i = 0; i < work.targets; ++i)
      target::store_tile<size, chunk, Threads, Cache::normal>(seat, work.target(i) + at,
                                                              result.elements);
  }
  return at;
}

/// A thread's share of the elements from `first` on, one by one.
template <class T, int Threads, class Source, class Target>
IR_DEVICE void reduce_elements(BlockOf<Threads> block, const Reduction<T, Source, Target>& work,
                               std::size_t first) {
  const Finish<Accumulator<T>> finish(work.op, work.members);
  IR_ROLLED for (std::size_t at = first + static_cast<std::size_t>(block.thread()); at < work.count;
                 at += static_cast<std::size_t>(block.thread_count())) {
    Accumulator<T> total = {};
    IR_ROLLED for (int place = 0; place < work.members; ++place) {
      with_combine(work.op, [&](auto combine) {
        accumulate<1>(&total, work.source(place) + at, place == 0, combine);
      });
    }
    const T result = convert<T>(finish(total));
    IR_ROLLED for (int i = 0; i < work.targets; ++i) work.target(i)[at] = result;
  }
}

}  // namespace detail

/// Reduces `count` elements of every member's array, source(place), into `targets` arrays,
/// target(i). In 16-byte accesses where all of them allow it, on a GPU with `Depth` vectors per
/// thread on their way. Its functions are block-collective.
template <int Depth, class T, int Threads, class Source, class Target>
class SliceReduction {
 public:
  IR_DEVICE SliceReduction(BlockOf<Threads> block, ReduceOp op, std::size_t count, int members,
                           Source source, int targets, Target target)
      : block_(block), work_{op, count, members, source, targets, target} {}

  /// Looks up where the arrays are.
  IR_DEVICE void prepare() {
    if constexpr (target::has_block_memory) {
      const detail::ReductionTable<T> table;
      bool misaligned = false;
      // No thread reads the table of the reduction before any more.
      block_.sync();
      block_.template share<max_team_size>(work_.members, [&](int place) {
        table.sources[place] = work_.source(place);
        misaligned = misaligned || !target::allows_vectors(table.sources[place]);
      });
      block_.template share<max_team_size>(work_.targets, [&](int i) {
        table.targets[i] = work_.target(i);
        misaligned = misaligned || !target::allows_vectors(table.targets[i]);
      });
      vectors_ = !block_.any(misaligned);
    }
  }
  IR_DEVICE void run() {
    target::point(block_.seat());
    std::size_t done = 0;
    if constexpr (!target::has_block_memory) {
      done = detail::reduce_tiles<Depth>(block_, work_);
    } else if (vectors_) {
      done = work_.count - work_.count % vector_elements<T>;
      const detail::ReductionTable<T> table;
      with_combine(work_.op, [&](auto combine) {
        detail::reduce_vectors<Depth, T>(block_, table, work_.op, done, work_.members,
                                         work_.targets, combine);
      });
    }
    detail::reduce_elements(block_, work_, done);
  }

 private:
  BlockOf<Threads> block_;
  detail::Reduction<T, Source, Target> work_;
  bool vectors_ = false;
};

template <int Depth, class T, int Threads, class Source, class Target>
IR_DEVICE SliceReduction<Depth, T, Threads, Source, Target> slice_reduction(
    BlockOf<Threads> block, ReduceOp op, std::size_t count, int members, Source source, int targets,
    Target target) {
  return {block, op, count, members, source, targets, target};
}

/// All of it at once.
template <int Depth, class T, int Threads, class Source, class Target>
IR_DEVICE void reduce_slice(BlockOf<Threads> block, ReduceOp op, std::size_t count, int members,
                            Source source, int targets, Target target) {
  auto reduction = slice_reduction<Depth, T>(block, op, count, members, source, targets, target);
  reduction.prepare();
  reduction.run();
}

}  // namespace iridium

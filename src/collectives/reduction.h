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

/// What turns combined elements into results of type T: an average is the sum times the rounded
/// 1 / members, and integers lose their fraction. A NaN gets the bits that NVIDIA's GPUs give it,
/// all but the sign set: which of two NaNs a sum keeps is the compiler's choice.
template <class T>
class Finish {
  using A = Accumulator<T>;

 public:
  IR_DEVICE Finish(ReduceOp op, int members)
      : factor_(op == ReduceOp::avg ? A(1) / static_cast<A>(members) : A(1)),
        is_scaled_(op == ReduceOp::sum || op == ReduceOp::avg) {}
  IR_DEVICE T operator()(A total) const { return with_one_nan(convert<T>(total * factor_)); }

 private:
  IR_DEVICE T with_one_nan(T value) const {
    if constexpr (std::same_as<T, double>)
      return value == value ? value : __builtin_bit_cast(double, ~std::uint64_t{0} >> 1);
    // NVIDIA's GPUs multiply so themselves, but a compiler that knows the factor leaves it out.
    if constexpr (std::same_as<T, float>)
      return value == value || (IR_ON_CUDA && is_scaled_)
                 ? value
                 : __builtin_bit_cast(float, ~std::uint32_t{0} >> 1);
    return value;  // the conversion has seen to it
  }

  A factor_;
  bool is_scaled_;
};
template <IntegerNumber T>
class Finish<T> {
 public:
  IR_DEVICE Finish(ReduceOp op, int members)
      : divisor_(op == ReduceOp::avg ? static_cast<T>(members) : T(1)) {}
  IR_DEVICE T operator()(T total) const { return divisor_ == 1 ? total : divide(total, divisor_); }

 private:
  IR_COLD IR_DEVICE static T divide(T total, T divisor) { return static_cast<T>(total / divisor); }

  T divisor_;
};

namespace detail {

/// Combines a member's elements with what a thread has.
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
IR_DEVICE const T** source_table(Seat* seat) {
  return target::block_memory<SourceMemory, const T*, max_team_size>(seat);
}
template <class T>
IR_DEVICE T** target_table(Seat* seat) {
  return target::block_memory<TargetMemory, T*, max_team_size>(seat);
}

/// A vector of elements as they are reduced.
template <class T>
struct WideVector {
  static constexpr int size = vector_elements<T>;
  Accumulator<T> elements[size];

  /// The next one of a queue.
  template <class Queue>
  static IR_DEVICE WideVector read(const Queue& queue) {
    WideVector wide;
    if constexpr (std::same_as<T, bf16>) {
      // In pairs: for a number in an upper half by itself the compiler takes two steps.
      alignas(16) std::uint32_t pairs[size / 2];
      queue.read(pairs);
      for (int i = 0; i < size / 2; ++i) {
        wide.elements[2 * i] = __builtin_bit_cast(float, pairs[i] << 16);
        wide.elements[2 * i + 1] = __builtin_bit_cast(float, pairs[i] & 0xffff0000u);
      }
    } else {
      alignas(16) T part[size];
      queue.read(part);
      for (int i = 0; i < size; ++i) wide.elements[i] = convert<Accumulator<T>>(part[i]);
    }
    return wide;
  }
};

/// A thread's share of the `whole` elements that are in whole vectors: those of every member,
/// one after the other, of which it has `Depth` on their way.
template <int Depth, class T, int Threads>
class MemberVectors {
 public:
  IR_DEVICE MemberVectors(BlockOf<Threads> block, std::size_t whole, int members)
      : queue_(block),
        step_(static_cast<std::size_t>(block.thread_count()) * vector_elements<T>),
        sources_(target::block_address(source_table<T>(block.seat()))),
        sources_end_(sources_ + static_cast<unsigned>(members) * sizeof(T*)),
        next_source_(sources_),
        ahead_(static_cast<std::size_t>(block.thread()) * vector_elements<T>),
        whole_(whole) {
    IR_ROLLED for (int i = 0; i < Depth; ++i) push();
  }

  IR_DEVICE WideVector<T> take() {
    const auto wide = WideVector<T>::read(queue_);
    push();
    return wide;
  }
  /// From one vector of this thread to its next.
  IR_DEVICE std::size_t step() const { return step_; }

 private:
  IR_UNUSED_ADDRESSES IR_DEVICE void push() {
    queue_.push(target::read_pointer<const T>(next_source_) + ahead_, ahead_ < whole_);
    next_source_ += sizeof(T*);
    if (next_source_ == sources_end_) {
      next_source_ = sources_;
      ahead_ += step_;
    }
  }

  VectorQueue<T, Depth, Threads> queue_;
  std::size_t step_;
  target::BlockAddress sources_;
  target::BlockAddress sources_end_;
  target::BlockAddress next_source_;
  std::size_t ahead_;
  std::size_t whole_;
};

template <int Depth, class T, int Threads, class Combine>
IR_DEVICE void reduce_vectors(BlockOf<Threads> block, MemberVectors<Depth, T, Threads>& vectors,
                              ReduceOp op, std::size_t whole, int members, int targets,
                              Combine combine) {
  constexpr int chunk = vector_elements<T>;
  const Finish<T> finish(op, members);
  const auto table = target::block_address(target_table<T>(block.seat()));
  IR_ROLLED for (std::size_t at = static_cast<std::size_t>(block.thread()) * chunk; at < whole;
                 at += vectors.step()) {
    WideVector<T> total = vectors.take();
    IR_ROLLED for (int place = 1; place < members; ++place) {
      const WideVector<T> next = vectors.take();
      for (int i = 0; i < chunk; ++i)
        total.elements[i] = combine(total.elements[i], next.elements[i]);
    }
    alignas(16) T results[chunk];
    for (int i = 0; i < chunk; ++i) results[i] = finish(total.elements[i]);
    IR_ROLLED for (int i = 0; i < targets; ++i) {
      T* const to = target::read_pointer<T>(table + static_cast<unsigned>(i) * sizeof(T*));
      target::store_vector<Cache::normal>(to + at, results);
    }
  }
}

/// A whole block's whole tiles; returns where they end.
template <int Vectors, class T, int Threads, class Source, class Target>
IR_DEVICE std::size_t reduce_tiles(BlockOf<Threads> block,
                                   const Reduction<T, Source, Target>& work) {
  constexpr int chunk = vector_elements<T>;
  // Short enough for the shards of small messages.
  constexpr int size = Vectors * 128 * chunk;
  const Finish<T> finish(work.op, work.members);
  Seat* const seat = block.seat();
  std::size_t at = 0;
  for (; work.count - at >= size; at += size) {
    Tile<Accumulator<T>, size, Threads, chunk> total;
    for (int place = 0; place < work.members; ++place) {
      Tile<T, size, Threads> part;
      target::begin_tile<size>(seat, elements_of(part));
      target::load_tile<size, chunk, Threads, Cache::normal>(seat, elements_of(part),
                                                             work.source(place) + at);
      with_combine(work.op, [&](auto combine) {
        accumulate<size>(elements_of(total), elements_of(part), place == 0, combine);
      });
    }
    // Two loops again.
    const auto result =
        work.op == ReduceOp::avg
            ? total.map([&](Accumulator<T> value) { return finish(value); })
            : total.map([](Accumulator<T> value) { return Finish<T>(ReduceOp::sum, 1)(value); });
    for (int i = 0; i < work.targets; ++i)
      target::store_tile<size, chunk, Threads, Cache::normal>(seat, work.target(i) + at,
                                                              elements_of(result));
  }
  return at;
}

/// A thread's share of the elements from `first` on, one by one.
template <class T, int Threads, class Source, class Target>
IR_DEVICE void reduce_elements(BlockOf<Threads> block, const Reduction<T, Source, Target>& work,
                               std::size_t first) {
  const Finish<T> finish(work.op, work.members);
  IR_ROLLED for (std::size_t at = first + static_cast<std::size_t>(block.thread()); at < work.count;
                 at += static_cast<std::size_t>(block.thread_count())) {
    Accumulator<T> total = {};
    IR_ROLLED for (int place = 0; place < work.members; ++place) {
      with_combine(work.op, [&](auto combine) {
        accumulate<1>(&total, work.source(place) + at, place == 0, combine);
      });
    }
    const T result = finish(total);
    IR_ROLLED for (int i = 0; i < work.targets; ++i) work.target(i)[at] = result;
  }
}

}  // namespace detail

/// Reduces `count` elements of every member's array, source(place), into `targets` arrays,
/// target(i). In 16-byte accesses where all of them allow it, with `Depth` vectors per thread on
/// their way. Its functions are block-collective.
template <int Depth, class T, int Threads, class Source, class Target>
class SliceReduction {
 public:
  IR_DEVICE SliceReduction(BlockOf<Threads> block, ReduceOp op, std::size_t count, int members,
                           Source source, int targets, Target target)
      : block_(block), work_{op, count, members, source, targets, target} {}

  /// Looks up where the arrays are.
  IR_DEVICE void prepare() {
    Seat* const seat = block_.seat();
    if (target::is_whole(seat)) return;
    const T** const sources = detail::source_table<T>(seat);
    T** const targets = detail::target_table<T>(seat);
    bool misaligned = false;
    // No thread reads the tables of the reduction before any more.
    block_.sync();
    block_.template share<max_team_size>(work_.members, [&](int place) {
      sources[place] = work_.source(place);
      misaligned = misaligned || !target::allows_vectors(seat, sources[place]);
    });
    block_.template share<max_team_size>(work_.targets, [&](int i) {
      targets[i] = work_.target(i);
      misaligned = misaligned || !target::allows_vectors(seat, targets[i]);
    });
    vectors_ = !block_.any(misaligned);
  }
  IR_DEVICE void run() {
    target::point(block_.seat());
    std::size_t done = 0;
    if constexpr (target::has_whole_blocks) {
      if (target::is_whole(block_.seat())) done = detail::reduce_tiles<Depth>(block_, work_);
    }
    if (vectors_) {
      done = work_.count - work_.count % vector_elements<T>;
      // On their way while the threads find out how to combine them.
      detail::MemberVectors<Depth, T, Threads> vectors(block_, done, work_.members);
      with_combine(work_.op, [&](auto combine) {
        detail::reduce_vectors(block_, vectors, work_.op, done, work_.members, work_.targets,
                               combine);
      });
    }
    if (done < work_.count) detail::reduce_elements(block_, work_, done);
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

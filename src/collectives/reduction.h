// What the kernels of reducing collectives are made of.
#pragma once

#include <cstddef>
#include <cstdint>

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

/// A GPU thread's share of the whole vectors: `Vectors` of them at a time, from as many members as
/// it can have loads on their way. Returns where they end.
template <int Vectors, class T, int Threads, class Source, class Target>
IR_DEVICE std::size_t reduce_vectors(BlockOf<Threads> block,
                                     const Reduction<T, Source, Target>& work) {
  constexpr std::size_t chunk = vector_elements<T>;
  constexpr std::size_t step = Threads * chunk;
  constexpr int batch = target::loads_in_flight > Vectors ? target::loads_in_flight / Vectors : 1;
  const std::size_t whole = work.count - work.count % chunk;
  const Finish<Accumulator<T>> finish(work.op, work.members);
  IR_ROLLED for (std::size_t at = static_cast<std::size_t>(block.thread()) * chunk; at < whole;
                 at += Vectors * step) {
    Accumulator<T> totals[Vectors * chunk];
    IR_ROLLED for (int place = 0; place < work.members; place += batch) {
      alignas(16) T parts[batch][Vectors * chunk];
      for (int i = 0; i < batch; ++i) {
        if (place + i >= work.members) break;
        const T* const from = work.source(place + i) + at;
        for (std::size_t v = 0; v < Vectors; ++v)
          if (at + v * step < whole)
            target::load_vector<Cache::normal>(parts[i] + v * chunk, from + v * step);
      }
      with_combine(work.op, [&](auto combine) {
        for (int i = 0; i < batch; ++i) {
          if (place + i >= work.members) break;
          accumulate<Vectors * chunk>(totals, parts[i], place + i == 0, combine);
        }
      });
    }
    alignas(16) T results[Vectors * chunk];
    for (std::size_t i = 0; i < Vectors * chunk; ++i) results[i] = convert<T>(finish(totals[i]));
    IR_ROLLED for (int i = 0; i < work.targets; ++i) {
      T* const to = work.target(i) + at;
      for (std::size_t v = 0; v < Vectors; ++v)
        if (at + v * step < whole)
          target::store_vector<Cache::normal>(to + v * step, results + v * chunk);
    }
  }
  return whole;
}

/// A CPU block's whole tiles; returns where they end.
template <int Vectors, class T, int Threads, class Source, class Target>
IR_DEVICE std::size_t reduce_tiles(BlockOf<Threads> block,
                                   const Reduction<T, Source, Target>& work) {
  constexpr int chunk = vector_elements<T>;
  constexpr int size = Vectors * Threads * chunk;
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
/// target(i). Block-collective. In 16-byte accesses where all of them allow it, `Vectors` per
/// thread at a time.
template <int Vectors, class T, int Threads, class Source, class Target>
IR_DEVICE void reduce_slice(BlockOf<Threads> block, ReduceOp op, std::size_t count, int members,
                            Source source, int targets, Target target) {
  const detail::Reduction<T, Source, Target> work = {op, count, members, source, targets, target};
  bool vectors = true;
  IR_ROLLED for (int place = 0; place < members; ++place) {
    vectors = vectors && target::allows_vectors(source(place));
  }
  IR_ROLLED for (int i = 0; i < targets; ++i) {
    vectors = vectors && target::allows_vectors(target(i));
  }
  target::point(block.seat());
  std::size_t done = 0;
  if constexpr (target::loads_in_flight == 1)
    done = detail::reduce_tiles<Vectors>(block, work);
  else if (vectors)
    done = detail::reduce_vectors<Vectors>(block, work);
  detail::reduce_elements(block, work, done);
}

}  // namespace iridium

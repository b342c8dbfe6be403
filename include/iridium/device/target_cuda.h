// NVIDIA GPUs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/compiler.h"
#include "iridium/device/order.h"
#include "iridium/device/seat.h"

namespace iridium::target {

inline constexpr std::uint32_t polls_per_check = 256;

template <int Count, int Chunk, int Threads>
inline constexpr int held_elements = (Count / Chunk + Threads - 1) / Threads * Chunk;

IR_DEVICE inline int block_index(const Seat*) {
  return static_cast<int>(blockIdx.x);
}
IR_DEVICE inline int block_count(const Seat*) {
  return static_cast<int>(gridDim.x);
}
IR_DEVICE inline int thread_index(const Seat*) {
  return static_cast<int>(threadIdx.x);
}
template <int Threads>
IR_DEVICE int thread_count(const Seat*) {
  return Threads;
}
/// In another warp than thread 0: its atomics do not hold up that one's fences.
template <int Threads>
IR_DEVICE int clerk_index(const Seat*) {
  return Threads > 32 ? 32 : 0;
}

/// Not unrolled: a kernel that only waits is as slow as its instructions are many.
template <int Threads, int Limit, class Function>
IR_DEVICE void share(const Seat*, int count, Function function) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (Threads >= Limit) {
    if (thread < count) function(thread);
  } else {
#pragma unroll 1
    for (int i = thread; i < count; i += Threads) function(i);
  }
}

IR_DEVICE inline void sync(Seat*) {
  __syncthreads();
}
IR_DEVICE inline bool any(Seat*, bool mine) {
  return __syncthreads_or(mine) != 0;
}
IR_DEVICE inline bool any(Seat*, bool mine, std::uint64_t& word, int source) {
  __shared__ std::uint64_t shared_word;
  if (static_cast<int>(threadIdx.x) == source) shared_word = word;
  const bool found = __syncthreads_or(mine) != 0;
  word = shared_word;
  return found;
}
IR_DEVICE inline void pause(Seat*, bool) {}
IR_DEVICE inline std::uint64_t nanoseconds(Seat*) {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}
IR_DEVICE inline void point(Seat*) {}

// Atomics are written in PTX to say that addresses are global: for others the compiler must allow
// for shared memory, and then waits for every result.
#define IR_EACH_SCOPE(access, order, text)                                           \
  access(order, text, Scope::block, "cta") access(order, text, Scope::device, "gpu") \
      access(order, text, Scope::system, "sys")
#define IR_IF(o, s) if constexpr (order == o && scope == s)

template <Order order, Scope scope, class T>
IR_DEVICE T load(Seat*, const T* from) {
  static_assert(order == Order::relaxed || order == Order::acquire, "a load cannot release");
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics have 4 or 8 bytes");
  const std::size_t address = __cvta_generic_to_global(from);
  T value = {};
#define IR_LOAD(o, text, s, where)                              \
  IR_IF(o, s) {                                                 \
    if constexpr (sizeof(T) == 4)                               \
      asm volatile("ld." text "." where ".global.b32 %0, [%1];" \
                   : "=r"(value)                                \
                   : "l"(address)                               \
                   : "memory");                                 \
    else                                                        \
      asm volatile("ld." text "." where ".global.b64 %0, [%1];" \
                   : "=l"(value)                                \
                   : "l"(address)                               \
                   : "memory");                                 \
  }
  IR_EACH_SCOPE(IR_LOAD, Order::relaxed, "relaxed")
  IR_EACH_SCOPE(IR_LOAD, Order::acquire, "acquire")
#undef IR_LOAD
  return value;
}

template <Order order, Scope scope, class T>
IR_DEVICE void store(Seat*, T* to, T value) {
  static_assert(order == Order::relaxed || order == Order::release, "a store cannot acquire");
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics have 4 or 8 bytes");
  const std::size_t address = __cvta_generic_to_global(to);
#define IR_STORE(o, text, s, where)                             \
  IR_IF(o, s) {                                                 \
    if constexpr (sizeof(T) == 4)                               \
      asm volatile("st." text "." where ".global.b32 [%0], %1;" \
                   :                                            \
                   : "l"(address), "r"(value)                   \
                   : "memory");                                 \
    else                                                        \
      asm volatile("st." text "." where ".global.b64 [%0], %1;" \
                   :                                            \
                   : "l"(address), "l"(value)                   \
                   : "memory");                                 \
  }
  IR_EACH_SCOPE(IR_STORE, Order::relaxed, "relaxed")
  IR_EACH_SCOPE(IR_STORE, Order::release, "release")
#undef IR_STORE
}

template <Order order, Scope scope, class T>
IR_DEVICE T fetch_add(Seat*, T* to, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics have 4 or 8 bytes");
  const std::size_t address = __cvta_generic_to_global(to);
  T before = {};
#define IR_ADD(o, text, s, where)                                         \
  IR_IF(o, s) {                                                           \
    if constexpr (sizeof(T) == 4)                                         \
      asm volatile("atom." text "." where ".global.add.u32 %0, [%1], %2;" \
                   : "=r"(before)                                         \
                   : "l"(address), "r"(value)                             \
                   : "memory");                                           \
    else                                                                  \
      asm volatile("atom." text "." where ".global.add.u64 %0, [%1], %2;" \
                   : "=l"(before)                                         \
                   : "l"(address), "l"(value)                             \
                   : "memory");                                           \
  }
  IR_EACH_SCOPE(IR_ADD, Order::relaxed, "relaxed")
  IR_EACH_SCOPE(IR_ADD, Order::acquire, "acquire")
  IR_EACH_SCOPE(IR_ADD, Order::release, "release")
  IR_EACH_SCOPE(IR_ADD, Order::acq_rel, "acq_rel")
#undef IR_ADD
  return before;
}

template <Order order, Scope scope, class T>
IR_DEVICE T compare_exchange(Seat*, T* to, T expected, T desired) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics have 4 or 8 bytes");
  const std::size_t address = __cvta_generic_to_global(to);
  T before = {};
#define IR_EXCHANGE(o, text, s, where)                                        \
  IR_IF(o, s) {                                                               \
    if constexpr (sizeof(T) == 4)                                             \
      asm volatile("atom." text "." where ".global.cas.b32 %0, [%1], %2, %3;" \
                   : "=r"(before)                                             \
                   : "l"(address), "r"(expected), "r"(desired)                \
                   : "memory");                                               \
    else                                                                      \
      asm volatile("atom." text "." where ".global.cas.b64 %0, [%1], %2, %3;" \
                   : "=l"(before)                                             \
                   : "l"(address), "l"(expected), "l"(desired)                \
                   : "memory");                                               \
  }
  IR_EACH_SCOPE(IR_EXCHANGE, Order::relaxed, "relaxed")
  IR_EACH_SCOPE(IR_EXCHANGE, Order::acquire, "acquire")
  IR_EACH_SCOPE(IR_EXCHANGE, Order::release, "release")
  IR_EACH_SCOPE(IR_EXCHANGE, Order::acq_rel, "acq_rel")
#undef IR_EXCHANGE
  return before;
}
#undef IR_IF
#undef IR_EACH_SCOPE

struct alignas(16) Pair {
  std::uint64_t first;
  std::uint64_t second;
};

IR_DEVICE inline Pair load_pair(Seat*, const Pair* from) {
  Pair value = {};
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(value.first), "=l"(value.second)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return value;
}
IR_DEVICE inline void store_pair(Seat*, Pair* to, Pair value) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};"
               :
               : "l"(__cvta_generic_to_global(to)), "l"(value.first), "l"(value.second)
               : "memory");
}

template <int Count, int Chunk, int Threads, class Function>
IR_DEVICE void for_each_chunk(Function function) {
  constexpr int chunks = Count / Chunk;
#pragma unroll
  for (int round = 0; round < (chunks + Threads - 1) / Threads; ++round) {
    const int chunk = round * Threads + static_cast<int>(threadIdx.x);
    if (chunks % Threads == 0 || chunk < chunks) function(chunk * Chunk, round * Chunk);
  }
}

template <class T>
IR_DEVICE bool is_vector_aligned(const T* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// Full tiles at addresses that allow it move as 16-byte vectors; what is ragged, element by
/// element.
template <int Count, int Chunk, int Threads, class T>
IR_DEVICE void load_tile(Seat*, T* elements, const T* from, std::size_t available) {
  constexpr int vectors = Chunk * static_cast<int>(sizeof(T)) / 16;
  constexpr int step = 16 / static_cast<int>(sizeof(T));
  if (vectors > 0 && available >= Count && is_vector_aligned(from)) {
    for_each_chunk<Count, Chunk, Threads>([&](int place, int held) {
#pragma unroll
      for (int i = 0; i < vectors; ++i)
        *reinterpret_cast<uint4*>(elements + held + i * step) =
            *reinterpret_cast<const uint4*>(from + place + i * step);
    });
    return;
  }
  for_each_chunk<Count, Chunk, Threads>([&](int place, int held) {
#pragma unroll
    for (int i = 0; i < Chunk; ++i)
      elements[held + i] = static_cast<std::size_t>(place + i) < available ? from[place + i] : T();
  });
}

template <int Count, int Chunk, int Threads, class T>
IR_DEVICE void store_tile(Seat*, T* to, const T* elements, std::size_t available) {
  constexpr int vectors = Chunk * static_cast<int>(sizeof(T)) / 16;
  constexpr int step = 16 / static_cast<int>(sizeof(T));
  if (vectors > 0 && available >= Count && is_vector_aligned(to)) {
    for_each_chunk<Count, Chunk, Threads>([&](int place, int held) {
#pragma unroll
      for (int i = 0; i < vectors; ++i)
        *reinterpret_cast<uint4*>(to + place + i * step) =
            *reinterpret_cast<const uint4*>(elements + held + i * step);
    });
    return;
  }
  for_each_chunk<Count, Chunk, Threads>([&](int place, int held) {
#pragma unroll
    for (int i = 0; i < Chunk; ++i)
      if (static_cast<std::size_t>(place + i) < available) to[place + i] = elements[held + i];
  });
}

template <int Count, int Chunk, int Threads, class Function>
IR_DEVICE void for_each_held(const Seat*, Function function) {
  for_each_chunk<Count, Chunk, Threads>([&](int place, int held) {
#pragma unroll
    for (int i = 0; i < Chunk; ++i) function(place + i, held + i);
  });
}

}  // namespace iridium::target

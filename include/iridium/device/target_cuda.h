// NVIDIA GPUs: the compiler's atomics, which become single instructions with order and scope.
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

/// A block of one warp has barriers of its own, which are quicker.
template <int Threads>
IR_DEVICE void sync(Seat*) {
  if constexpr (Threads == 32)
    __syncwarp();
  else
    __syncthreads();
}
template <int Threads>
IR_DEVICE bool any(Seat*, bool mine) {
  if constexpr (Threads == 32)
    return __any_sync(~0u, mine) != 0;
  else
    return __syncthreads_or(mine) != 0;
}
template <int Threads>
IR_DEVICE bool any(Seat*, bool mine, std::uint64_t& word) {
  if constexpr (Threads == 32) {
    word = __shfl_sync(~0u, word, 0);
    __syncwarp();
    return __any_sync(~0u, mine) != 0;
  }
  __shared__ std::uint64_t leader_word;
  if (threadIdx.x == 0) leader_word = word;
  const bool found = __syncthreads_or(mine) != 0;
  word = leader_word;
  return found;
}
IR_DEVICE inline void pause(Seat*, bool) {}
IR_DEVICE inline std::uint64_t nanoseconds(Seat*) {
  std::uint64_t time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}
IR_DEVICE inline void point(Seat*) {}

template <Order order>
inline constexpr int language_order = order == Order::relaxed   ? __NV_ATOMIC_RELAXED
                                      : order == Order::acquire ? __NV_ATOMIC_ACQUIRE
                                      : order == Order::release ? __NV_ATOMIC_RELEASE
                                                                : __NV_ATOMIC_ACQ_REL;
template <Scope scope>
inline constexpr int language_scope = scope == Scope::block    ? __NV_THREAD_SCOPE_BLOCK
                                      : scope == Scope::device ? __NV_THREAD_SCOPE_DEVICE
                                                               : __NV_THREAD_SCOPE_SYSTEM;

/// The compiler wants order and scope as literals, for which arguments of a template pass.
template <int order, int scope>
struct Atomic {
  template <class T>
  IR_DEVICE static T load(T* from) {
    return __nv_atomic_load_n(from, order, scope);
  }
  template <class T>
  IR_DEVICE static void store(T* to, T value) {
    __nv_atomic_store_n(to, value, order, scope);
  }
  template <class T>
  IR_DEVICE static T fetch_add(T* to, T value) {
    return __nv_atomic_fetch_add(to, value, order, scope);
  }
  template <class T>
  IR_DEVICE static T compare_exchange(T* to, T expected, T desired) {
    __nv_atomic_compare_exchange_n(to, &expected, desired, false, order, __NV_ATOMIC_RELAXED,
                                   scope);
    return expected;
  }
};
template <Order order, Scope scope>
using AtomicOf = Atomic<language_order<order>, language_scope<scope>>;

template <Order order, Scope scope, class T>
IR_DEVICE T load(Seat*, const T* from) {
  static_assert(order == Order::relaxed || order == Order::acquire, "a load cannot release");
  return AtomicOf<order, scope>::load(const_cast<T*>(from));
}

template <Order order, Scope scope, class T>
IR_DEVICE void store(Seat*, T* to, T value) {
  static_assert(order == Order::relaxed || order == Order::release, "a store cannot acquire");
  AtomicOf<order, scope>::store(to, value);
}

template <Order order, Scope scope, class T>
IR_DEVICE T fetch_add(Seat*, T* to, T value) {
  return AtomicOf<order, scope>::fetch_add(to, value);
}

template <Order order, Scope scope, class T>
IR_DEVICE T compare_exchange(Seat*, T* to, T expected, T desired) {
  return AtomicOf<order, scope>::compare_exchange(to, expected, desired);
}

struct alignas(16) Pair {
  std::uint64_t first;
  std::uint64_t second;
};

IR_DEVICE inline Pair load_pair(Seat*, const Pair* from) {
  Pair value = {};
  asm volatile("ld.relaxed.sys.v2.b64 {%0, %1}, [%2];"
               : "=l"(value.first), "=l"(value.second)
               : "l"(from)
               : "memory");
  return value;
}
IR_DEVICE inline void store_pair(Seat*, Pair* to, Pair value) {
  asm volatile("st.relaxed.sys.v2.b64 [%0], {%1, %2};"
               :
               : "l"(to), "l"(value.first), "l"(value.second)
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

// AMD GPUs of the gfx9 kind: MI200 and MI300, with waves of 64. In clang's builtins, so that it
// needs no header of the vendor.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "iridium/device/access.h"
#include "iridium/device/compiler.h"
#include "iridium/device/order.h"
#include "iridium/device/seat.h"

#if !defined(__GFX9__)
#error "of AMD's GPUs only the gfx9 kind is known: others have another clock and waves of 32"
#endif

namespace iridium::target {

inline constexpr std::uint32_t polls_per_check = 256;
inline constexpr int group_threads = 32;
inline constexpr bool has_whole_blocks = false;
IR_DEVICE constexpr bool is_whole(const Seat*) {
  return false;
}
inline constexpr int wave_threads = 64;
inline constexpr int max_block_waves = 16;

template <int Count, int Chunk, int Threads>
inline constexpr int held_elements = (Count / Chunk + Threads - 1) / Threads * Chunk;

IR_DEVICE inline int block_index(const Seat*) {
  return static_cast<int>(__builtin_amdgcn_workgroup_id_x());
}
IR_DEVICE inline int block_count(const Seat*) {
  return static_cast<int>(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x());
}
IR_DEVICE inline int thread_index(const Seat*) {
  return static_cast<int>(__builtin_amdgcn_workitem_id_x());
}
template <int Threads>
IR_DEVICE int thread_count(const Seat*) {
  return Threads;
}
/// In another wave than thread 0: its atomics do not hold up that one's fences.
template <int Threads>
IR_DEVICE int clerk_index(const Seat*) {
  return Threads > wave_threads ? wave_threads : 0;
}

/// Not unrolled: a kernel that only waits is as slow as its instructions are many.
template <int Threads, int Limit, class Function>
IR_DEVICE void share(const Seat* seat, int count, Function function) {
  const int thread = thread_index(seat);
  if constexpr (Threads >= Limit) {
    if (thread < count) function(thread);
  } else {
#pragma unroll 1
    for (int i = thread; i < count; i += Threads) function(i);
  }
}

/// Waits until the accesses of this wave are done, and what it has told the caches to do. By hand:
/// the compiler's fences wait only where it knows of something to wait for.
IR_DEVICE inline void finish_accesses() {
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
}

/// A barrier for what the threads of the block see of each other, and for nothing beyond.
IR_DEVICE inline void meet() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
IR_DEVICE inline void sync(Seat*) {
  // A thread that releases what the block wrote waits for its own wave's accesses only; and the
  // block's barrier by itself waits for none, since its waves share a cache.
  finish_accesses();
  meet();
}
IR_DEVICE inline bool any(Seat* seat, bool mine) {
  __shared__ bool wave_found[max_block_waves];
  const int thread = thread_index(seat);
  const bool in_wave = __builtin_amdgcn_ballot_w64(mine) != 0;
  if (thread % wave_threads == 0) wave_found[thread / wave_threads] = in_wave;
  sync(seat);
  const int threads = static_cast<int>(__builtin_amdgcn_workgroup_size_x());
  bool found = false;
  for (int wave = 0; wave * wave_threads < threads; ++wave) found |= wave_found[wave];
  // No wave writes for the next call before all have read.
  meet();
  return found;
}
IR_DEVICE inline bool any(Seat* seat, bool mine, std::uint64_t& word, int source) {
  __shared__ std::uint64_t shared_word;
  if (thread_index(seat) == source) shared_word = word;
  const bool found = any(seat, mine);
  word = shared_word;
  return found;
}
/// 64 cycles, in which the other waves of the processor have it to themselves.
IR_DEVICE inline void pause(Seat*, bool) {
  __builtin_amdgcn_s_sleep(1);
}
/// Of a clock that runs at 100 MHz on gfx9, whatever the GPU's own.
IR_DEVICE inline std::uint64_t nanoseconds(Seat*) {
  return __builtin_amdgcn_s_memrealtime() * 10;
}
IR_DEVICE inline void point(Seat*) {}
IR_DEVICE inline void await_previous(Seat*) {}
template <class... Values>
IR_DEVICE void settle(Values&...) {}
IR_DEVICE inline void let_next_start(Seat*) {}

// Accesses say that addresses are global: for others the compiler must allow for shared memory, and
// then waits for that too.
template <class T>
using Global = __attribute__((address_space(1))) T;

template <class To, class T>
IR_DEVICE Global<To>* global(T* address) {
  return (Global<To>*)address;
}

/// What the access itself does of its order, `release` the rest.
template <Order order>
inline constexpr int order_code = __ATOMIC_RELAXED;
template <>
inline constexpr int order_code<Order::acquire> = __ATOMIC_ACQUIRE;
template <>
inline constexpr int order_code<Order::acq_rel> = __ATOMIC_ACQUIRE;

template <Scope scope>
inline constexpr int scope_code = __HIP_MEMORY_SCOPE_SYSTEM;
template <>
inline constexpr int scope_code<Scope::block> = __HIP_MEMORY_SCOPE_WORKGROUP;
template <>
inline constexpr int scope_code<Scope::device> = __HIP_MEMORY_SCOPE_AGENT;

/// Before an access that releases. Not left to the access: clang 19 does not wait until the cache
/// is written back (llvm-project #178316), and then the flag overtakes the data of other waves.
template <Order order, Scope scope>
IR_DEVICE void release() {
  if constexpr (order == Order::release || order == Order::acq_rel) {
    if constexpr (scope == Scope::block)
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    else if constexpr (scope == Scope::device)
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    else
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    finish_accesses();
  }
}

/// For accesses with `told_order`: what the block has stored comes before them for whoever
/// acquires what they write.
IR_DEVICE inline void release_stores(Seat*, bool) {
  release<Order::release, Scope::system>();
}
inline constexpr Order told_order = Order::relaxed;

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T load(Seat*, const T* from) {
  static_assert(order == Order::relaxed || order == Order::acquire, "a load cannot release");
  const BitsOf<T> bits =
      __hip_atomic_load(global<const BitsOf<T>>(from), order_code<order>, scope_code<scope>);
  return __builtin_bit_cast(T, bits);
}

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE void store(Seat*, T* to, T value) {
  static_assert(order == Order::relaxed || order == Order::release, "a store cannot acquire");
  release<order, scope>();
  __hip_atomic_store(global<BitsOf<T>>(to), __builtin_bit_cast(BitsOf<T>, value), order_code<order>,
                     scope_code<scope>);
}

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T compare_exchange(Seat*, T* to, T expected, T desired) {
  release<order, scope>();
  auto bits = __builtin_bit_cast(BitsOf<T>, expected);
  __hip_atomic_compare_exchange_strong(global<BitsOf<T>>(to), &bits,
                                       __builtin_bit_cast(BitsOf<T>, desired), order_code<order>,
                                       order_code<order>, scope_code<scope>);
  return __builtin_bit_cast(T, bits);
}

template <class T>
inline constexpr bool can_add = sizeof(T) >= 4;

/// Whether `update` is one instruction. To memory behind PCIe, as the host's, only these are
/// carried; others are lost there without a word.
template <AtomicOp op, Scope scope, class T>
inline constexpr bool is_instruction =
    scope != Scope::system || op == AtomicOp::exchange || (op == AtomicOp::add && std::integral<T>);

template <AtomicOp op, Order order, Scope scope, class T>
IR_DEVICE T update(Seat* seat, T* to, T value) {
  constexpr int code = order_code<order>;
  constexpr int among = scope_code<scope>;
  release<order, scope>();
  if constexpr (!is_instruction<op, scope, T>) {
    constexpr bool acquires = code == __ATOMIC_ACQUIRE;
    using Bits = BitsOf<T>;
    auto* const there = reinterpret_cast<Bits*>(to);
    Bits seen = load<Order::relaxed, scope>(seat, there);
    for (;;) {
      const T before = __builtin_bit_cast(T, seen);
      const auto desired = __builtin_bit_cast(Bits, updated<op>(before, value));
      const Bits found = compare_exchange<acquires ? Order::acquire : Order::relaxed, scope>(
          seat, there, seen, desired);
      if (found == seen) return before;
      seen = found;
    }
  } else if constexpr (op == AtomicOp::add) {
    return __hip_atomic_fetch_add(global<T>(to), value, code, among);
  } else if constexpr (op == AtomicOp::bit_and) {
    return __hip_atomic_fetch_and(global<T>(to), value, code, among);
  } else if constexpr (op == AtomicOp::bit_or) {
    return __hip_atomic_fetch_or(global<T>(to), value, code, among);
  } else if constexpr (op == AtomicOp::bit_xor) {
    return __hip_atomic_fetch_xor(global<T>(to), value, code, among);
  } else if constexpr (op == AtomicOp::minimum) {
    return __hip_atomic_fetch_min(global<T>(to), value, code, among);
  } else if constexpr (op == AtomicOp::maximum) {
    return __hip_atomic_fetch_max(global<T>(to), value, code, among);
  } else {
    return __hip_atomic_exchange(global<T>(to), value, code, among);
  }
}

struct alignas(16) Pair {
  std::uint64_t first;
  std::uint64_t second;
};

// Two accesses: no atomic one of 16 bytes can be written, and a plain one may be cut anywhere.
IR_DEVICE inline Pair load_pair(Seat* seat, const Pair* from) {
  return {load<Order::relaxed, Scope::system>(seat, &from->first),
          load<Order::relaxed, Scope::system>(seat, &from->second)};
}
IR_DEVICE inline void store_pair(Seat* seat, Pair* to, Pair value) {
  store<Order::relaxed, Scope::system>(seat, &to->first, value.first);
  store<Order::relaxed, Scope::system>(seat, &to->second, value.second);
}

using Vector = std::uint32_t __attribute__((ext_vector_type(4)));

/// 16 bytes. `Cache::shared` has no counterpart here.
template <Cache cache, class T>
IR_DEVICE void load_vector(T* to, const T* from) {
  const auto* const there = global<const Vector>(from);
  auto* const here = reinterpret_cast<Vector*>(to);
  if constexpr (cache == Cache::streaming)
    *here = __builtin_nontemporal_load(there);
  else
    *here = *there;
}
template <Cache cache, class T>
IR_DEVICE void store_vector(T* to, const T* from) {
  auto* const there = global<Vector>(to);
  const auto* const here = reinterpret_cast<const Vector*>(from);
  if constexpr (cache == Cache::streaming)
    __builtin_nontemporal_store(*here, there);
  else
    *there = *here;
}

/// Memory of the block: `Count` objects, the same ones at every call with the same types.
template <class Tag, class T, int Count>
IR_DEVICE T* block_memory(Seat*) {
  alignas(16) __shared__ std::byte memory[Count * sizeof(T)];
  return reinterpret_cast<T*>(memory);
}
/// A place in the block's memory.
using BlockAddress = std::byte*;
template <class T>
IR_DEVICE BlockAddress block_address(T* memory) {
  return reinterpret_cast<std::byte*>(memory);
}
// Copies to the block's memory, which are done when they return: gfx9 has none of 16 bytes that
// goes on by itself.
template <class T>
IR_DEVICE void fetch_vector(Seat*, BlockAddress to, const T* from) {
  load_vector<Cache::normal>(reinterpret_cast<T*>(to), from);
}
IR_DEVICE inline void end_fetch(Seat*) {}
template <int Open>
IR_DEVICE void await_fetches(Seat*) {}
/// 16 bytes of the block's memory.
template <class T>
IR_DEVICE void read_vector(T* to, BlockAddress from) {
  *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from);
}
template <class T>
IR_DEVICE T* read_pointer(BlockAddress from) {
  return *reinterpret_cast<T* const*>(from);
}

template <int Count, int Chunk, int Threads, class Function>
IR_DEVICE void for_each_chunk(const Seat* seat, Function function) {
  constexpr int chunks = Count / Chunk;
#pragma unroll
  for (int round = 0; round < (chunks + Threads - 1) / Threads; ++round) {
    const int chunk = round * Threads + thread_index(seat);
    if (chunks % Threads == 0 || chunk < chunks) function(chunk * Chunk, round * Chunk);
  }
}

template <class T>
IR_DEVICE bool allows_vectors(const Seat*, const T* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void load_tile(const Seat* seat, T* elements, const T* from) {
  for_each_chunk<Count, Chunk, Threads>(seat, [&](int place, int held) {
#pragma unroll
    for (int i = 0; i < Chunk; i += vector_elements<T>)
      load_vector<cache>(elements + held + i, from + place + i);
  });
}
template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void store_tile(const Seat* seat, T* to, const T* elements) {
  for_each_chunk<Count, Chunk, Threads>(seat, [&](int place, int held) {
#pragma unroll
    for (int i = 0; i < Chunk; i += vector_elements<T>)
      store_vector<cache>(to + place + i, elements + held + i);
  });
}
template <int Count, int Chunk, int Threads, Cache cache, class T>
IR_DEVICE void copy_tile(const Seat* seat, T* to, const T* from) {
  alignas(16) T elements[held_elements<Count, Chunk, Threads>];
  load_tile<Count, Chunk, Threads, cache>(seat, elements, from);
  store_tile<Count, Chunk, Threads, cache>(seat, to, elements);
}

template <int Count, class T>
IR_DEVICE void begin_tile(const Seat*, T*) {}

}  // namespace iridium::target

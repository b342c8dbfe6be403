// NVIDIA GPUs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/device/access.h"
#include "iridium/device/compiler.h"
#include "iridium/device/order.h"
#include "iridium/device/seat.h"

namespace iridium::target {

inline constexpr std::uint32_t polls_per_check = 256;
inline constexpr int group_threads = 32;
inline constexpr bool has_whole_blocks = false;
IR_DEVICE constexpr bool is_whole(const Seat*) {
  return false;
}

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

/// Looks at every line of a kernel's arguments, so that they are near when they are needed.
template <class Kernel>
IR_DEVICE void fetch_arguments(const Kernel* kernel) {
  constexpr std::size_t line = 64;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(kernel);
  unsigned seen = 0;
  for (std::size_t i = 0; i < sizeof(Kernel); i += line) seen ^= bytes[i];
  seen ^= bytes[sizeof(Kernel) - 1];
  // Something to do with them, which does no harm.
  if (seen == 1) asm volatile("nanosleep.u32 1;");
}
// A kernel may be started before the one in front of it in the stream has ended; `await_previous`
// comes before it reads or writes memory.
IR_DEVICE inline void await_previous(Seat*) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
IR_DEVICE inline void let_next_start(Seat*) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Has the compiler work these values out here, and not where they are used.
template <class... Values>
IR_DEVICE void settle(Values&... values) {
  (
      [&] {
        if constexpr (sizeof(Values) == 8)
          asm volatile("" : "+l"(values));
        else
          asm volatile("" : "+r"(values));
      }(),
      ...);
}

// Atomics are written in PTX to say that addresses are global: for others the compiler must allow
// for shared memory, and then waits for every result. The constraint "C" puts a text into the
// instruction: atom + .release + .sys + .global + .add + .u32.
template <Order order>
inline constexpr char order_text[] = "";
template <>
inline constexpr char order_text<Order::relaxed>[] = ".relaxed";
template <>
inline constexpr char order_text<Order::acquire>[] = ".acquire";
template <>
inline constexpr char order_text<Order::release>[] = ".release";
template <>
inline constexpr char order_text<Order::acq_rel>[] = ".acq_rel";

template <Scope scope>
inline constexpr char scope_text[] = "";
template <>
inline constexpr char scope_text<Scope::block>[] = ".cta";
template <>
inline constexpr char scope_text<Scope::device>[] = ".gpu";
template <>
inline constexpr char scope_text<Scope::system>[] = ".sys";

template <AtomicOp op>
inline constexpr char op_text[] = "";
template <>
inline constexpr char op_text<AtomicOp::add>[] = ".add";
template <>
inline constexpr char op_text<AtomicOp::bit_and>[] = ".and";
template <>
inline constexpr char op_text<AtomicOp::bit_or>[] = ".or";
template <>
inline constexpr char op_text<AtomicOp::bit_xor>[] = ".xor";
template <>
inline constexpr char op_text<AtomicOp::minimum>[] = ".min";
template <>
inline constexpr char op_text<AtomicOp::maximum>[] = ".max";
template <>
inline constexpr char op_text<AtomicOp::exchange>[] = ".exch";

template <AtomicOp op, class T>
constexpr char type_letter() {
  if (op == AtomicOp::add) return 'u';
  if (op == AtomicOp::minimum || op == AtomicOp::maximum) return std::is_signed_v<T> ? 's' : 'u';
  return 'b';
}
template <AtomicOp op, class T>
inline constexpr char type_text[] = {'.', type_letter<op, T>(), sizeof(T) == 4 ? '3' : '6',
                                     sizeof(T) == 4 ? '2' : '4', 0};
template <>
inline constexpr char type_text<AtomicOp::add, float>[] = ".f32";
template <>
inline constexpr char type_text<AtomicOp::add, double>[] = ".f64";
template <>
inline constexpr char type_text<AtomicOp::add, fp16>[] = ".noftz.f16";
template <>
inline constexpr char type_text<AtomicOp::add, bf16>[] = ".noftz.bf16";

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T load(Seat*, const T* from) {
  static_assert(order == Order::relaxed || order == Order::acquire, "a load cannot release");
  const std::size_t address = __cvta_generic_to_global(from);
  BitsOf<T> bits = 0;
  if constexpr (sizeof(T) == 4)
    asm volatile("ld%2%3.global.b32 %0, [%1];"
                 : "=r"(bits)
                 : "l"(address), "C"(order_text<order>), "C"(scope_text<scope>)
                 : "memory");
  else
    asm volatile("ld%2%3.global.b64 %0, [%1];"
                 : "=l"(bits)
                 : "l"(address), "C"(order_text<order>), "C"(scope_text<scope>)
                 : "memory");
  return __builtin_bit_cast(T, bits);
}

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE void store(Seat*, T* to, T value) {
  static_assert(order == Order::relaxed || order == Order::release, "a store cannot acquire");
  const std::size_t address = __cvta_generic_to_global(to);
  const auto bits = __builtin_bit_cast(BitsOf<T>, value);
  if constexpr (sizeof(T) == 4)
    asm volatile("st%2%3.global.b32 [%0], %1;"
                 :
                 : "l"(address), "r"(bits), "C"(order_text<order>), "C"(scope_text<scope>)
                 : "memory");
  else
    asm volatile("st%2%3.global.b64 [%0], %1;"
                 :
                 : "l"(address), "l"(bits), "C"(order_text<order>), "C"(scope_text<scope>)
                 : "memory");
}

/// For accesses with `told_order`: what the block has stored comes before them for whoever
/// acquires what they write. `on_device`: all of those are on this GPU. They are of other
/// processes, which no scope is defined for; but this GPU's cache is where all of them meet, and
/// fences for the system take turns among processes.
IR_DEVICE inline void release_stores(Seat*, bool on_device) {
  if (on_device)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
inline constexpr Order told_order = Order::relaxed;

#if __CUDA_ARCH__ >= 900
template <class T>
inline constexpr bool can_add = true;
#else
template <class T>
inline constexpr bool can_add = !std::same_as<T, bf16>;
#endif

template <AtomicOp op, Order order, Scope scope, class T>
IR_DEVICE T update(Seat*, T* to, T value) {
  const std::size_t address = __cvta_generic_to_global(to);
  T before = {};
#define IR_ATOM(constraint, result, operand)                                     \
  asm volatile("atom%3%4.global%5%6 %0, [%1], %2;"                               \
               : "=" constraint(result)                                          \
               : "l"(address), constraint(operand), "C"(order_text<order>),      \
                 "C"(scope_text<scope>), "C"(op_text<op>), "C"(type_text<op, T>) \
               : "memory")
  if constexpr (std::same_as<T, float>)
    IR_ATOM("f", before, value);
  else if constexpr (std::same_as<T, double>)
    IR_ATOM("d", before, value);
  else if constexpr (sizeof(T) == 2)
    IR_ATOM("h", before.bits, value.bits);
  else if constexpr (sizeof(T) == 4)
    IR_ATOM("r", before, value);
  else
    IR_ATOM("l", before, value);
#undef IR_ATOM
  return before;
}

template <Order order, Scope scope, AtomicValue T>
IR_DEVICE T compare_exchange(Seat*, T* to, T expected, T desired) {
  const std::size_t address = __cvta_generic_to_global(to);
  const auto old_bits = __builtin_bit_cast(BitsOf<T>, expected);
  const auto new_bits = __builtin_bit_cast(BitsOf<T>, desired);
  BitsOf<T> before = 0;
  if constexpr (sizeof(T) == 4)
    asm volatile("atom%4%5.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(address), "r"(old_bits), "r"(new_bits), "C"(order_text<order>),
                   "C"(scope_text<scope>)
                 : "memory");
  else
    asm volatile("atom%4%5.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(before)
                 : "l"(address), "l"(old_bits), "l"(new_bits), "C"(order_text<order>),
                   "C"(scope_text<scope>)
                 : "memory");
  return __builtin_bit_cast(T, before);
}

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

template <Cache cache>
inline constexpr char cache_text[] = "";
template <>
inline constexpr char cache_text<Cache::streaming>[] = ".cs";
template <>
inline constexpr char cache_text<Cache::shared>[] = ".cg";

/// 16 bytes. In PTX, since the compiler takes vectors apart and does not always put them together
/// again, and since its own functions with a hint may move across barriers.
template <Cache cache, class T>
IR_DEVICE void load_vector(T* to, const T* from) {
  uint4& vector = *reinterpret_cast<uint4*>(to);
  asm volatile("ld.global%5.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(vector.x), "=r"(vector.y), "=r"(vector.z), "=r"(vector.w)
               : "l"(__cvta_generic_to_global(from)), "C"(cache_text<cache>)
               : "memory");
}
template <Cache cache, class T>
IR_DEVICE void store_vector(T* to, const T* from) {
  const uint4& vector = *reinterpret_cast<const uint4*>(from);
  asm volatile("st.global%5.v4.b32 [%4], {%0, %1, %2, %3};"
               :
               : "r"(vector.x), "r"(vector.y), "r"(vector.z), "r"(vector.w),
                 "l"(__cvta_generic_to_global(to)), "C"(cache_text<cache>)
               : "memory");
}

/// Memory of the block: `Count` objects, the same ones at every call with the same types.
template <class Tag, class T, int Count>
IR_DEVICE T* block_memory(Seat*) {
  __shared__ alignas(16) std::byte memory[Count * sizeof(T)];
  return reinterpret_cast<T*>(memory);
}
/// A place in the block's memory.
using BlockAddress = std::uint32_t;
template <class T>
IR_DEVICE BlockAddress block_address(T* memory) {
  auto address = static_cast<BlockAddress>(__cvta_generic_to_shared(memory));
  // The compiler would find it out again at every use.
  settle(address);
  return address;
}
/// Begins to copy 16 bytes to the block's memory.
template <class T>
IR_DEVICE void fetch_vector(Seat*, BlockAddress to, const T* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from))
               : "memory");
}
/// 16 bytes of the block's memory.
template <class T>
IR_DEVICE void read_vector(T* to, BlockAddress from) {
  uint4& vector = *reinterpret_cast<uint4*>(to);
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(vector.x), "=r"(vector.y), "=r"(vector.z), "=r"(vector.w)
               : "r"(from)
               : "memory");
}
template <class T>
IR_DEVICE T* read_pointer(BlockAddress from) {
  std::uint64_t address = 0;
  asm volatile("ld.shared.b64 %0, [%1];" : "=l"(address) : "r"(from) : "memory");
  return reinterpret_cast<T*>(address);
}
/// What this thread has fetched since the last call belongs together.
IR_DEVICE inline void end_fetch(Seat*) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for all but the last `Open` fetches that this thread has ended.
template <int Open>
IR_DEVICE void await_fetches(Seat*) {
  asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

template <int Count, int Chunk, int Threads, class Function>
IR_DEVICE void for_each_chunk(const Seat*, Function function) {
  constexpr int chunks = Count / Chunk;
#pragma unroll
  for (int round = 0; round < (chunks + Threads - 1) / Threads; ++round) {
    const int chunk = round * Threads + static_cast<int>(threadIdx.x);
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

// Kernels that move memory between ranks, and their twins that do the same to plain pointers
// without the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "iridium/device/atomic.h"
#include "iridium/device/lane_call.h"
#include "iridium/device/remote_memory.h"
#include "iridium/device/signal.h"

namespace iridium::bench {

inline constexpr int max_ranks = 8;

struct Put {
  Lane lane;
  float* to;
  const float* from;
  std::size_t count;
  int place;

  IR_DEVICE void operator()(Block block) const {
    put(block, lane, to, from, count, place, By::grid);
  }
};

struct Get {
  Lane lane;
  float* to;
  const float* from;
  std::size_t count;
  int place;

  IR_DEVICE void operator()(Block block) const {
    get(block, lane, to, from, count, place, By::grid);
  }
};

/// This rank's vector, to every member.
template <class T>
struct AllStore {
  static constexpr int tile = 4 * Block::gpu_threads * vector_elements<T>;
  Lane lane;
  T* to;
  const T* from;
  std::size_t count;

  IR_DEVICE void operator()(Block block) const {
    const std::size_t step = static_cast<std::size_t>(block.count()) * tile;
    for (auto first = static_cast<std::size_t>(block.index()) * tile; first < count;
         first += step) {
      const auto values = load<tile>(block, from, first, count);
      for (int place = 0; place < lane.peers().size(); ++place)
        store_to(block, lane, to, place, first, count, values);
    }
  }
};

/// The sum of every member's vector.
template <class T>
struct AllLoad {
  static constexpr int tile = 4 * Block::gpu_threads * vector_elements<T>;
  Lane lane;
  T* to;
  const T* from;
  std::size_t count;

  IR_DEVICE void operator()(Block block) const {
    const std::size_t step = static_cast<std::size_t>(block.count()) * tile;
    for (auto first = static_cast<std::size_t>(block.index()) * tile; first < count;
         first += step) {
      auto sum = load_from<tile>(block, lane, from, 0, first, count);
      for (int place = 1; place < lane.peers().size(); ++place)
        sum = sum + load_from<tile>(block, lane, from, place, first, count);
      store(block, to, first, count, sum);
    }
  }
};

/// Reads the vectors at `from` and adds them up, and writes the sum to every address in `to`.
struct PlainCopy {
  float* to[max_ranks];
  int targets;
  const float* from[max_ranks];
  int sources;
  std::size_t count;  ///< a multiple of 4

  IR_DEVICE void operator()(Block block) const {
#if IR_ON_CUDA
    constexpr int unroll = 4;
    const std::size_t vectors = count / 4;
    const std::size_t step = std::size_t{gridDim.x} * Block::gpu_threads * unroll;
    std::size_t i = std::size_t{blockIdx.x} * Block::gpu_threads * unroll + threadIdx.x;
    for (; i < vectors; i += step) {
      float4 values[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u)
        if (i + u * Block::gpu_threads < vectors)
          values[u] = reinterpret_cast<const float4*>(from[0])[i + u * Block::gpu_threads];
      for (int source = 1; source < sources; ++source) {
#pragma unroll
        for (int u = 0; u < unroll; ++u)
          if (i + u * Block::gpu_threads < vectors) {
            const float4 other =
                reinterpret_cast<const float4*>(from[source])[i + u * Block::gpu_threads];
            values[u].x += other.x;
            values[u].y += other.y;
            values[u].z += other.z;
            values[u].w += other.w;
          }
      }
      for (int target = 0; target < targets; ++target) {
#pragma unroll
        for (int u = 0; u < unroll; ++u)
          if (i + u * Block::gpu_threads < vectors)
            reinterpret_cast<float4*>(to[target])[i + u * Block::gpu_threads] = values[u];
      }
    }
#else
    const Slice mine = slice_of<float>(block, count);
    if (sources == 1) {
      for (int target = 0; target < targets; ++target)
        std::memcpy(to[target] + mine.first, from[0] + mine.first, mine.count * sizeof(float));
      return;
    }
    for (std::size_t i = mine.first; i < mine.first + mine.count; ++i) {
      float sum = from[0][i];
      for (int source = 1; source < sources; ++source) sum += from[source][i];
      for (int target = 0; target < targets; ++target) to[target][i] = sum;
    }
#endif
  }
};

/// Every thread adds to a counter of its own, or all to one.
struct Atomics {
  std::uint32_t* counters;
  int per_thread;
  bool spread;

  IR_DEVICE void operator()(Block block) const {
    const int thread = block.index() * block.thread_count() + block.thread();
    std::uint32_t* const counter = counters + (spread ? thread : 0);
    for (int i = 0; i < per_thread; ++i)
      atomic_add(block, counter, 1u, order::relaxed, scope::system);
  }
};

/// Small puts, each with a signal, back and forth between places 0 and 1.
struct PingPong {
  Lane lane;
  float* data;
  const float* from;
  std::size_t count;
  std::uint32_t* flag;
  std::uint32_t first;  ///< value of the flag
  int rounds;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    const int me = lane.peers().rank();
    const int peer = 1 - me;
    for (int round = 0; round < rounds; ++round) {
      const std::uint32_t value = first + static_cast<std::uint32_t>(round);
      if (me == 1 && !wait(block, lane, flag, value, Compare::equal, peer)) return;
      put_signal(block, lane.peers().at(data, peer), from, count, lane.peers().at(flag, peer),
                 value);
      if (me == 0 && !wait(block, lane, flag, value, Compare::equal, peer)) return;
    }
  }
};

}  // namespace iridium::bench

// Hopper's own instructions: barriers in a block's memory, tensor copies, warpgroups. Only code for
// sm_90a has them.
#pragma once

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

#include <cstdint>

#include "iridium/device/number.h"
#include "iridium/device/tensor_map.h"

namespace iridium::hopper {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Barriers

__device__ __forceinline__ void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// The barriers' first values can be seen by the cluster and by tensor copies.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives, and has the phase last until copies have brought so many bytes, too.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives at the same barrier of a block of the cluster. Releases at block scope only: what it
/// orders are reads of `wgmma`, which are over. At cluster scope it would be a memory barrier in
/// the main loop.
__device__ __forceinline__ void arrive_at(std::uint32_t barrier, int block) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}
/// Until the phase with this parity is over.
__device__ __forceinline__ void await_phase(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}
/// The threads of one of the warpgroups that multiply meet.
__device__ __forceinline__ void sync_group(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
/// The threads of both warpgroups that multiply meet.
__device__ __forceinline__ void sync_groups() {
  asm volatile("bar.sync 3, 256;" ::: "memory");
}
/// The cluster's threads meet. Orders no memory.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}
/// The cluster's threads meet, and see what others have written to its blocks' memory.
__device__ __forceinline__ void exchange_in_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}
__device__ __forceinline__ int rank_in_cluster() {
  int rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The address of the same place in another block of the cluster.
__device__ __forceinline__ std::uint32_t address_at(std::uint32_t address, int block) {
  std::uint32_t there = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
/// From the memory of any block of the cluster.
__device__ __forceinline__ float4 load_four(std::uint32_t from) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
/// To this block's memory.
__device__ __forceinline__ void store_pair(std::uint32_t to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ void store_vector(std::uint32_t to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

// Tensor copies

__device__ __forceinline__ void prefetch(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// Copies the box at (row, column) into this block's memory; its bytes count at the barrier.
__device__ __forceinline__ void copy_box(std::uint32_t to, const TensorMap* map, int row,
                                         int column, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
/// The same into both blocks of a cluster, at the same place, counting at both blocks' barriers.
__device__ __forceinline__ void copy_box_to_both(std::uint32_t to, const TensorMap* map, int row,
                                                 int column, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(static_cast<std::uint16_t>(3))
      : "memory");
}
/// Copies a box from this block's memory to (row, column).
__device__ __forceinline__ void store_box(const TensorMap* map, std::uint32_t from, int row,
                                          int column) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(column), "r"(row)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until all but this thread's last `open` stores have read the block's memory.
template <int open>
__device__ __forceinline__ void await_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(open) : "memory");
}
/// What this thread has written to the block's memory comes before the copies that follow.
__device__ __forceinline__ void order_before_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// What this thread has seen written to global memory comes before its copies that follow.
__device__ __forceinline__ void order_before_reading_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// Warpgroups

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
__device__ __forceinline__ void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int open>
__device__ __forceinline__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(open) : "memory");
}
/// Keeps the compiler from moving uses of the accumulators across this point.
template <int count>
__device__ __forceinline__ void pin(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
/// Keeps the compiler from computing a value again at each use.
__device__ __forceinline__ std::uint32_t opaque(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Results

template <HalfNumber T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t both = 0;
  if constexpr (std::same_as<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
/// Four matrices of 8 × 8 elements; each thread says where one row of 8 goes.
__device__ __forceinline__ void store_matrices(std::uint32_t to, std::uint32_t a, std::uint32_t b,
                                               std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace iridium::hopper

#endif

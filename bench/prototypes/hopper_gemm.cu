// Prototype of a bf16 matrix product for Hopper (sm_90a), with its own tests and timings.
//
//   D[M,N] = A[M,K] x B,   B stored as [N,K] (nk) or as [K,N] (kn),   fp32 accumulation
//
// One persistent kernel. A producer warpgroup keeps a ring of stages full by TMA (128-byte
// swizzle); two consumer warpgroups multiply with wgmma and store through shared memory with TMA.
// It works on "row" and "column" operands: normally A and B, but A and B exchanged when
// `swapped`, so that small M sits on the side of wgmma that may be as narrow as 8.
//
// A second kernel takes M up to 16 with B as [N,K]: no tensor maps, no exchange between blocks.
//
// Not covered: K not a multiple of 8, or N not a multiple of 8 with B as [K,N] (strides of tensor
// maps are multiples of 16 bytes); pointers not 16-byte aligned; K = 0; epilogues other than the
// conversion to bf16. N not a multiple of 8 with B as [N,K] works, with ordinary stores.

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using bf16 = __nv_bfloat16;

// ---------------------------------------------------------------------------------------------
// PTX

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Releases at block scope only: what it orders are wgmma's reads, complete before. A release at
// cluster scope would put a full memory barrier into the main loop.
__device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, int block) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}

__device__ __forceinline__ bool barrier_try(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
}

__device__ __forceinline__ void group_sync(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

// Orders no memory; the barriers' initialisation is published by a fence of its own.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;\n" ::: "memory");
}

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap* map, int x, int y,
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

// Lands at the same offset in both blocks of the cluster, and counts at both blocks' barriers.
__device__ __forceinline__ void tma_load_both(uint32_t to, const CUtensorMap* map, int x, int y,
                                              uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(static_cast<uint16_t>(3))
      : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap* map, uint32_t from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int outstanding>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(outstanding) : "memory");
}

__device__ __forceinline__ void proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int registers>
__device__ __forceinline__ void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ __forceinline__ void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <bool transposed>
__device__ __forceinline__ void store_matrices(uint32_t to, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  if constexpr (transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  }
}

__device__ __forceinline__ void store_two_transposed(uint32_t to, uint32_t a, uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(a),
               "r"(b)
               : "memory");
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(both);
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int outstanding>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(outstanding) : "memory");
}

// Keeps the compiler from moving uses of the accumulators across this point.
template <int count>
__device__ __forceinline__ void pin(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Keeps the compiler from computing a value again at each use.
__device__ __forceinline__ uint32_t opaque(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

__device__ __forceinline__ void gpu_fence() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

// wgmma's shared-memory descriptor: start, leading and stride offsets in units of 16 bytes;
// bits 62-63 = 1 is the 128-byte swizzle.
__host__ __device__ constexpr uint64_t descriptor(uint32_t start, uint32_t leading,
                                                  uint32_t stride) {
  return static_cast<uint64_t>((start & 0x3FFFF) >> 4) |
         (static_cast<uint64_t>((leading & 0x3FFFF) >> 4) << 16) |
         (static_cast<uint64_t>((stride & 0x3FFFF) >> 4) << 32) | (uint64_t{1} << 62);
}

// d += rows x columns, 64 x n x 16. The flags say that an operand is contiguous along its rows or
// columns instead of along K.
// clang-format off
template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[4], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3}, "
      "%4, %5, p, 1, 1, %7, %8;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[8], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7}, "
      "%8, %9, p, 1, 1, %11, %12;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[16], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "%16, %17, p, 1, 1, %19, %20;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[32], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, %35, %36;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[64], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, %67, %68;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
        "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
        "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[96], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
      "%96, %97, p, 1, 1, %99, %100;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
        "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
        "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]),
        "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),
        "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]),
        "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

template <int rows_contiguous, int columns_contiguous>
__device__ __forceinline__ void wgmma(float (&d)[128], uint64_t rows, uint64_t columns,
                                      int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, %131, %132;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
        "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
        "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
        "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
        "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
        "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
        "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]),
        "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),
        "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]),
        "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]),
        "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]),
        "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]),
        "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]),
        "+f"(d[126]), "+f"(d[127])
      : "l"(rows), "l"(columns), "r"(accumulate), "n"(rows_contiguous), "n"(columns_contiguous));
}

// clang-format on
// ---------------------------------------------------------------------------------------------
// Tiles

constexpr int k_block = 64;  // 128 bytes of bf16, one row of the swizzle
constexpr int row_bytes = 128;
constexpr int panel_bytes = 64 * row_bytes;  // 64 rows or columns of a k block
constexpr int shared_limit = 232448;

struct Tile {
  int rows, columns;              // of a block
  int row_groups, column_groups;  // how the two consumer warpgroups divide it
  int cluster_rows, cluster_columns;
  bool swapped;
};

template <Tile tile>
struct Geometry {
  static constexpr int groups = tile.row_groups * tile.column_groups;
  static constexpr int threads = 128 * (groups + 1);
  static constexpr int cluster = tile.cluster_rows * tile.cluster_columns;
  static constexpr int row_steps = tile.rows / tile.row_groups / 64;
  static constexpr int group_rows = 64 * row_steps;
  static constexpr int group_columns = tile.columns / tile.column_groups;
  static constexpr int registers = group_columns / 2;  // accumulators of one 64-row step
  static constexpr int stage_bytes = (tile.rows + tile.columns) * row_bytes;
  // One TMA store writes a panel of D: 128 bytes wide, up to 64 rows high.
  static constexpr int store_rows = tile.swapped ? std::min(group_columns, 64) : 64;
  static constexpr int store_bytes = store_rows * row_bytes;
  static constexpr int staging_bytes = groups * 2 * store_bytes;
  static constexpr int control_bytes = 512;
  static constexpr int stages =
      std::min(16, (shared_limit - 1024 - control_bytes - staging_bytes) / stage_bytes);
  static constexpr int shared_bytes = 1024 + control_bytes + staging_bytes + stages * stage_bytes;

  static_assert(groups == 2 && cluster <= 2 && stages >= 2);
  static_assert(tile.rows % (64 * tile.row_groups) == 0 && stage_bytes % 1024 == 0);
  static_assert(group_columns % 64 == 0 || (tile.swapped && group_columns < 64));
};

struct Arguments {
  CUtensorMap rows, columns, d;
  bf16* d_pointer;
  int m, n;
  bool direct;                        // D's pitch does not suit TMA
  int row_tiles, column_tiles, band;  // in clusters' tiles; tiles are visited in bands of rows
  int k_blocks;
  int streamed_tiles, streamed_blocks;
  float* partials;
  unsigned* counters;
  unsigned* timeouts;
  long long patience;  // cycles
};

// ---------------------------------------------------------------------------------------------
// Which tile, and which part of K, a cluster works on. The first `streamed_tiles` tiles are cut
// into equal runs of k blocks, one run for each of `streamed_blocks` clusters, so that all finish
// together; the others are done whole, in turn.

struct Work {
  int tile, begin, end;
};

struct Schedule {
  const Arguments& arguments;
  int cluster, clusters;
  unsigned next_k, end_k;
  int next_tile;

  __device__ Schedule(const Arguments& a, int cluster_, int clusters_)
      : arguments(a), cluster(cluster_), clusters(clusters_), next_k(0), end_k(0) {
    if (cluster < a.streamed_blocks) {
      next_k = first_k(cluster);
      end_k = first_k(cluster + 1);
    }
    next_tile = a.streamed_tiles + cluster;
  }
  __device__ unsigned total_k() const { return arguments.streamed_tiles * arguments.k_blocks; }
  __device__ unsigned first_k(unsigned block) const {
    return block * total_k() / arguments.streamed_blocks;
  }
  // The cluster whose run contains k block `k` of the streamed region.
  __device__ unsigned owner(unsigned k) const {
    return ((k + 1) * arguments.streamed_blocks - 1) / total_k();
  }
  __device__ bool next(Work& work) {
    const int k_blocks = arguments.k_blocks;
    if (next_k < end_k) {
      work.tile = next_k / k_blocks;
      work.begin = next_k - work.tile * k_blocks;
      work.end = min(static_cast<unsigned>(k_blocks), work.begin + (end_k - next_k));
      next_k += work.end - work.begin;
      return true;
    }
    if (next_tile < arguments.row_tiles * arguments.column_tiles) {
      work = {next_tile, 0, k_blocks};
      next_tile += clusters;
      return true;
    }
    return false;
  }
  // Bands of rows keep the tiles that run together close to a square, for the L2 cache's sake.
  __device__ void position(int tile, int& row, int& column) const {
    const int per_band = arguments.band * arguments.column_tiles;
    const int first = tile / per_band * arguments.band;
    const int height = min(arguments.band, arguments.row_tiles - first);
    const int rest = tile % per_band;
    row = first + rest % height;
    column = rest / height;
  }
};

template <int stages>
struct Control {
  uint64_t full[stages], empty[stages];
  long long deadline;
  unsigned last[2];
};

struct Watch {
  const volatile long long* deadline;
  unsigned* timeouts;
};

// Ends after the deadline too: the result is then wrong and counted in `timeouts`.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity, const Watch& watch,
                                             int role) {
  while (!barrier_try(barrier, parity)) {
    if (clock64() > *watch.deadline) {
      atomicAdd(watch.timeouts + role, 1u);
      return;
    }
  }
}

// Loads `extent` rows (or columns) of a k block. If both blocks of the cluster need the same data,
// each loads half of it for both.
template <int extent, bool k_contiguous, bool shared>
__device__ __forceinline__ void load_operand(uint32_t to, const CUtensorMap* map, int k, int start,
                                             uint32_t barrier, int rank) {
  if constexpr (k_contiguous) {
    if constexpr (shared) {
      tma_load_both(to + rank * (extent / 2) * row_bytes, map, k, start + rank * (extent / 2),
                    barrier);
    } else {
      tma_load(to, map, k, start, barrier);
    }
  } else {
#pragma unroll
    for (int panel = 0; panel < extent / 64; ++panel) {
      if constexpr (shared) {
        if (panel % 2 == rank) {
          tma_load_both(to + panel * panel_bytes, map, start + panel * 64, k, barrier);
        }
      } else {
        tma_load(to + panel * panel_bytes, map, start + panel * 64, k, barrier);
      }
    }
  }
}

// Adds up the partial tiles of a streamed tile, in the order of K, whatever the order of arrival.
// Returns whether this warpgroup came last and now holds the sum.
template <Tile tile>
__device__ __forceinline__ bool combine(
    float (&sums)[Geometry<tile>::row_steps][Geometry<tile>::registers], const Arguments& arguments,
    const Schedule& schedule, const Work& work, unsigned* last_slot, int rank, int group) {
  using G = Geometry<tile>;
  constexpr int vectors = G::registers / 4;
  const int thread = threadIdx.x % 128;
  const unsigned tile_begin = work.tile * arguments.k_blocks;
  const unsigned first = schedule.owner(tile_begin);
  const unsigned last = schedule.owner(tile_begin + arguments.k_blocks - 1);
  float4* partials = reinterpret_cast<float4*>(arguments.partials);
  // A cluster's run has at most two partial tiles: its first and its last.
  auto slot = [&](unsigned owner) {
    const unsigned number = 2 * owner + (schedule.first_k(owner) >= tile_begin ? 0 : 1);
    return partials +
           ((number * G::cluster + rank) * G::groups + group) *
               static_cast<size_t>(G::row_steps * vectors * 128) +
           thread;
  };
  float4* mine = slot(schedule.cluster);
#pragma unroll
  for (int step = 0; step < G::row_steps; ++step) {
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
      float* s = sums[step] + 4 * i;
      __stcg(mine + (step * vectors + i) * 128, make_float4(s[0], s[1], s[2], s[3]));
    }
  }
  gpu_fence();
  group_sync(group);
  if (thread == 0) {
    const unsigned others = last - first;
    unsigned* counter = arguments.counters + (work.tile * G::cluster + rank) * G::groups + group;
    const unsigned before = atomicInc(counter, others);
    gpu_fence();
    *last_slot = before == others;
  }
  group_sync(group);
  if (*reinterpret_cast<volatile unsigned*>(last_slot) == 0) return false;
  gpu_fence();
#pragma unroll
  for (int step = 0; step < G::row_steps; ++step) {
#pragma unroll
    for (int i = 0; i < G::registers; ++i) sums[step][i] = 0;
  }
  // Small tiles load several partial tiles at once: one after the other is a chain of latencies.
  constexpr int all = G::row_steps * vectors;
  constexpr int chunk = all < 8 ? all : 8;
  constexpr int batch = all > 8 ? 1 : 16 / chunk > 8 ? 8 : 16 / chunk;
  for (unsigned owner = first; owner <= last; owner += batch) {
#pragma unroll
    for (int from = 0; from < all; from += chunk) {
      float4 loaded[batch][chunk];
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const float4* part = slot(min(owner + b, last)) + from * 128;
#pragma unroll
        for (int i = 0; i < chunk; ++i) loaded[b][i] = __ldcg(part + i * 128);
      }
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        if (owner + b > last) break;
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
          float* s = sums[(from + i) / vectors] + (from + i) % vectors * 4;
          s[0] += loaded[b][i].x;
          s[1] += loaded[b][i].y;
          s[2] += loaded[b][i].z;
          s[3] += loaded[b][i].w;
        }
      }
    }
  }
  return true;
}

// Writes one panel of a warpgroup's sums to shared memory, in the 128-byte swizzle.
template <bool swapped, int registers>
__device__ __forceinline__ void fill_panel(uint32_t panel, const float (&sums)[registers],
                                           int first_column) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  if constexpr (!swapped) {
    const uint32_t row = panel + (warp * 16 + lane % 16) * row_bytes;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float* s = sums + (first_column / 8 + 2 * pair) * 4;
      store_matrices<false>(row + (((2 * pair + lane / 16) ^ (lane % 8)) * 16), pack(s[0], s[1]),
                            pack(s[2], s[3]), pack(s[4], s[5]), pack(s[6], s[7]));
    }
  } else {
    const uint32_t chunk = ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;
    constexpr int pairs = (registers < 32 ? registers : 32) / 8;
    if constexpr (registers == 4) {
      store_two_transposed(panel + (lane % 8) * row_bytes + chunk, pack(sums[0], sums[1]),
                           pack(sums[2], sums[3]));
    } else {
#pragma unroll
      for (int pair = 0; pair < pairs; ++pair) {
        const float* s = sums + (first_column / 16 + pair) * 8;
        const int row = (2 * pair + lane / 16) * 8 + lane % 8;
        store_matrices<true>(panel + row * row_bytes + chunk, pack(s[0], s[1]), pack(s[2], s[3]),
                             pack(s[4], s[5]), pack(s[6], s[7]));
      }
    }
  }
}

// For pitches of D that TMA cannot take.
__device__ __forceinline__ void copy_panel(const Arguments& arguments, const char* panel, int rows,
                                           int x, int y) {
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < rows * 64; i += 128) {
    const int row = i / 64, column = i % 64;
    if (y + row < arguments.m && x + column < arguments.n) {
      const int chunk = (column / 8) ^ (row % 8);
      arguments.d_pointer[static_cast<size_t>(y + row) * arguments.n + x + column] =
          *reinterpret_cast<const bf16*>(panel + row * row_bytes + chunk * 16 + column % 8 * 2);
    }
  }
}

template <Tile tile>
__device__ __forceinline__ void store_tile(
    const float (&sums)[Geometry<tile>::row_steps][Geometry<tile>::registers],
    const Arguments& arguments, char* staging, int& panel, int first_row, int first_column,
    int group) {
  using G = Geometry<tile>;
  constexpr int per_step = G::group_columns < 64 ? 1 : G::group_columns / 64;
#pragma unroll
  for (int step = 0; step < G::row_steps; ++step) {
#pragma unroll
    for (int part = 0; part < per_step; ++part) {
      const int row = first_row + step * 64;
      const int column = first_column + part * 64;
      const int x = tile.swapped ? row : column;
      const int y = tile.swapped ? column : row;
      if (x >= arguments.n || y >= arguments.m) continue;
      char* to = staging + panel * G::store_bytes;
      panel ^= 1;
      // The store before the last one has left the panel that is filled now.
      if (threadIdx.x % 128 == 0) tma_store_wait_read<1>();
      group_sync(group);
      fill_panel<tile.swapped>(shared_address(to), sums[step], part * 64);
      proxy_fence();
      group_sync(group);
      if (arguments.direct) {
        copy_panel(arguments, to, G::store_rows, x, y);
        group_sync(group);
      } else if (threadIdx.x % 128 == 0) {
        tma_store(&arguments.d, shared_address(to), x, y);
      }
    }
  }
}

template <Tile tile, bool nk>
__global__ void __launch_bounds__(Geometry<tile>::threads, 1)
    multiply(const __grid_constant__ Arguments arguments) {
  using G = Geometry<tile>;
  constexpr bool rows_along_k = tile.swapped ? nk : true;
  constexpr bool columns_along_k = tile.swapped ? true : nk;
  extern __shared__ char raw[];
  char* ring = raw + (1024 - shared_address(raw) % 1024) % 1024;
  char* staging = ring + G::stages * G::stage_bytes;
  auto& control = *reinterpret_cast<Control<G::stages>*>(staging + G::staging_bytes);
  static_assert(sizeof(Control<G::stages>) <= G::control_bytes);
  const uint32_t ring_address = opaque(shared_address(ring));
  const uint32_t full = opaque(shared_address(control.full));
  const uint32_t empty = opaque(shared_address(control.empty));
  const Watch watch{&control.deadline, arguments.timeouts};
  const int rank = G::cluster > 1 ? cluster_rank() : 0;

  if (threadIdx.x == 0) {
    for (int i = 0; i < G::stages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, G::cluster * G::groups * 4);
    }
    control.deadline = clock64() + arguments.patience;
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    prefetch_map(&arguments.rows);
    prefetch_map(&arguments.columns);
    prefetch_map(&arguments.d);
  }
  __syncthreads();
  if constexpr (G::cluster > 1) cluster_sync();

  Schedule schedule(arguments, blockIdx.x / G::cluster, gridDim.x / G::cluster);
  Work work;
  int stage = 0;
  uint32_t phase = 0;
  const int cluster_row = tile.cluster_rows > 1 ? rank : 0;
  const int cluster_column = tile.cluster_columns > 1 ? rank : 0;

  if (threadIdx.x < 128) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      while (schedule.next(work)) {
        int row, column;
        schedule.position(work.tile, row, column);
        row = (row * tile.cluster_rows + cluster_row) * tile.rows;
        column = (column * tile.cluster_columns + cluster_column) * tile.columns;
        for (int k = work.begin; k < work.end; ++k) {
          // A fresh barrier counts as having completed phase 1: the first round does not wait.
          barrier_wait(empty + 8 * stage, phase ^ 1, watch, 0);
          const uint32_t barrier = full + 8 * stage;
          const uint32_t to = ring_address + stage * G::stage_bytes;
          barrier_expect(barrier, G::stage_bytes);
          load_operand<tile.rows, rows_along_k, (tile.cluster_columns > 1)>(
              to, &arguments.rows, k * k_block, row, barrier, rank);
          load_operand<tile.columns, columns_along_k, (tile.cluster_rows > 1)>(
              to + tile.rows * row_bytes, &arguments.columns, k * k_block, column, barrier, rank);
          if (++stage == G::stages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
      if constexpr (G::cluster > 1) {
        // Shared memory must outlive what the other block sends: when every stage is empty, all of
        // its loads and arrivals are here, and ours are there.
        for (int i = 0; i < G::stages; ++i) {
          barrier_wait(empty + 8 * stage, phase ^ 1, watch, 0);
          if (++stage == G::stages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
  } else {
    registers_up<232>();
    const int group = threadIdx.x / 128 - 1;
    const int lane = threadIdx.x % 32;
    const int group_row = group / tile.column_groups * G::group_rows;
    const int group_column = group % tile.column_groups * G::group_columns;
    // Along K: rows of 128 bytes, 8 of them to a swizzle atom, and 16 elements of K are 32 bytes
    // within the atom. Across: panels of 64 columns, in which 8 k rows are an atom.
    constexpr uint32_t row_k_step = (rows_along_k ? 32 : 16 * row_bytes) >> 4;
    constexpr uint32_t column_k_step = (columns_along_k ? 32 : 16 * row_bytes) >> 4;
    constexpr uint64_t row_layout = descriptor(0, rows_along_k ? 16 : panel_bytes, 8 * row_bytes);
    constexpr uint64_t column_layout =
        descriptor(0, columns_along_k ? 16 : panel_bytes, 8 * row_bytes);
    // In a cluster, the upper bits of a shared address name the block.
    const uint32_t first_row = opaque(((ring_address + group_row * row_bytes) & 0x3FFFF) >> 4);
    const uint32_t first_column =
        opaque(((ring_address + (tile.rows + group_column) * row_bytes) & 0x3FFFF) >> 4);
    char* my_staging = staging + group * 2 * G::store_bytes;
    int panel = 0;

    // Every warp answers for its own reads.
    auto release = [&](int which) {
      if constexpr (G::cluster > 1) {
        if (lane < G::cluster) barrier_arrive_at(empty + 8 * which, lane);
      } else {
        if (lane == 0) barrier_arrive(empty + 8 * which);
      }
    };

    float sums[G::row_steps][G::registers];
#pragma unroll
    for (int step = 0; step < G::row_steps; ++step) {
#pragma unroll
      for (int i = 0; i < G::registers; ++i) sums[step][i] = 0;
    }

    while (schedule.next(work)) {
      int previous = stage;
#pragma unroll
      for (int step = 0; step < G::row_steps; ++step) pin(sums[step]);
      for (int k = work.begin; k < work.end; ++k) {
        barrier_wait(full + 8 * stage, phase, watch, 1);
        const uint32_t rows = first_row + stage * (G::stage_bytes >> 4);
        const uint32_t columns = first_column + stage * (G::stage_bytes >> 4);
        wgmma_fence();
#pragma unroll
        for (int part = 0; part < 4; ++part) {
#pragma unroll
          for (int step = 0; step < G::row_steps; ++step) {
            wgmma<!rows_along_k, !columns_along_k>(
                sums[step], row_layout | (rows + part * row_k_step + step * (panel_bytes >> 4)),
                column_layout | (columns + part * column_k_step), part > 0 || k > work.begin);
          }
        }
        wgmma_commit();
        // One group stays in flight; the one before it has read its stage.
        wgmma_wait<1>();
        if (k > work.begin) release(previous);
        previous = stage;
        if (++stage == G::stages) {
          stage = 0;
          phase ^= 1;
        }
      }
      wgmma_wait<0>();
#pragma unroll
      for (int step = 0; step < G::row_steps; ++step) pin(sums[step]);
      release(previous);

      if (work.end - work.begin < arguments.k_blocks &&
          !combine<tile>(sums, arguments, schedule, work, &control.last[group], rank, group)) {
        continue;
      }
      int row, column;
      schedule.position(work.tile, row, column);
      store_tile<tile>(
          sums, arguments, my_staging, panel,
          (row * tile.cluster_rows + cluster_row) * tile.rows + group_row,
          (column * tile.cluster_columns + cluster_column) * tile.columns + group_column, group);
    }
    // The stores must have read shared memory before the block gives it back.
    if (threadIdx.x % 128 == 0) tma_store_wait_read<0>();
  }
}

// ---------------------------------------------------------------------------------------------
// Few rows of A (up to 16) and B as [N,K]: a block takes up to 32 rows of B over all of K, its
// warps divide K, and one sum over the warps in fixed order ends it. Nothing is exchanged between
// blocks, and the order of K does not depend on M. B goes from memory straight to registers: the
// order of K within a k block is free, so a thread's 16 contiguous bytes serve as fragments.

struct NarrowArguments {
  const bf16 *a, *b;
  bf16* d;
  int m, n, k;
  int rows;  // of B, for each block
};

__device__ __forceinline__ uint4 load_once(const bf16* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ void mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                    uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <int columns>
__global__ void __launch_bounds__(512, 1) multiply_narrow(const NarrowArguments x) {
  constexpr int warps = 16, parts = columns / 8, block_rows = 32;
  __shared__ float partial[warps][columns][block_rows + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = lane / 4, t = lane % 4;
  const int first = blockIdx.x * x.rows;
  const int height = min(x.rows, x.n - first);

  // Rows outside repeat the last row: the same addresses within a load cost nothing, and what they
  // give is not stored.
  const bf16 *b_rows[4], *a_rows[parts];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    b_rows[i] = x.b + static_cast<size_t>(first + min(row + 8 * i, height - 1)) * x.k + 8 * t;
  }
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    a_rows[i] = x.a + static_cast<size_t>(min(row + 8 * i, x.m - 1)) * x.k + 8 * t;
  }
  struct Loads {
    uint4 b[4][2], a[parts][2];
  };
  auto load = [&](int k, Loads& loads) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = k + 32 * half;
      const bool inside = at + 8 * t < x.k;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        loads.b[i][half] = make_uint4(0, 0, 0, 0);
        if (inside) loads.b[i][half] = load_once(b_rows[i] + at);
      }
#pragma unroll
      for (int i = 0; i < parts; ++i) {
        loads.a[i][half] = make_uint4(0, 0, 0, 0);
        if (inside) loads.a[i][half] = __ldg(reinterpret_cast<const uint4*>(a_rows[i] + at));
      }
    }
  };

  float sums[2][parts][4] = {};
  Loads now, next;
  load(warp * 64, now);
#pragma unroll(columns == 8 ? 2 : 1)
  for (int k = warp * 64; k < x.k; k += warps * 64) {
    load(k + warps * 64, next);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        const uint4 upper = now.b[2 * tile][half], lower = now.b[2 * tile + 1][half];
#pragma unroll
        for (int i = 0; i < parts; ++i) {
          const uint4 a = now.a[i][half];
          mma(sums[tile][i], upper.x, lower.x, upper.y, lower.y, a.x, a.y);
          mma(sums[tile][i], upper.z, lower.z, upper.w, lower.w, a.z, a.w);
        }
      }
    }
    now = next;
  }
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
    for (int i = 0; i < parts; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        partial[warp][i * 8 + 2 * t + j % 2][tile * 16 + row + j / 2 * 8] = sums[tile][i][j];
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < columns * block_rows) {
    const int m = threadIdx.x / block_rows, at = threadIdx.x % block_rows;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += partial[w][m][at];
    if (m < x.m && at < height) {
      x.d[static_cast<size_t>(m) * x.n + first + at] = __float2bfloat16(sum);
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Reference, inputs, comparison

__device__ __forceinline__ float random_value(uint64_t index, uint32_t seed) {
  uint64_t x = index * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
  x ^= x >> 32;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 29;
  x *= 0x94D049BB133111EBull;
  x ^= x >> 32;
  return static_cast<float>(static_cast<uint32_t>(x) >> 8) * (2.0f / (1 << 24)) - 1.0f;
}

__global__ void fill_random(bf16* to, size_t count, uint32_t seed) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    to[i] = __float2bfloat16(random_value(i, seed));
  }
}

__global__ void reference(const bf16* a, const bf16* b, float* d, int m, int n, int k, bool nk) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    const size_t at =
        nk ? static_cast<size_t>(column) * k + i : static_cast<size_t>(i) * n + column;
    sum += __bfloat162float(a[static_cast<size_t>(row) * k + i]) * __bfloat162float(b[at]);
  }
  d[static_cast<size_t>(row) * n + column] = sum;
}

constexpr int map_rows = 32, map_columns = 32;  // 8x8 blocks shown in a report: 256 x 256

struct Report {
  unsigned long long wrong, first;
  unsigned largest_error;     // bits of a float
  unsigned guard;             // elements written behind the end
  unsigned blocks[map_rows];  // which 8x8 blocks have wrong elements, from the first wrong one on
};

template <class Reference>
__device__ bool is_wrong(const bf16* d, const Reference* r, size_t i, float relative,
                         float absolute, float& error) {
  const float got = __bfloat162float(d[i]), want = static_cast<float>(r[i]);
  error = fabsf(got - want);
  return !(error <= relative * fabsf(want) + absolute);
}

template <class Reference>
__global__ void compare(const bf16* d, const Reference* r, size_t count, size_t guard,
                        float relative, float absolute, Report* report) {
  unsigned long long wrong = 0, first = ~0ull;
  float largest = 0;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    float error;
    if (is_wrong(d, r, i, relative, absolute, error)) {
      ++wrong;
      first = min(first, static_cast<unsigned long long>(i));
      if (error != error) error = INFINITY;
    }
    largest = fmaxf(largest, error);
  }
  if (wrong) {
    atomicAdd(&report->wrong, wrong);
    atomicMin(&report->first, first);
  }
  if (largest > 0) atomicMax(&report->largest_error, __float_as_uint(largest));
  for (size_t i = count + blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
       i < count + guard; i += stride) {
    if (__bfloat16_as_ushort(d[i]) != 0xFFFF) atomicAdd(&report->guard, 1u);
  }
}

__global__ void map_wrong(const bf16* d, const float* r, int m, int n, int first_row,
                          int first_column, float relative, float absolute, Report* report) {
  const int row = first_row + blockIdx.x, column = first_column + threadIdx.x;
  if (row >= m || column >= n) return;
  float error;
  if (is_wrong(d, r, static_cast<size_t>(row) * n + column, relative, absolute, error)) {
    atomicOr(&report->blocks[blockIdx.x / 8], 1u << (threadIdx.x / 8));
  }
}

__global__ void count_different(const bf16* x, const bf16* y, size_t count, unsigned* different) {
  unsigned found = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    found += __bfloat16_as_ushort(x[i]) != __bfloat16_as_ushort(y[i]);
  }
  if (found) atomicAdd(different, found);
}

// ---------------------------------------------------------------------------------------------
// Host: errors and state that outlives a crash of the process that uses the GPU

constexpr int max_variants = 64;

struct Survivor {
  int current;  // the variant at work, or -1
  int attempts;
  bool self_test_done;
  int verdict[max_variants];  // 0 not checked, 1 right, 2 wrong, 3 crashed
};
Survivor* survivor;

void check(cudaError_t status, const char* what, int line) {
  if (status == cudaSuccess) return;
  std::printf("CUDA error in line %d (%s): %s\n", line, what, cudaGetErrorString(status));
  std::fflush(stdout);
  _exit(3);
}
#define CHECK(call) check((call), #call, __LINE__)

double seconds() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ---------------------------------------------------------------------------------------------
// Host: tensor maps, variants, plans

decltype(&cuTensorMapEncodeTiled) encode_map;

CUtensorMap make_map(const void* pointer, uint64_t width, uint64_t height, int box_width,
                     int box_height) {
  CUtensorMap map;
  const cuuint64_t sizes[2] = {width, height};
  const cuuint64_t strides[1] = {width * sizeof(bf16)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_width),
                             static_cast<cuuint32_t>(box_height)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result =
      encode_map(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(pointer), sizes,
                 strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::printf("cuTensorMapEncodeTiled: error %d for %llu x %llu, box %d x %d\n",
                static_cast<int>(result), static_cast<unsigned long long>(width),
                static_cast<unsigned long long>(height), box_width, box_height);
    std::fflush(stdout);
    _exit(3);
  }
  return map;
}

struct Variant {
  std::string name;
  Tile tile;
  bool nk;
  const void* kernel;
  int threads, shared_bytes, cluster, stages, registers;
  int row_box, column_box, store_rows;
  int clusters;    // resident at once
  int narrow = 0;  // columns of multiply_narrow
};

std::vector<Variant> variants;

template <Tile tile, bool nk>
void add_variant() {
  using G = Geometry<tile>;
  Variant v;
  char name[64];
  std::snprintf(name, sizeof name, "%s%dx%d%s", tile.swapped ? "swap " : "", tile.rows,
                tile.columns,
                tile.cluster_rows > 1      ? " 2x1"
                : tile.cluster_columns > 1 ? " 1x2"
                                           : "");
  v.name = name;
  v.tile = tile;
  v.nk = nk;
  v.kernel = reinterpret_cast<const void*>(&multiply<tile, nk>);
  v.threads = G::threads;
  v.shared_bytes = G::shared_bytes;
  v.cluster = G::cluster;
  v.stages = G::stages;
  const bool rows_along_k = tile.swapped ? nk : true, columns_along_k = tile.swapped ? true : nk;
  v.row_box = rows_along_k ? tile.rows / tile.cluster_columns : 0;
  v.column_box = columns_along_k ? tile.columns / tile.cluster_rows : 0;
  v.store_rows = G::store_rows;
  variants.push_back(v);
}

template <int columns>
void add_narrow() {
  Variant v = {};
  v.name = "narrow " + std::to_string(columns);
  v.tile = {32, columns, 1, 1, 1, 1, true};
  v.nk = true;
  v.kernel = reinterpret_cast<const void*>(&multiply_narrow<columns>);
  v.threads = 512;
  v.cluster = 1;
  v.narrow = columns;
  variants.push_back(v);
}

template <bool nk>
void add_variants() {
  //            rows cols  groups  cluster swapped
  add_variant<Tile{128, 256, 2, 1, 1, 1, false}, nk>();
  add_variant<Tile{128, 256, 2, 1, 2, 1, false}, nk>();
  add_variant<Tile{128, 256, 2, 1, 1, 2, false}, nk>();
  add_variant<Tile{128, 192, 2, 1, 1, 1, false}, nk>();
  add_variant<Tile{128, 192, 2, 1, 2, 1, false}, nk>();
  add_variant<Tile{256, 128, 2, 1, 1, 1, false}, nk>();
  add_variant<Tile{256, 128, 2, 1, 1, 2, false}, nk>();
  add_variant<Tile{128, 128, 2, 1, 1, 1, false}, nk>();
  add_variant<Tile{128, 128, 2, 1, 2, 1, false}, nk>();
  add_variant<Tile{64, 256, 1, 2, 1, 1, false}, nk>();
  add_variant<Tile{64, 128, 1, 2, 1, 1, false}, nk>();
  add_variant<Tile{128, 8, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 16, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 32, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 64, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 128, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 256, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{128, 256, 2, 1, 2, 1, true}, nk>();
  add_variant<Tile{256, 16, 2, 1, 1, 1, true}, nk>();
  add_variant<Tile{256, 64, 2, 1, 1, 1, true}, nk>();
}

struct Problem {
  int m, n, k;
};

float* partials;
unsigned* counters;
unsigned* timeouts;
constexpr size_t partials_bytes = size_t{160} * 2 * 256 * 256 * 4;
constexpr int counter_count = 1 << 16;

struct Plan {
  const Variant* variant;
  Arguments arguments;
  NarrowArguments narrow;
  int clusters;
};

int ceiling(int x, int y) {
  return (x + y - 1) / y;
}

// `streamed` cuts tiles along K so that all blocks finish together. Returns false where that would
// change nothing.
bool make_plan(const Variant& v, Problem p, const bf16* a, const bf16* b, bf16* d, bool streamed,
               int band, Plan& plan) {
  plan.variant = &v;
  if (v.narrow) {
    if (streamed || p.m > v.narrow) return false;
    const int passes = ceiling(p.n, v.clusters * 32);
    const int rows = ceiling(p.n, v.clusters * passes);
    plan.narrow = {a, b, d, p.m, p.n, p.k, rows};
    plan.clusters = ceiling(p.n, rows);
    return true;
  }
  Arguments& x = plan.arguments;
  const CUtensorMap map_a = make_map(a, p.k, p.m, 64, v.tile.swapped ? v.column_box : v.row_box);
  const int b_box = v.tile.swapped ? v.row_box : v.column_box;
  const CUtensorMap map_b = v.nk ? make_map(b, p.k, p.n, 64, b_box) : make_map(b, p.n, p.k, 64, 64);
  x.rows = v.tile.swapped ? map_b : map_a;
  x.columns = v.tile.swapped ? map_a : map_b;
  x.direct = p.n % 8 != 0;
  x.d = x.direct ? map_a : make_map(d, p.n, p.m, 64, v.store_rows);
  x.d_pointer = d;
  x.m = p.m;
  x.n = p.n;
  const int rows = v.tile.rows * v.tile.cluster_rows;
  const int columns = v.tile.columns * v.tile.cluster_columns;
  x.row_tiles = ceiling(v.tile.swapped ? p.n : p.m, rows);
  x.column_tiles = ceiling(v.tile.swapped ? p.m : p.n, columns);
  x.k_blocks = ceiling(p.k, k_block);
  if (band == 0) {
    const double square = std::sqrt(static_cast<double>(v.clusters) * columns / rows);
    band = std::max(1, static_cast<int>(square + 0.5));
    band = ceiling(x.row_tiles, ceiling(x.row_tiles, band));
  }
  x.band = std::min(band, x.row_tiles);
  const int tiles = x.row_tiles * x.column_tiles;
  plan.clusters = std::min(tiles, v.clusters);
  x.streamed_tiles = x.streamed_blocks = 0;
  if (streamed) {
    const int rest = tiles % v.clusters;
    if (rest == 0) return false;
    x.streamed_tiles = tiles < v.clusters ? tiles : rest + v.clusters;
    const long long total = static_cast<long long>(x.streamed_tiles) * x.k_blocks;
    // A run of fewer than four k blocks costs more than it saves.
    x.streamed_blocks = static_cast<int>(std::clamp(total / 4, 1ll, (long long)v.clusters));
    if (total * v.clusters > 0x7FFFFFFF) return false;
    if (tiles < v.clusters) {
      if (x.streamed_blocks <= tiles) return false;
      plan.clusters = x.streamed_blocks;
    }
    if (x.streamed_tiles * v.cluster * 2 > counter_count) return false;
  }
  x.partials = partials;
  x.counters = counters;
  x.timeouts = timeouts;
  x.patience = 400'000'000;
  return true;
}

void launch(const Plan& plan, cudaStream_t stream) {
  const Variant& v = *plan.variant;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(plan.clusters * v.cluster);
  config.blockDim = dim3(v.threads);
  config.dynamicSmemBytes = v.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(v.cluster), 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* arguments[] = {v.narrow ? static_cast<void*>(const_cast<NarrowArguments*>(&plan.narrow))
                                : const_cast<Arguments*>(&plan.arguments)};
  CHECK(cudaLaunchKernelExC(&config, v.kernel, arguments));
}

void prepare(Variant& v) {
  CHECK(
      cudaFuncSetAttribute(v.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, v.shared_bytes));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, v.kernel));
  v.registers = attributes.numRegs;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(132 * v.cluster);
  config.blockDim = dim3(v.threads);
  config.dynamicSmemBytes = v.shared_bytes;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(v.cluster), 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (v.cluster > 1) {
    CHECK(cudaOccupancyMaxActiveClusters(&v.clusters, v.kernel, &config));
  } else {
    CHECK(cudaDeviceGetAttribute(&v.clusters, cudaDevAttrMultiProcessorCount, 0));
  }
}

// Returns how many waits ran out, and forgets them.
unsigned take_timeouts(unsigned (&waits)[2]) {
  CHECK(cudaMemcpy(waits, timeouts, sizeof waits, cudaMemcpyDeviceToHost));
  CHECK(cudaMemset(timeouts, 0, sizeof waits));
  return waits[0] + waits[1];
}

// ---------------------------------------------------------------------------------------------
// Self-test of what the kernel assumes about wgmma's descriptors and TMA's swizzle

template <int n, int rows_contiguous, int columns_contiguous>
__global__ void __launch_bounds__(128)
    probe(const uint4* image, uint32_t row_leading, uint32_t row_stride, uint32_t column_leading,
          uint32_t column_stride, uint32_t row_offset, uint32_t column_offset, float* out) {
  extern __shared__ char raw[];
  char* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  // 8 KiB of rows, then the columns.
  for (int i = threadIdx.x; i < (8192 + 256 * 128) / 16; i += 128) {
    reinterpret_cast<uint4*>(shared)[i] = image[i];
  }
  proxy_fence();
  __syncthreads();
  float sums[n / 2];
  for (int i = 0; i < n / 2; ++i) sums[i] = 0;
  pin(sums);
  wgmma_fence();
  wgmma<rows_contiguous, columns_contiguous>(
      sums, descriptor(shared_address(shared) + row_offset, row_leading, row_stride),
      descriptor(shared_address(shared) + 8192 + column_offset, column_leading, column_stride), 0);
  wgmma_commit();
  wgmma_wait<0>();
  pin(sums);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < n / 2; ++i) {
    const int row = warp * 16 + lane / 4 + (i / 2 % 2) * 8;
    const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    out[row * n + column] = sums[i];
  }
}

__global__ void probe_load(const __grid_constant__ CUtensorMap map, int x, int y, uint4* out,
                           unsigned* late) {
  extern __shared__ char raw[];
  char* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  __shared__ uint64_t barrier;
  __shared__ long long deadline;
  if (threadIdx.x == 0) {
    barrier_init(shared_address(&barrier), 1);
    deadline = clock64() + 1'000'000'000;
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    barrier_expect(shared_address(&barrier), panel_bytes);
    tma_load(shared_address(shared), &map, x, y, shared_address(&barrier));
  }
  barrier_wait(shared_address(&barrier), 0, Watch{&deadline, late}, 0);
  for (int i = threadIdx.x; i < panel_bytes / 16; i += blockDim.x) {
    out[i] = reinterpret_cast<uint4*>(shared)[i];
  }
}

int small_value(int row, int k, int seed) {
  return static_cast<int>((row * 37u + k * 101u + (row * k) % 29u + seed * 17u) % 15u) - 7;
}

void put(std::vector<char>& image, size_t at, int value) {
  const bf16 x = __float2bfloat16(static_cast<float>(value));
  std::memcpy(image.data() + at, &x, 2);
}

// Byte of element (row, k) in a stage of the ring, as the kernel assumes it.
size_t place(int row, int k, bool along_k) {
  if (along_k) return row * 128 + ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2;
  return row / 64 * 8192 + k * 128 + ((row % 64 / 8) ^ (k % 8)) * 16 + row % 8 * 2;
}

template <int n, bool rows_along_k, bool columns_along_k>
void probe_case() {
  std::vector<char> image(8192 + 256 * 128, 0);
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < 64; ++k) put(image, place(row, k, rows_along_k), small_value(row, k, 1));
  }
  for (int column = 0; column < n; ++column) {
    for (int k = 0; k < 64; ++k) {
      put(image, 8192 + place(column, k, columns_along_k), small_value(column, k, 2));
    }
  }
  char* device_image;
  float* out;
  CHECK(cudaMalloc(&device_image, image.size()));
  CHECK(cudaMalloc(&out, 64 * n * sizeof(float)));
  CHECK(cudaMemcpy(device_image, image.data(), image.size(), cudaMemcpyHostToDevice));
  auto kernel = probe<n, !rows_along_k, !columns_along_k>;
  const int bytes = shared_limit;  // wrong offsets then stay within the block's shared memory
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  std::printf("  64x%dx16, rows %s, columns %s:", n, rows_along_k ? "along K" : "across",
              columns_along_k ? "along K" : "across");
  auto right = [&](uint32_t rl, uint32_t rs, uint32_t cl, uint32_t cs) {
    for (int part = 0; part < 4; ++part) {
      CHECK(cudaMemset(out, 0xFF, 64 * n * sizeof(float)));
      kernel<<<1, 128, bytes>>>(reinterpret_cast<uint4*>(device_image), rl, rs, cl, cs,
                                part * (rows_along_k ? 32 : 2048),
                                part * (columns_along_k ? 32 : 2048), out);
      CHECK(cudaGetLastError());
      std::vector<float> got(64 * n);
      CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
      for (int row = 0; row < 64; ++row) {
        for (int column = 0; column < n; ++column) {
          int sum = 0;
          for (int k = part * 16; k < part * 16 + 16; ++k) {
            sum += small_value(row, k, 1) * small_value(column, k, 2);
          }
          if (!(got[row * n + column] == static_cast<float>(sum))) return false;
        }
      }
    }
    return true;
  };
  const uint32_t row_leading = rows_along_k ? 16 : 8192,
                 column_leading = columns_along_k ? 16 : 8192;
  const bool expected = right(row_leading, 1024, column_leading, 1024);
  std::printf(" %s as the kernel has it", expected ? "right" : "WRONG");
  // What else gives the right sums, with the other operand as the kernel has it.
  const uint32_t choices[] = {0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  for (int operand = 0; operand < 2; ++operand) {
    if (expected && (operand == 0 ? rows_along_k : columns_along_k)) continue;
    std::printf("; right with %s (leading, stride):", operand == 0 ? "rows'" : "columns'");
    for (uint32_t leading : choices) {
      for (uint32_t stride : choices) {
        const bool along_k = operand == 0 ? rows_along_k : columns_along_k;
        const uint32_t groups = (operand == 0 ? 64 : n) / (along_k ? 8 : 64);
        if (std::max(leading, stride) * std::max(groups, 2u) > 180000) continue;
        if (operand == 0 ? right(leading, stride, column_leading, 1024)
                         : right(row_leading, 1024, leading, stride)) {
          std::printf(" (%u,%u)", leading, stride);
        }
      }
    }
  }
  std::printf("\n");
  std::fflush(stdout);
  CHECK(cudaFree(device_image));
  CHECK(cudaFree(out));
}

void probe_swizzle() {
  const int width = 192, height = 100, x = 64, y = 40;  // the last rows of the box are outside
  std::vector<uint16_t> source(width * height), got(64 * 64);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint16_t>(i + 1);
  uint16_t *device_source, *out;
  CHECK(cudaMalloc(&device_source, source.size() * 2));
  CHECK(cudaMalloc(&out, panel_bytes));
  CHECK(cudaMemcpy(device_source, source.data(), source.size() * 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(out, 0xFF, panel_bytes));
  const CUtensorMap map = make_map(device_source, width, height, 64, 64);
  probe_load<<<1, 128, panel_bytes + 1024>>>(map, x, y, reinterpret_cast<uint4*>(out), timeouts);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got.data(), out, panel_bytes, cudaMemcpyDeviceToHost));
  unsigned waits[2];
  const unsigned late = take_timeouts(waits);
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      const uint16_t want = y + row < height ? source[(y + row) * width + x + column] : uint16_t{0};
      const uint16_t have = got[place(row, column, true) / 2];
      if (have != want && wrong++ < 4) {
        std::printf("  TMA: (%d,%d) is %u, not %u\n", row, column, have, want);
      }
    }
  }
  std::printf("  TMA load with 128-byte swizzle and rows outside: %s%s\n",
              wrong ? "WRONG" : "right", late ? ", wait ran out" : "");
  CHECK(cudaFree(device_source));
  CHECK(cudaFree(out));
}

void self_test() {
  std::printf("self-test\n");
  probe_swizzle();
  probe_case<8, true, true>();
  probe_case<64, true, true>();
  probe_case<256, true, true>();
  probe_case<64, true, false>();
  probe_case<128, true, false>();
  probe_case<192, true, false>();
  probe_case<256, true, false>();
  probe_case<16, false, true>();
  probe_case<256, false, true>();
}

// ---------------------------------------------------------------------------------------------
// The tensor cores alone, on random inputs: what power and clock leave of the peak

__global__ void __launch_bounds__(384, 1)
    ceiling_kernel(const uint4* random, int rounds, float* sink) {
  extern __shared__ char raw[];
  char* shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  for (int i = threadIdx.x; i < 4 * 49152 / 16; i += 384) {
    reinterpret_cast<uint4*>(shared)[i] = random[i];
  }
  proxy_fence();
  __syncthreads();
  if (threadIdx.x < 128) {
    registers_down<40>();
  } else {
    registers_up<232>();
    const int group = threadIdx.x / 128 - 1;
    float sums[128];
    for (int i = 0; i < 128; ++i) sums[i] = 0;
    pin(sums);
    const uint32_t base = opaque((shared_address(shared) & 0x3FFFF) >> 4);
    constexpr uint64_t layout = descriptor(0, 16, 1024);
    for (int round = 0; round < rounds; ++round) {
      const uint32_t stage = base + round % 4 * (49152 >> 4);
      wgmma_fence();
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        wgmma<0, 0>(sums, layout | (stage + group * 512 + part * 2),
                    layout | (stage + 1024 + part * 2), 1);
      }
      wgmma_commit();
      wgmma_wait<1>();
    }
    wgmma_wait<0>();
    pin(sums);
    float all = 0;
    for (int i = 0; i < 128; ++i) all += sums[i];
    if (all == 0.12345f) *sink = all;
  }
}

// ---------------------------------------------------------------------------------------------
// Checks

struct Buffers {
  bf16 *a, *b, *d, *e;
  float* r;
  Report* report;
  unsigned* different;
};
Buffers buffers;

constexpr size_t guard = 4096;

Report compare_with(const bf16* d, const float* r, size_t count, float relative, float absolute) {
  Report report = {};
  report.first = ~0ull;
  CHECK(cudaMemcpy(buffers.report, &report, sizeof report, cudaMemcpyHostToDevice));
  compare<<<264, 512>>>(d, r, count, guard, relative, absolute, buffers.report);
  CHECK(cudaMemcpy(&report, buffers.report, sizeof report, cudaMemcpyDeviceToHost));
  return report;
}

void explain(const Report& first_report, Problem p, float relative, float absolute) {
  Report report = first_report;
  const int row = static_cast<int>(report.first / p.n),
            column = static_cast<int>(report.first % p.n);
  const int from_row = row / 64 * 64, from_column = column / 64 * 64;
  map_wrong<<<256, 256>>>(buffers.d, buffers.r, p.m, p.n, from_row, from_column, relative, absolute,
                          buffers.report);
  CHECK(cudaMemcpy(&report, buffers.report, sizeof report, cudaMemcpyDeviceToHost));
  std::vector<bf16> d(static_cast<size_t>(p.m) * p.n);
  std::vector<float> r(d.size());
  CHECK(cudaMemcpy(d.data(), buffers.d, d.size() * 2, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(r.data(), buffers.r, r.size() * 4, cudaMemcpyDeviceToHost));
  int shown = 0;
  for (size_t i = report.first; i < d.size() && shown < 6; ++i) {
    const float got = __bfloat162float(d[i]);
    if (!(std::fabs(got - r[i]) <= relative * std::fabs(r[i]) + absolute)) {
      std::printf("      D[%zu,%zu] = %g, not %g\n", i / p.n, i % p.n, got, r[i]);
      ++shown;
    }
  }
  std::printf("      wrong 8x8 blocks, rows from %d, columns from %d:\n", from_row, from_column);
  int lines = 0;
  for (int i = 0; i < map_rows && from_row + i * 8 < p.m; ++i) {
    if (report.blocks[i] == 0 && lines > 0) continue;
    if (++lines > 18) break;
    std::printf("      %4d ", from_row + i * 8);
    for (int j = 0; j < map_columns && from_column + j * 8 < p.n; ++j) {
      std::printf("%c", report.blocks[i] >> j & 1 ? '#' : '.');
    }
    std::printf("\n");
  }
}

// Finds which elements of A and B reach which element of D: with one operand the unit matrix, D is
// the other operand, whose elements tell their indices.
void trace(const Variant& v) {
  const Problem p = {64, 256, 64};
  std::vector<bf16> a(64 * 64), b(256 * 64), d(64 * 256);
  std::vector<int> seen[4];
  for (int run = 0; run < 4; ++run) {
    const bool unit_a = run < 2, along_k = run % 2 == 0;
    for (int m = 0; m < 64; ++m) {
      for (int k = 0; k < 64; ++k) {
        a[m * 64 + k] = __float2bfloat16(unit_a ? float(m == k) : float(along_k ? k : m));
      }
    }
    for (int n = 0; n < 256; ++n) {
      for (int k = 0; k < 64; ++k) {
        b[v.nk ? n * 64 + k : k * 256 + n] =
            __float2bfloat16(unit_a ? float(along_k ? k : n) : float(n % 64 == k));
      }
    }
    CHECK(cudaMemcpy(buffers.a, a.data(), a.size() * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(buffers.b, b.data(), b.size() * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(buffers.d, 0xFF, d.size() * 2));
    Plan plan;
    if (!make_plan(v, p, buffers.a, buffers.b, buffers.d, false, 0, plan)) return;
    launch(plan, 0);
    CHECK(cudaMemcpy(d.data(), buffers.d, d.size() * 2, cudaMemcpyDeviceToHost));
    for (bf16 x : d) {
      const float value = __bfloat162float(x);
      seen[run].push_back(value == value ? static_cast<int>(value) : -1);
    }
  }
  int shown = 0;
  for (int i = 0; i < 64 * 256 && shown < 8; ++i) {
    const int m = i / 256, n = i % 256;
    const bool right =
        seen[0][i] == m && seen[1][i] == n && seen[2][i] == n % 64 && seen[3][i] == m;
    if (right) continue;
    ++shown;
    std::printf(
        "      trace: D[%d,%d] has B(n=%d,k=%d) in place of B(n=%d,k=%d); A(m=%d,k=%d) in place of "
        "A(m=%d,k=%d)\n",
        m, n, seen[1][i], seen[0][i], n, m, seen[3][i], seen[2][i], m, n % 64);
  }
  if (shown == 0) std::printf("      trace: 64x256x64 is right\n");
  unsigned waits[2];
  take_timeouts(waits);
}

// Whether a variant is right for one problem; prints only what is wrong.
bool check_one(const Variant& v, Problem p, bool streamed) {
  const size_t count = static_cast<size_t>(p.m) * p.n;
  Plan plan = {};
  if (!make_plan(v, p, buffers.a, buffers.b, buffers.d, streamed, 0, plan)) return true;
  CHECK(cudaMemset(buffers.d, 0xFF, (count + guard) * 2));
  CHECK(cudaMemset(buffers.e, 0xFF, (count + guard) * 2));
  CHECK(cudaMemset(partials, 0xFF, partials_bytes));
  CHECK(cudaMemset(counters, 0, counter_count * 4));
  launch(plan, 0);
  CHECK(cudaDeviceSynchronize());
  const float relative = 1.0f / 256, absolute = 1e-3f + 2e-6f * p.k;
  const Report report = compare_with(buffers.d, buffers.r, count, relative, absolute);
  unsigned waits[2];
  const unsigned late = take_timeouts(waits);
  std::vector<unsigned> left(counter_count);
  CHECK(cudaMemcpy(left.data(), counters, counter_count * 4, cudaMemcpyDeviceToHost));
  const long used = std::count_if(left.begin(), left.end(), [](unsigned x) { return x != 0; });

  plan.arguments.d_pointer = plan.narrow.d = buffers.e;
  if (!v.narrow && !plan.arguments.direct)
    plan.arguments.d = make_map(buffers.e, p.n, p.m, 64, v.store_rows);
  launch(plan, 0);
  CHECK(cudaMemset(buffers.different, 0, 4));
  count_different<<<264, 512>>>(buffers.d, buffers.e, count, buffers.different);
  unsigned different;
  CHECK(cudaMemcpy(&different, buffers.different, 4, cudaMemcpyDeviceToHost));
  take_timeouts(waits);

  if (report.wrong == 0 && late == 0 && report.guard == 0 && different == 0 && used == 0) {
    return true;
  }
  float largest;
  std::memcpy(&largest, &report.largest_error, 4);
  std::printf(
      "    WRONG %s %s%s %dx%dx%d: %llu of %zu elements, largest error %g; waits that ran out: %u; "
      "written behind the end: %u; differ in a second run: %u; counters not zero: %ld\n",
      v.name.c_str(), v.nk ? "nk" : "kn", streamed ? " streamed" : "", p.m, p.n, p.k, report.wrong,
      count, largest, late, report.guard, different, used);
  if (report.wrong) explain(report, p, relative, absolute);
  std::fflush(stdout);
  return false;
}

void fill(bf16* to, size_t count, uint32_t seed) {
  fill_random<<<1056, 256>>>(to, count, seed);
  CHECK(cudaGetLastError());
}

const Problem check_problems[] = {
    {64, 256, 64},    {128, 256, 256},   {1, 8, 8},          {16, 264, 136},    {7, 9000, 2120},
    {16, 3584, 8192}, {9, 3586, 1032},   {77, 1000, 200},    {300, 520, 1032},  {511, 250, 72},
    {64, 3584, 2048}, {256, 3584, 1024}, {1000, 1096, 2056}, {2304, 3584, 264}, {2500, 3000, 1032}};

void check_all() {
  std::printf("checks against fp32 sums: %zu problems each, twice, whole tiles and streamed\n",
              std::size(check_problems));
  for (int layout = 0; layout < 2; ++layout) {
    const bool nk = layout == 0;
    for (Problem p : check_problems) {
      if (!nk && p.n % 8 != 0) continue;
      fill(buffers.a, static_cast<size_t>(p.m) * p.k, 1);
      fill(buffers.b, static_cast<size_t>(p.n) * p.k, 2);
      const dim3 grid(ceiling(p.n, 32), ceiling(p.m, 8));
      reference<<<grid, dim3(32, 8)>>>(buffers.a, buffers.b, buffers.r, p.m, p.n, p.k, nk);
      CHECK(cudaDeviceSynchronize());
      for (size_t i = 0; i < variants.size(); ++i) {
        int& verdict = survivor->verdict[i];
        if (variants[i].nk != nk || verdict > 1) continue;
        survivor->current = static_cast<int>(i);
        bool right = check_one(variants[i], p, false);
        if (right) right = check_one(variants[i], p, true);
        if (!right) {
          trace(variants[i]);
          verdict = 2;
          // The trace has used the inputs' memory.
          fill(buffers.a, static_cast<size_t>(p.m) * p.k, 1);
          fill(buffers.b, static_cast<size_t>(p.n) * p.k, 2);
        }
        survivor->current = -1;
      }
    }
  }
  for (size_t i = 0; i < variants.size(); ++i) {
    const Variant& v = variants[i];
    int& verdict = survivor->verdict[i];
    if (verdict == 0) verdict = 1;
    std::printf("  %-14s %s: %s (%d stages, %d KiB shared, %d registers at entry, %d clusters)\n",
                v.name.c_str(), v.nk ? "nk" : "kn",
                verdict == 1   ? "right"
                : verdict == 2 ? "WRONG"
                               : "CRASHED",
                v.stages, v.shared_bytes / 1024, v.registers, v.clusters);
  }
  std::fflush(stdout);
}

// ---------------------------------------------------------------------------------------------
// Timings, in turns with cuBLAS

using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);

struct Blas {
  cublasHandle_t handle = nullptr;
  GemmEx gemm = nullptr;
};
Blas blas;

bool open_blas(cudaStream_t stream) {
  const char* names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                         "/usr/local/cuda/lib64/libcublas.so.13",
                         "/usr/local/cuda/lib64/libcublas.so"};
  void* library = nullptr;
  for (const char* name : names) {
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  }
  if (!library) {
    std::printf("no cuBLAS: %s\n", dlerror());
    return false;
  }
  const auto create = (decltype(&cublasCreate_v2))dlsym(library, "cublasCreate_v2");
  const auto set_stream = (decltype(&cublasSetStream_v2))dlsym(library, "cublasSetStream_v2");
  const auto set_workspace =
      (decltype(&cublasSetWorkspace_v2))dlsym(library, "cublasSetWorkspace_v2");
  const auto version = (decltype(&cublasGetVersion_v2))dlsym(library, "cublasGetVersion_v2");
  blas.gemm = (GemmEx)dlsym(library, "cublasGemmEx");
  if (!create || !set_stream || !set_workspace || !version || !blas.gemm) return false;
  if (create(&blas.handle) != CUBLAS_STATUS_SUCCESS) return false;
  int number = 0;
  version(blas.handle, &number);
  std::printf("cuBLAS %d\n", number);
  void* workspace;
  const size_t bytes = size_t{64} << 20;
  CHECK(cudaMalloc(&workspace, bytes));
  return set_stream(blas.handle, stream) == CUBLAS_STATUS_SUCCESS &&
         set_workspace(blas.handle, workspace, bytes) == CUBLAS_STATUS_SUCCESS;
}

void launch_blas(Problem p, bool nk, const bf16* a, const bf16* b, bf16* d) {
  const float one = 1, zero = 0;
  const cublasStatus_t status =
      blas.gemm(blas.handle, nk ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, p.n, p.m, p.k, &one, b,
                CUDA_R_16BF, nk ? p.k : p.n, a, CUDA_R_16BF, p.k, &zero, d, CUDA_R_16BF, p.n,
                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS) std::printf("cuBLAS: error %d\n", static_cast<int>(status));
}

struct Run {
  std::string name;
  int variant = -1;  // or cuBLAS
  bool streamed = false;
  int band = 0;
  cudaGraphExec_t graph = nullptr;
  std::vector<float> times;
  float median = 0;
  bool wrong = false;
};

float median(std::vector<float> x) {
  std::sort(x.begin(), x.end());
  return x.empty() ? 0 : x[x.size() / 2];
}

constexpr size_t copies_bytes = size_t{1} << 28;

void time_problem(Problem p, bool nk, cudaStream_t stream, std::vector<std::string>& summary) {
  const size_t b_count = static_cast<size_t>(p.n) * p.k, count = static_cast<size_t>(p.m) * p.n;
  // Several copies of B, taken in turns, so that small problems read it from memory.
  const int copies = p.m >= 1024 ? 1
                                 : static_cast<int>(std::clamp<size_t>(copies_bytes / (b_count * 2),
                                                                       size_t{1}, size_t{5}));
  fill(buffers.a, static_cast<size_t>(p.m) * p.k, 3);
  fill(buffers.b, b_count, 4);
  for (int i = 1; i < copies; ++i) {
    CHECK(cudaMemcpy(buffers.b + i * b_count, buffers.b, b_count * 2, cudaMemcpyDeviceToDevice));
  }
  const double flops = 2.0 * p.m * p.n * p.k;
  const double guess = std::max(flops / 700e12, b_count * 2 / 4e12) + 2e-6;
  const int launches = std::max({2, copies, std::min(20, static_cast<int>(400e-6 / guess))});

  std::vector<Run> runs;
  runs.push_back({.name = "cuBLAS"});
  for (size_t i = 0; i < variants.size(); ++i) {
    const Variant& v = variants[i];
    if (v.nk != nk || survivor->verdict[i] != 1) continue;
    if (v.tile.swapped && (v.tile.columns < p.m ? v.tile.columns < 128 || p.m > 512
                                                : v.tile.columns > std::max(16, 4 * p.m))) {
      continue;
    }
    if (!v.tile.swapped && (p.m < 32 || (v.tile.rows > 2 * p.m))) continue;
    if (!v.tile.swapped && v.tile.rows == 64 && p.m > 1024) continue;
    for (bool streamed : {false, true}) {
      runs.push_back({.name = v.name + (streamed ? " streamed" : ""),
                      .variant = static_cast<int>(i),
                      .streamed = streamed});
    }
  }

  CHECK(cudaDeviceSynchronize());  // `stream` does not wait for the default stream
  // The result of cuBLAS is the reference.
  launch_blas(p, nk, buffers.a, buffers.b, buffers.e);
  CHECK(cudaStreamSynchronize(stream));

  auto capture = [&](Run& run) {
    std::vector<Plan> plans(copies);
    if (run.variant >= 0) {
      for (int i = 0; i < copies; ++i) {
        if (!make_plan(variants[run.variant], p, buffers.a, buffers.b + i * b_count, buffers.d,
                       run.streamed, run.band, plans[i])) {
          return false;
        }
      }
    }
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; ++i) {
      if (run.variant >= 0) {
        launch(plans[i % copies], stream);
      } else {
        launch_blas(p, nk, buffers.a, buffers.b + (i % copies) * b_count, buffers.d);
      }
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&run.graph, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return true;
  };
  auto verify = [&](Run& run) {
    CHECK(cudaMemsetAsync(buffers.d, 0xFF, count * 2, stream));
    CHECK(cudaGraphLaunch(run.graph, stream));
    CHECK(cudaStreamSynchronize(stream));
    Report report = {};
    report.first = ~0ull;
    CHECK(cudaMemcpy(buffers.report, &report, sizeof report, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());
    compare<<<264, 512, 0, stream>>>(buffers.d, buffers.e, count, 0, 1.0f / 64, 0.05f,
                                     buffers.report);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&report, buffers.report, sizeof report, cudaMemcpyDeviceToHost));
    unsigned waits[2];
    run.wrong = run.wrong || take_timeouts(waits) != 0 || report.wrong != 0;
  };
  // A round is enqueued as a whole: the GPU does not wait for the host between an event and its
  // graph.
  std::vector<cudaEvent_t> events;
  auto round = [&](std::vector<Run*>& which) {
    while (events.size() < 2 * which.size()) {
      cudaEvent_t event;
      CHECK(cudaEventCreate(&event));
      events.push_back(event);
    }
    // cuBLAS goes first once more, untimed, so that the first timed graph starts on a busy GPU.
    CHECK(cudaGraphLaunch(which[0]->graph, stream));
    for (size_t i = 0; i < which.size(); ++i) {
      survivor->current = which[i]->variant;
      CHECK(cudaEventRecord(events[2 * i], stream));
      CHECK(cudaGraphLaunch(which[i]->graph, stream));
      CHECK(cudaEventRecord(events[2 * i + 1], stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    survivor->current = -1;
    for (size_t i = 0; i < which.size(); ++i) {
      float milliseconds;
      CHECK(cudaEventElapsedTime(&milliseconds, events[2 * i], events[2 * i + 1]));
      which[i]->times.push_back(milliseconds * 1000 / launches);
    }
  };

  std::vector<Run*> live;
  for (Run& run : runs) {
    survivor->current = run.variant;
    if (capture(run)) {
      verify(run);
      live.push_back(&run);
    }
    survivor->current = -1;
  }
  for (int i = 0; i < 5; ++i) round(live);
  for (Run* run : live) run->median = median(run->times);
  const float first_blas = live[0]->median;
  std::printf("\n%d x %d x %d, B as %s: cuBLAS %.2f us, %.0f TFLOP/s (%d launches a graph)\n", p.m,
              p.n, p.k, nk ? "[N,K]" : "[K,N]", first_blas, flops / first_blas * 1e-6, launches);
  std::vector<Run*> ranked(live.begin() + 1, live.end());
  std::sort(ranked.begin(), ranked.end(), [](Run* x, Run* y) { return x->median < y->median; });
  for (Run* run : ranked) {
    std::printf("  %-24s %9.2f us  cuBLAS/ours %.3f%s\n", run->name.c_str(), run->median,
                first_blas / run->median, run->wrong ? "  WRONG RESULT" : "");
  }

  // The best ones again, longer, and the best one with other bands of tiles.
  std::vector<Run*> finals = {live[0]};
  std::vector<Run> others;
  for (Run* run : ranked) {
    if (!run->wrong && finals.size() < 5) finals.push_back(run);
  }
  if (finals.size() > 1 && p.m > 256) {
    for (int band : {4, 8, 16, 32}) {
      Run run;
      run.name = finals[1]->name + " band " + std::to_string(band);
      run.variant = finals[1]->variant;
      run.streamed = finals[1]->streamed;
      run.band = band;
      others.push_back(run);
    }
  }
  for (Run& run : others) {
    if (capture(run)) finals.push_back(&run);
  }
  for (Run* run : finals) run->times.clear();
  for (int i = 0; i < 21; ++i) round(finals);
  for (Run* run : finals) {
    run->median = median(run->times);
    verify(*run);
  }
  Run* best = nullptr;
  std::printf("  again, 21 rounds in turns: cuBLAS %.2f us\n", finals[0]->median);
  for (Run* run : finals) {
    if (run->variant < 0) continue;
    std::printf("    %-30s %9.2f us (fastest %.2f)  cuBLAS/ours %.3f%s\n", run->name.c_str(),
                run->median, *std::min_element(run->times.begin(), run->times.end()),
                finals[0]->median / run->median, run->wrong ? "  WRONG RESULT" : "");
    if (run->wrong) continue;
    if (!best || run->median < best->median) best = run;
  }
  if (best) {
    char line[256];
    std::snprintf(line, sizeof line, "%6d x %5d x %4d %s  %9.2f %5.0f   %9.2f %5.0f   %.3f  %s",
                  p.m, p.n, p.k, nk ? "nk" : "kn", finals[0]->median,
                  flops / finals[0]->median * 1e-6, best->median, flops / best->median * 1e-6,
                  finals[0]->median / best->median, best->name.c_str());
    summary.push_back(line);
  }
  std::fflush(stdout);
  for (Run& run : runs) {
    if (run.graph) CHECK(cudaGraphExecDestroy(run.graph));
  }
  for (Run& run : others) {
    if (run.graph) CHECK(cudaGraphExecDestroy(run.graph));
  }
  for (cudaEvent_t event : events) CHECK(cudaEventDestroy(event));
}

void time_ceiling(cudaStream_t stream) {
  const int bytes = 4 * 49152 + 1024, rounds = 4000;
  CHECK(cudaFuncSetAttribute(ceiling_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  fill(buffers.b, 4 * 49152 / 2, 7);
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 15; ++i) {
    CHECK(cudaEventRecord(begin, stream));
    ceiling_kernel<<<132, 384, bytes, stream>>>(reinterpret_cast<uint4*>(buffers.b), rounds,
                                                buffers.r);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    times.push_back(milliseconds);
  }
  const double flops = 2.0 * 128 * 256 * 64 * rounds * 132;
  std::printf("tensor cores alone, random inputs: %.0f TFLOP/s (first %.0f, last %.0f)\n",
              flops / median(times) * 1e-9, flops / times[1] * 1e-9, flops / times.back() * 1e-9);
}

const Problem timed_problems[] = {{1, 3584, 8192},     {16, 3584, 8192},   {64, 3584, 8192},
                                  {256, 3584, 8192},   {1024, 3584, 8192}, {4096, 3584, 8192},
                                  {16384, 3584, 8192}, {4096, 4096, 4096}, {4096, 11008, 4096},
                                  {4096, 14336, 4096}, {8192, 8192, 8192}};

// ---------------------------------------------------------------------------------------------

void work(const std::string& what) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found));
  if (!entry || found != cudaDriverEntryPointSuccess) {
    std::printf("the driver has no cuTensorMapEncodeTiled\n");
    _exit(1);
  }
  encode_map = reinterpret_cast<decltype(encode_map)>(entry);
  add_variants<true>();
  add_variants<false>();
  add_narrow<8>();
  add_narrow<16>();
  for (Variant& v : variants) prepare(v);
  CHECK(cudaMalloc(&buffers.a, size_t{16384} * 8192 * 2));
  CHECK(cudaMalloc(&buffers.b, std::max(copies_bytes, size_t{8192} * 8192 * 2)));
  CHECK(cudaMalloc(&buffers.d, (size_t{16384} * 8192 + guard) * 2));
  CHECK(cudaMalloc(&buffers.e, (size_t{16384} * 8192 + guard) * 2));
  CHECK(cudaMalloc(&buffers.r, size_t{4096} * 4096 * 4));
  CHECK(cudaMalloc(&buffers.report, sizeof(Report)));
  CHECK(cudaMalloc(&buffers.different, 4));
  CHECK(cudaMalloc(&partials, partials_bytes));
  CHECK(cudaMalloc(&counters, counter_count * 4));
  CHECK(cudaMalloc(&timeouts, 8));
  CHECK(cudaMemset(counters, 0, counter_count * 4));
  CHECK(cudaMemset(timeouts, 0, 8));
  CHECK(cudaDeviceSynchronize());
  std::printf("%.1f s: ready\n", seconds());
  if (what != "time" && !survivor->self_test_done) {
    survivor->self_test_done = true;  // not again after a crash
    self_test();
    std::printf("%.1f s\n", seconds());
  }
  if (what == "self-test") return;
  if (what != "time") {
    check_all();
    std::printf("%.1f s\n", seconds());
  } else {
    for (int& verdict : survivor->verdict) verdict = verdict == 3 ? 3 : 1;
  }
  if (what == "check") return;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMemset(counters, 0, counter_count * 4));
  CHECK(cudaDeviceSynchronize());
  time_ceiling(stream);
  if (!open_blas(stream)) return;
  std::vector<std::string> summary;
  for (bool nk : {true, false}) {
    for (Problem p : timed_problems) {
      if (seconds() > 36) {
        std::printf("out of time\n");
        break;
      }
      time_problem(p, nk, stream, summary);
    }
  }
  std::printf("\n     M x     N x    K B    cuBLAS us  TF/s     ours us  TF/s  ratio  best\n");
  for (const std::string& line : summary) std::printf("%s\n", line.c_str());
  std::printf("%.1f s\n", seconds());
}

// The GPU is used in a child process: where a variant crashes it, another child goes on without
// that variant.
int main(int count, char** values) {
  const std::string what = count > 1 ? values[1] : "all";
  seconds();
  survivor = static_cast<Survivor*>(
      mmap(nullptr, sizeof(Survivor), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::memset(survivor, 0, sizeof(Survivor));
  survivor->current = -1;
  for (int attempt = 0; attempt < 6; ++attempt) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(90);
      work(what);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    const int current = survivor->current;
    std::printf("the worker ended with status %d, signal %d; variant at work: %d\n",
                WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0, current);
    if (current >= 0 && current < max_variants) {
      survivor->verdict[current] = 3;
    } else if (!survivor->self_test_done || WIFSIGNALED(status)) {
      return 1;
    }
    survivor->current = -1;
    if (seconds() > 60) break;
  }
  return 1;
}

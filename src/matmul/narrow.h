// Up to 16 rows of A, and B stored as [N,K]: what decoding needs, at the speed of the memory B is
// in.
#pragma once

#include "iridium/device/matrix.h"
#include "matmul/epilogue.h"

namespace iridium {

namespace narrow {

inline constexpr int warps = 16;
inline constexpr int most_rows = 16;   ///< of A
inline constexpr int block_rows = 32;  ///< of B, at most, for each block
inline constexpr int k_block = 64;     ///< elements of K that a warp takes at a time

#if IR_ON_CUDA

/// B is read once, in long lines.
template <class T>
__device__ __forceinline__ uint4 load_once(const T* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

/// The same eight elements, of which `there` are there, at any address.
template <class T>
__device__ __forceinline__ uint4 load_eight(const T* from, std::size_t there) {
  alignas(16) T values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = i < there ? from[i] : T(0.0f);
  return reinterpret_cast<const uint4&>(values);
}

template <HalfNumber T>
inline constexpr char types[] = ".bf16.bf16";
template <>
inline constexpr char types<fp16>[] = ".f16.f16";

/// d += 16 × 16 elements of B times 16 × 8 of A.
template <HalfNumber T>
__device__ __forceinline__ void add_product(float (&d)[4], std::uint32_t b0, std::uint32_t b1,
                                            std::uint32_t b2, std::uint32_t b3, std::uint32_t a0,
                                            std::uint32_t a1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32%10.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(a0), "r"(a1), "C"(types<T>));
}

#endif

}  // namespace narrow

/// D = A × B for up to 8 × `parts` rows of A. A block takes up to 32 rows of B, all of K; its warps
/// share K, and their sums are added in a fixed order, which does not depend on A's rows. With
/// `vectors`, rows of A and B begin at multiples of 16 bytes and K is a multiple of 8.
///
/// B goes from memory straight into registers: in which order the elements of K are multiplied is
/// free as long as A and B agree, so a thread's 16 bytes in a row serve as its fragments.
template <HalfNumber T, int parts, bool vectors>
struct NarrowProduct {
  /// The sums of a warp.
  using Partial = float[8 * parts][narrow::block_rows + 1];
  static constexpr int block_bytes = narrow::warps * static_cast<int>(sizeof(Partial));

  Matrix<T> d;
  Matrix<const T> a;
  Matrix<const T> b;
  int rows;  ///< of B, for each block; pairs where they are gated
  Epilogue epilogue;

  IR_DEVICE void operator()([[maybe_unused]] BlockOf<narrow::warps * 32> block) const {
#if IR_ON_CUDA
    using namespace narrow;
    extern __shared__ std::byte block_memory[];
    auto* const partial = reinterpret_cast<Partial*>(block_memory);
    const int warp = block.thread() / 32;
    const int lane = block.thread() % 32;
    const auto first = static_cast<std::size_t>(block.index()) * rows;
    const int height = min(static_cast<std::size_t>(rows), b.rows - first);

    float sums[2][parts][4] = {};
    add_products(sums, first, height, warp, lane);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          partial[warp][part * 8 + 2 * (lane % 4) + i % 2][tile * 16 + lane / 4 + i / 2 * 8] =
              sums[tile][part][i];
    block.sync();
    const int row = block.thread() / block_rows;
    const int column = block.thread() % block_rows;
    if (row >= 8 * parts || row >= static_cast<int>(d.rows) || column >= height) return;
    const auto total = [&](int of) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += partial[w][row][of];
      return sum;
    };
    const std::size_t at = first + column;
    if (!epilogue.gated)
      *d.at(row, at) = T(epilogue.finished<T>(total(column), row, at));
    else if (column % 2 == 0)
      *d.at(row, at / 2) = T(epilogue.finished_pair<T>(total(column), total(column + 1), row, at));
#endif
  }

#if IR_ON_CUDA
 private:
  struct Vectors {
    uint4 b[4][2];
    uint4 a[parts][2];
  };

  /// This warp's share of K, for 32 rows of B.
  __device__ __forceinline__ void add_products(float (&sums)[2][parts][4], std::size_t first,
                                               int height, int warp, int lane) const {
    using namespace narrow;
    const int row = lane / 4;
    const int offset = lane % 4 * 8;
    // Rows outside repeat the last one: the same addresses within a load cost nothing, and what
    // they give is not stored.
    const T* b_rows[4];
    const T* a_rows[parts];
#pragma unroll
    for (int i = 0; i < 4; ++i) b_rows[i] = b.at(first + min(row + 8 * i, height - 1), offset);
#pragma unroll
    for (int i = 0; i < parts; ++i)
      a_rows[i] = a.at(min(row + 8 * i, static_cast<int>(a.rows) - 1), offset);
    const auto load = [&](std::size_t k, Vectors& loaded) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::size_t at = k + 32 * half;
        if constexpr (vectors) {
          const bool inside = at + offset < b.columns;
#pragma unroll
          for (int i = 0; i < 4; ++i)
            loaded.b[i][half] = inside ? load_once(b_rows[i] + at) : make_uint4(0, 0, 0, 0);
#pragma unroll
          for (int i = 0; i < parts; ++i)
            loaded.a[i][half] = inside ? __ldg(reinterpret_cast<const uint4*>(a_rows[i] + at))
                                       : make_uint4(0, 0, 0, 0);
        } else {
          const std::size_t there = at + offset < b.columns ? b.columns - at - offset : 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) loaded.b[i][half] = load_eight(b_rows[i] + at, there);
#pragma unroll
          for (int i = 0; i < parts; ++i) loaded.a[i][half] = load_eight(a_rows[i] + at, there);
        }
      }
    };
    Vectors now;
    Vectors next;
    load(warp * k_block, now);
#pragma unroll(parts == 1 ? 2 : 1)
    for (std::size_t k = warp * k_block; k < b.columns; k += warps * k_block) {
      load(k + warps * k_block, next);
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
          const uint4 upper = now.b[2 * tile][half];
          const uint4 lower = now.b[2 * tile + 1][half];
#pragma unroll
          for (int i = 0; i < parts; ++i) {
            const uint4 v = now.a[i][half];
            add_product<T>(sums[tile][i], upper.x, lower.x, upper.y, lower.y, v.x, v.y);
            add_product<T>(sums[tile][i], upper.z, lower.z, upper.w, lower.w, v.z, v.w);
          }
        }
      now = next;
    }
  }
#endif
};

}  // namespace iridium

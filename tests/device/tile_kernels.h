// What the tile tests run, told without kernel code: tests are compiled by the C++ compiler,
// kernels by nvcc where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/context.h"
#include "iridium/device/number.h"

namespace iridium::test {

/// What happens to every element of a tile. `a` and `b` are the elements that were loaded.
enum class TileOp {
  copy,      ///< a
  filled,    ///< the case's value
  add,       ///< a + b
  subtract,  ///< a - b
  multiply,  ///< a * b
  minimum,   ///< of a and b
  maximum,   ///< of a and b
  map,       ///< `one_minus(a)`
  zip,       ///< `larger(a, b as a float)`
  for_each,  ///< out = a and one visit, also beyond the array's end
  convert,   ///< a as another type, and one visit, also beyond the array's end
};

/// Tiles and the blocks that hold them.
enum class TileShape {
  part,      ///< fewer vectors than threads
  exact,     ///< one vector per thread
  multiple,  ///< several vectors per thread
  ragged,    ///< one vector on some threads, two on the others; the shape of all conversions
};

struct ShapeSize {
  int threads;
  int vectors;
};
constexpr ShapeSize size_of(TileShape shape) {
  switch (shape) {
    case TileShape::part:
      return {.threads = 128, .vectors = 50};
    case TileShape::exact:
      return {.threads = 512, .vectors = 512};
    case TileShape::multiple:
      return {.threads = 32, .vectors = 96};
    default:
      return {.threads = 32, .vectors = 50};
  }
}
template <class T>
constexpr int tile_elements(TileShape shape) {
  return size_of(shape).vectors * vector_elements<T>;
}

/// The element types, for choosing one at run time.
enum class NumberKind { fp16, bf16, float32, float64, int8, int32, int64, uint8, uint32, uint64 };

/// Calls `function` with a value of the type of this kind.
template <class Function>
IR_DEVICE void with_number(NumberKind kind, Function function) {
  // NOLINTBEGIN(bugprone-branch-clone): the branches differ in their types.
  switch (kind) {
    case NumberKind::fp16:
      return function(fp16());
    case NumberKind::bf16:
      return function(bf16());
    case NumberKind::float32:
      return function(float());
    case NumberKind::float64:
      return function(double());
    case NumberKind::int8:
      return function(std::int8_t());
    case NumberKind::int32:
      return function(std::int32_t());
    case NumberKind::int64:
      return function(std::int64_t());
    case NumberKind::uint8:
      return function(std::uint8_t());
    case NumberKind::uint32:
      return function(std::uint32_t());
    case NumberKind::uint64:
      return function(std::uint64_t());
  }
  // NOLINTEND(bugprone-branch-clone)
}

// Functions for `map` and `zip`; both round once.
template <Number T>
IR_DEVICE T one_minus(T value) {
  return subtract(convert<T>(std::int32_t{1}), value);
}
template <Number T>
IR_DEVICE T larger(T a, float b) {
  return maximum(a, convert<T>(b));
}

/// Tiles that begin at elements first, first + N, … of arrays of `count` elements.
template <Number T>
struct TileCase {
  TileOp op = TileOp::copy;
  TileShape shape = TileShape::exact;
  NumberKind to = NumberKind::fp16;  ///< what `convert` converts to
  const T* a = nullptr;
  const T* b = nullptr;
  T value = T();
  void* out = nullptr;  ///< of T, or of what `to` says
  /// One per element the tiles span.
  std::uint32_t* visits = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
  int tiles = 1;
  int blocks = 1;
};

/// Queues the case's kernel on the stream. Exists for every Number.
template <Number T>
void run_tiles(const Context& context, StreamRef& stream, const TileCase<T>& work);

}  // namespace iridium::test

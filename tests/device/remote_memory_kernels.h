// What the tests of remote memory run, told without kernel code; see tile_kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "iridium/context.h"
#include "iridium/device/remote_memory.h"

namespace iridium::test {

/// What a case does with elements of two members.
enum class RemoteCall {
  load,        ///< `remote_load` by every thread, and plain stores
  store,       ///< plain loads, and `remote_store` by every thread
  load_tiles,  ///< `load_from`, and `store` of whole tiles, so that one sees what they hold
  store_tiles,
  copy,
  put,
  get,
  update,  ///< `remote_update` by every thread, which adds; of numbers that have it
};

enum class MaskKind { everywhere, thirds, range, nothing };

/// For an array of `count` elements.
struct TestMask {
  MaskKind kind = MaskKind::everywhere;
  std::size_t count = 0;

  IR_DEVICE constexpr bool operator()(std::size_t index) const {
    switch (kind) {
      case MaskKind::thirds:
        return index % 3 == 0;
      case MaskKind::range:
        return index >= count / 8 && index < count / 2 + 1;
      case MaskKind::nothing:
        return false;
      default:
        return true;
    }
  }
};

/// How a grid shares a case.
enum class Sharing {
  none,    ///< one block does all of it
  slices,  ///< every block does its `slice_of` it
  grid,    ///< `By::grid`, of copies
};

/// Sizes of the kernels' blocks and tiles.
inline constexpr int remote_threads = 64;
template <class T>
inline constexpr int remote_tile = remote_threads * vector_elements<T> * 2;

template <class T>
struct RemoteWork {
  RemoteCall call = RemoteCall::put;
  MaskKind mask = MaskKind::everywhere;
  Cache cache = Cache::normal;
  T* to = nullptr;
  const T* from = nullptr;
  int target = 0;  ///< place of the member whose `to` is written; else this rank's is
  int source = 0;  ///< place of the member whose `from` is read; else this rank's is
  std::size_t count = 0;
  std::size_t tiles = ~std::size_t{0};  ///< `load_tiles` ends after so many
  int blocks = 1;
  Sharing sharing = Sharing::none;
};

// Neither numbers nor parts of 16 bytes.
struct ThreeBytes {
  std::uint8_t bytes[3];
};
struct TwelveBytes {
  std::uint32_t words[3];
};

/// Whether cases can have a hint, for the sake of the compiler's time; else it is ignored.
template <class T>
inline constexpr bool has_hints = std::is_same_v<T, float>;

/// For std::uint8_t, fp16, float and double; for ThreeBytes and TwelveBytes without tiles, masks
/// and hints.
template <class T>
void run_remote(const Context& context, StreamRef& stream, const Lane& lane,
                const RemoteWork<T>& work);

/// Every block of a grid writes its slices of `counts[i]` elements of `bytes` bytes (1, 2, 3, 4, 8,
/// 12) to slices[i * blocks + block].
void run_slices(const Context& context, StreamRef& stream, int blocks, int bytes,
                const std::size_t* counts, std::size_t cases, Slice* slices);

}  // namespace iridium::test

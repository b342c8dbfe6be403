#include "device/remote_memory_kernels.h"
#include "iridium/device/atomic.h"

namespace iridium::test {
namespace {

template <class T>
struct Elements {
  Lane lane;
  RemoteWork<T> work;

  IR_DEVICE void operator()(BlockOf<remote_threads> block) const {
    const auto threads = static_cast<std::size_t>(block.thread_count());
    const std::size_t first = static_cast<std::size_t>(block.index()) * threads +
                              static_cast<std::size_t>(block.thread());
    const std::size_t step = static_cast<std::size_t>(block.count()) * threads;
    for (std::size_t i = first; i < work.count; i += step) {
      if (work.call == RemoteCall::load)
        work.to[i] = remote_load(block, lane, work.from + i, work.source);
      else if (work.call == RemoteCall::update)
        add(block, i);
      else
        remote_store(block, lane, work.to + i, work.from[i], work.target);
    }
  }

 private:
  IR_DEVICE void add(BlockOf<remote_threads> block, std::size_t i) const {
    if constexpr (AtomicNumber<T>)
      remote_update(block, lane, work.to + i, work.target,
                    [&](T* there) { return atomic_add(block, there, work.from[i]); });
  }
};

template <class T>
struct Tiles {
  Lane lane;
  RemoteWork<T> work;

  IR_DEVICE void operator()(BlockOf<remote_threads> block) const {
    if (work.mask == MaskKind::everywhere)
      with_mask(block, everywhere);
    else
      with_mask(block, TestMask{work.mask, work.count});
  }

 private:
  template <class Mask>
  IR_DEVICE void with_mask(BlockOf<remote_threads> block, Mask mask) const {
    if constexpr (has_hints<T>) {
      if (work.cache == Cache::streaming) return run(block, mask, cache::streaming);
      if (work.cache == Cache::shared) return run(block, mask, cache::shared);
    }
    run(block, mask, cache::normal);
  }

  template <class Mask, Cache C>
  IR_DEVICE void run(BlockOf<remote_threads> block, Mask mask, CacheTag<C> hint) const {
    const By by = work.sharing == Sharing::grid ? By::grid : By::block;
    const Slice all = {0, work.count};
    const Slice part = work.sharing == Sharing::slices ? slice_of<T>(block, work.count) : all;
    T* const to = work.to + part.first;
    const T* const from = work.from + part.first;
    switch (work.call) {
      case RemoteCall::load_tiles:
        return load_tiles(block, to, from, part.count, mask, hint);
      case RemoteCall::store_tiles:
        return store_tiles(block, to, from, part.count, mask, hint);
      case RemoteCall::copy:
        return copy(block, lane, to, work.target, from, work.source, part.count, by, mask, hint);
      case RemoteCall::put:
        return put(block, lane, to, from, part.count, work.target, by, mask, hint);
      case RemoteCall::get:
        return get(block, lane, to, from, part.count, work.source, by, mask, hint);
      default:
        return;
    }
  }

  template <class Mask, Cache C>
  IR_DEVICE void load_tiles(BlockOf<remote_threads> block, T* to, const T* from, std::size_t count,
                            Mask mask, CacheTag<C> hint) const {
    constexpr int N = remote_tile<T>;
    for (std::size_t first = 0; first < count && first / N < work.tiles; first += N)
      store(block, to, first, first + N,
            load_from<N>(block, lane, from, work.source, first, count, mask, hint));
  }

  template <class Mask, Cache C>
  IR_DEVICE void store_tiles(BlockOf<remote_threads> block, T* to, const T* from, std::size_t count,
                             Mask mask, CacheTag<C> hint) const {
    constexpr int N = remote_tile<T>;
    for (std::size_t first = 0; first < count; first += N)
      store_to(block, lane, to, work.target, first, count, load<N>(block, from, first, count), mask,
               hint);
  }
};

/// Of what is no number.
template <class T>
struct Copies {
  Lane lane;
  RemoteWork<T> work;

  IR_DEVICE void operator()(BlockOf<remote_threads> block) const {
    const By by = work.sharing == Sharing::grid ? By::grid : By::block;
    const Slice all = {0, work.count};
    const Slice part = work.sharing == Sharing::slices ? slice_of<T>(block, work.count) : all;
    T* const to = work.to + part.first;
    const T* const from = work.from + part.first;
    switch (work.call) {
      case RemoteCall::copy:
        return copy(block, lane, to, work.target, from, work.source, part.count, by);
      case RemoteCall::put:
        return put(block, lane, to, from, part.count, work.target, by);
      case RemoteCall::get:
        return get(block, lane, to, from, part.count, work.source, by);
      default:
        return;
    }
  }
};

struct Slices {
  int bytes;
  const std::size_t* counts;
  std::size_t cases;
  Slice* slices;

  IR_DEVICE void operator()(BlockOf<remote_threads> block) const {
    if (!block.is_leader()) return;
    for (std::size_t i = 0; i < cases; ++i)
      slices[i * static_cast<std::size_t>(block.count()) +
             static_cast<std::size_t>(block.index())] = slice(block, counts[i]);
  }

 private:
  IR_DEVICE Slice slice(BlockOf<remote_threads> block, std::size_t count) const {
    switch (bytes) {
      case 1:
        return slice_of<std::uint8_t>(block, count);
      case 2:
        return slice_of<fp16>(block, count);
      case 3:
        return slice_of<ThreeBytes>(block, count);
      case 4:
        return slice_of<float>(block, count);
      case 12:
        return slice_of<TwelveBytes>(block, count);
      default:
        return slice_of<double>(block, count);
    }
  }
};

}  // namespace

template <class T>
void run_remote(const Context& context, StreamRef& stream, const Lane& lane,
                const RemoteWork<T>& work) {
  if (work.call == RemoteCall::load || work.call == RemoteCall::store ||
      work.call == RemoteCall::update)
    return context.launch(stream, work.blocks, Elements<T>{lane, work});
  if constexpr (Number<T>)
    context.launch(stream, work.blocks, Tiles<T>{lane, work});
  else
    context.launch(stream, work.blocks, Copies<T>{lane, work});
}

void run_slices(const Context& context, StreamRef& stream, int blocks, int bytes,
                const std::size_t* counts, std::size_t cases, Slice* slices) {
  context.launch(stream, blocks, Slices{bytes, counts, cases, slices});
}

template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<std::uint8_t>&);
template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<fp16>&);
template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<float>&);
template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<double>&);
template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<ThreeBytes>&);
template void run_remote(const Context&, StreamRef&, const Lane&, const RemoteWork<TwelveBytes>&);

}  // namespace iridium::test

// Every kernel of the library, and kernels that use all of the device headers, compiled for AMD
// GPUs by tools/hip_check.sh. Nothing here is run.
#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>

#include "collectives/all_gather/kernels.h"
#include "collectives/all_reduce/atomic.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/packet.h"
#include "collectives/all_reduce/packet_two_shot.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_to_all/kernels.h"
#include "collectives/broadcast/kernels.h"
#include "collectives/call_check/kernels.h"
#include "collectives/columns/kernels.h"
#include "collectives/device_barrier/kernels.h"
#include "collectives/reduce_scatter/packet.h"
#include "collectives/shard_reduce/kernels.h"
#include "collectives/shard_reduce/push.h"
#include "collectives/signals/kernels.h"
#include "device/flawed.h"
#include "device/lane_kernels.h"
#include "device/pass_tiles.h"
#include "iridium/device/atomic.h"
#include "iridium/device/block_memory.h"
#include "iridium/device/kernel.h"
#include "iridium/device/matrix.h"
#include "iridium/device/packet.h"
#include "iridium/device/reduce.h"
#include "iridium/device/remote_memory.h"
#include "iridium/device/signal.h"
#include "iridium/device/tile.h"
#include "matmul/simple.h"
#include "matmul/tiled.h"

namespace iridium::test {
namespace {

using ABlock = BlockOf<256>;
template <class T>
constexpr int elements = ABlock::gpu_threads * vector_elements<T>;

struct EvenElements {
  IR_DEVICE bool operator()(std::size_t index) const { return index % 2 == 0; }
};

/// Loads, stores and arithmetic of tiles.
template <Number T>
struct Tiles {
  const T* a;
  const T* b;
  T* out;
  std::size_t count;

  IR_DEVICE void operator()(ABlock block) const {
    constexpr int n = elements<T>;
    const auto x = load<n>(block, a, 0, count);
    const auto y = load<n>(block, b, 0, count, everywhere, cache::streaming);
    const auto z = load<n>(block, b, n, count, EvenElements(), cache::shared);
    const auto sums =
        x.zip(y, [](T p, T q) { return subtract(p, q); }).map([](T p) { return multiply(p, p); });
    store(block, out, 0, count, minimum(x + y, maximum(x - z, x * y)));
    store(block, out, n, count, sums, everywhere, cache::streaming);
    store(block, out, 2 * n, count, Tile<T, n, ABlock::gpu_threads>::filled(a[0]), EvenElements(),
          cache::shared);
    for_each(block, x, [&](int index, T value) { out[3 * n + index] = value; });
    const Slice mine = slice_of<T>(block, count);
    copy(block, out + mine.first, a + mine.first, mine.count);
  }
};

/// Conversions to every other type.
template <Number T>
struct Conversions {
  const T* from;
  void* to;
  std::size_t count;

  IR_DEVICE void operator()(ABlock block) const {
    convert_to<fp16, bf16, float, double, std::int8_t, std::int32_t, std::int64_t, std::uint8_t,
               std::uint32_t, std::uint64_t>(block);
  }

 private:
  template <Number... To>
  IR_DEVICE void convert_to(ABlock block) const {
    const auto tile = load<elements<T>>(block, from, 0, count);
    (store(block, static_cast<To*>(to), 0, count, convert<To>(tile)), ...);
  }
};

/// Calls function(order, scope) for all there are.
template <class Function>
IR_DEVICE void for_orders_and_scopes(Function function) {
  const auto for_scopes = [&](auto order) {
    function(order, scope::block);
    function(order, scope::device);
    function(order, scope::system);
  };
  for_scopes(order::relaxed);
  for_scopes(order::acquire);
  for_scopes(order::release);
  for_scopes(order::acq_rel);
}

template <class T>
struct IntegerAtomics {
  T* to;
  T value;

  IR_DEVICE void operator()(ABlock block) const {
    T sum = 0;
    for_orders_and_scopes([&](auto order, auto scope) {
      sum += atomic_add(block, to, value, order, scope);
      sum += atomic_sub(block, to, value, order, scope);
      sum += atomic_and(block, to, value, order, scope);
      sum += atomic_or(block, to, value, order, scope);
      sum += atomic_xor(block, to, value, order, scope);
      sum += atomic_min(block, to, value, order, scope);
      sum += atomic_max(block, to, value, order, scope);
      sum += atomic_exchange(block, to, value, order, scope);
      sum += atomic_compare_exchange(block, to, sum, value, order, scope);
    });
    to[1] = sum;
  }
};

template <class T>
struct AtomicSums {
  T* to;
  T value;

  IR_DEVICE void operator()(ABlock block) const {
    for_orders_and_scopes(
        [&](auto order, auto scope) { to[1] = atomic_add(block, to, value, order, scope); });
  }
};

template <class T>
struct AtomicAccesses {
  T* at;

  IR_DEVICE void operator()(ABlock block) const {
    use(block, scope::block);
    use(block, scope::device);
    use(block, scope::system);
  }

 private:
  template <Scope S>
  IR_DEVICE void use(ABlock block, ScopeTag<S> scope) const {
    const T first = atomic_load(block, at, order::relaxed, scope);
    const T second = atomic_load(block, at + 1, order::acquire, scope);
    atomic_store(block, at, second, order::relaxed, scope);
    atomic_store(block, at + 1, first, order::release, scope);
  }
};

/// One element, tiles and vectors of a peer.
template <Number T>
struct RemoteMemory {
  Lane lane;
  T* mine;
  T* other;
  std::size_t count;

  IR_DEVICE void operator()(ABlock block) const {
    constexpr int n = elements<T>;
    if (block.is_leader()) remote_store(block, lane, mine, remote_load(block, lane, mine, 1), 2);
    if constexpr (AtomicNumber<T>)
      remote_update(block, lane, mine, 1, [&](T* there) { return atomic_add(block, there, T()); });
    const auto tile = load_from<n>(block, lane, mine, 1, 0, count);
    store_to(block, lane, mine, 2, n, count, tile, everywhere, cache::streaming);
    copy(block, lane, mine, 1, other, 2, count);
    put(block, lane, mine, other, count, 1, By::grid, EvenElements());
    get(block, lane, other, mine, count, 1, By::block, everywhere, cache::shared);
  }
};

/// Two-dimensional tiles, and rows from anywhere.
template <Number T>
struct Matrices {
  Lane lane;
  Matrix<T> mine;
  TileOrder order;

  IR_DEVICE void operator()(ABlock block) const {
    constexpr int rows = 16;
    constexpr int columns = ABlock::gpu_threads / rows * vector_elements<T>;
    const TileGrid<rows, columns> grid(mine, order);
    for (auto i = static_cast<std::size_t>(block.index()); i < grid.count(); ++i) {
      const auto corner = grid.at(i);
      const auto near = load<rows, columns>(block, mine, corner.row, corner.column);
      const auto far =
          load_from<rows, columns>(block, lane, mine, 1, corner.row, corner.column, cache::shared);
      const auto gathered = gather<rows, columns>(
          block, lane, mine,
          [](int row) { return RemoteRow{row % 2, static_cast<std::size_t>(row)}; }, corner.column);
      store<rows, columns>(block, mine, corner.row, corner.column, near + far);
      store_to<rows, columns>(block, lane, mine, 1, corner.row, corner.column, gathered,
                              cache::streaming);
    }
  }
};

/// Block memory, copies to it, and reductions.
template <Number T>
struct SharedWork {
  const T* from;
  T* to;

  IR_DEVICE void operator()(ABlock block) const {
    constexpr int chunk = vector_elements<T>;
    const BlockMemory<T, elements<T>, struct Fetched> fetched(block);
    target::fetch_vector(block.seat(),
                         target::block_address(fetched.data() + block.thread() * chunk),
                         from + block.thread() * chunk);
    target::end_fetch(block.seat());
    target::await_fetches<0>(block.seat());
    block.sync();
    const T mine = fetched[elements<T> - 1 - block.thread()];
    to[block.thread()] = add(sum(block, mine), add(min(block, mine), max(block, mine)));
    if (any_of(block, mine == T()) && !all_of(block, mine == T())) to[0] = mine;
  }
};

/// Signals and waits in all their forms.
struct Signals {
  Lane lane;
  std::uint32_t* flags;
  std::uint32_t value;

  IR_DEVICE void operator()(ABlock block) const {
    signal(block, lane.peers().at(flags, 1), value);
    signal(block, flags, value, SignalOp::add, order::relaxed, scope::device);
    if (!wait(block, lane, flags, value, Compare::equal, 1)) return;
    if (!wait(block, lane, flags, value, Compare::at_least, -1, order::acquire, scope::block))
      return;
    signal_all(block, lane.peers(), flags, value, SignalOp::add);
    if (!wait_all(block, lane, flags, value)) return;
    put_signal(block, lane.peers().at(flags + 8, 1), flags + 8, 1000, flags, value);
  }
};

template <class Kernel, int Threads>
__global__ void __launch_bounds__(Threads) run_on_hip(Kernel kernel) {
  kernel(BlockOf<Threads>());
}

template <class Kernel>
const void* compiled() {
  return reinterpret_cast<const void*>(
      &run_on_hip<Kernel, detail::threads_of(&Kernel::operator())>);
}

template <template <class> class Kernel, class... Types>
void compile_for(const void**& next) {
  ((*next++ = compiled<Kernel<Types>>()), ...);
}

template <template <class> class Kernel>
void compile_for_numbers(const void**& next) {
  compile_for<Kernel, fp16, bf16, float, double, std::int8_t, std::int32_t, std::int64_t,
              std::uint8_t, std::uint32_t, std::uint64_t>(next);
}

template <class... Kernels>
void compile(const void**& next) {
  ((*next++ = compiled<Kernels>()), ...);
}

}  // namespace

/// The reducing collectives of one type.
template <class T>
void compile_reductions(const void**& next) {
  compile<PacketAllReduce<T>, PacketTwoShotAllReduce<T>, OneShotAllReduce<T, 2>, RingAllReduce<T>,
          AtomicAllReduce<T>, PacketReduceScatter<T>, StagedShardReduce<T, 1>,
          PushShardReduce<T, 2>, DirectShardReduce<T, 4>>(next);
}

/// Names all kernels, so that the compiler makes them.
void name_kernels(const void** next) {
  compile<CallCheck, DeviceBarrier, Signal, SignalAll, Wait, WaitAll, PutSignal>(next);
  compile<StagedPullGather, StagedPushGather<2>, DirectPushGather<4>, DirectPullGather,
          PacketGather, StagedAllToAll<EqualParts>, StagedAllToAll<GivenParts>, DirectAllToAll,
          PacketBroadcast, iridium::StagedBroadcast, DirectBroadcast, StagedColumnGather,
          DirectColumnGather, ColumnReduce<fp16>, ColumnReduce<std::int64_t>>(next);
  compile_reductions<bf16>(next);
  compile_reductions<double>(next);
  compile_reductions<std::int8_t>(next);
  compile_reductions<std::uint32_t>(next);
  compile<StagedSum<LaneCall>, StagedBroadcast<LaneCall>, PullGather<LaneCall>,
          PushGather<LaneCall>, PacketSum, ManyBarriers<LaneCall>>(next);
  compile<StagedSum<Flawed<Flaw::none>::Call>, PassTiles<>, Signals>(next);
  compile<SimpleProduct<fp16, fp16, false>, SimpleProduct<e4m3, bf16, true>>(next);
  compile<TiledProduct<fp16, MatmulLayout::kn, large_tile<fp16>>,
          TiledProduct<bf16, MatmulLayout::nk, small_tile<bf16>>,
          TiledProduct<float, MatmulLayout::kn, large_tile<float>>>(next);
  compile_for_numbers<Tiles>(next);
  compile_for_numbers<Conversions>(next);
  // One type of each size: these move elements, and the kernels above compute with them.
  compile_for<RemoteMemory, std::uint8_t, bf16, float, double>(next);
  compile_for<Matrices, std::uint8_t, bf16, float, double>(next);
  compile_for<SharedWork, std::uint8_t, fp16, float, double>(next);
  compile_for<IntegerAtomics, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>(next);
  compile_for<AtomicSums, float, double, fp16, bf16>(next);
  compile_for<AtomicAccesses, std::int32_t, std::uint64_t, float, double, void*>(next);
}

}  // namespace iridium::test

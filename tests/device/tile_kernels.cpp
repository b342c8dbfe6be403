#include "device/tile_kernels.h"

#include "iridium/device/atomic.h"
#include "iridium/device/tile.h"

namespace iridium::test {
namespace {

template <class T, TileShape shape>
struct TileKernel {
  static constexpr int threads = size_of(shape).threads;
  static constexpr int elements = tile_elements<T>(shape);

  TileCase<T> work;

  IR_DEVICE void operator()(BlockOf<threads> block) const {
    for (int tile = block.index(); tile < work.tiles; tile += block.count()) {
      const std::size_t first = work.first + static_cast<std::size_t>(tile) * elements;
      const auto a = load<elements>(block, work.a, first, work.count);
      const auto b = load<elements>(block, work.b, first, work.count);
      if (work.op == TileOp::for_each)
        visit(block, first, a);
      else
        store(block, static_cast<T*>(work.out), first, work.count, compute(a, b));
    }
  }

 private:
  using TileOfT = Tile<T, elements, threads>;

  IR_DEVICE TileOfT compute(const TileOfT& a, const TileOfT& b) const {
    switch (work.op) {
      case TileOp::filled:
        return TileOfT::filled(work.value);
      case TileOp::add:
        return a + b;
      case TileOp::subtract:
        return a - b;
      case TileOp::multiply:
        return a * b;
      case TileOp::minimum:
        return minimum(a, b);
      case TileOp::maximum:
        return maximum(a, b);
      case TileOp::map:
        return a.map([](T x) { return one_minus(x); });
      case TileOp::zip:
        return a.zip(convert<float>(b), [](T x, float y) { return larger(x, y); });
      default:
        return a;
    }
  }

  IR_DEVICE void visit(BlockOf<threads> block, std::size_t first, const TileOfT& tile) const {
    for_each(block, tile, [&](int index, T value) {
      const std::size_t place = first + static_cast<std::size_t>(index);
      static_cast<T*>(work.out)[place] = value;
      atomic_add(block, work.visits + place, 1u);
    });
  }
};

template <class T>
struct ConvertKernel {
  static constexpr int threads = size_of(TileShape::ragged).threads;
  static constexpr int elements = tile_elements<T>(TileShape::ragged);

  TileCase<T> work;

  IR_DEVICE void operator()(BlockOf<threads> block) const {
    with_number(work.to, [&](auto sample) { convert_to<decltype(sample)>(block); });
  }

 private:
  template <class To>
  IR_DEVICE void convert_to(BlockOf<threads> block) const {
    for (int tile = block.index(); tile < work.tiles; tile += block.count()) {
      const std::size_t first = work.first + static_cast<std::size_t>(tile) * elements;
      const auto converted = convert<To>(load<elements>(block, work.a, first, work.count));
      store(block, static_cast<To*>(work.out), first, work.count, converted);
      for_each(block, converted, [&](int index, To) {
        atomic_add(block, work.visits + first + static_cast<std::size_t>(index), 1u);
      });
    }
  }
};

}  // namespace

template <Number T>
void run_tiles(const Context& context, StreamRef& stream, const TileCase<T>& work) {
  if (work.op == TileOp::convert)
    return context.launch(stream, work.blocks, ConvertKernel<T>{work});
  switch (work.shape) {
    case TileShape::part:
      return context.launch(stream, work.blocks, TileKernel<T, TileShape::part>{work});
    case TileShape::exact:
      return context.launch(stream, work.blocks, TileKernel<T, TileShape::exact>{work});
    case TileShape::multiple:
      return context.launch(stream, work.blocks, TileKernel<T, TileShape::multiple>{work});
    case TileShape::ragged:
      throw Error(Errc::invalid_argument, "run_tiles: ragged tiles are for conversions");
  }
}

template void run_tiles(const Context&, StreamRef&, const TileCase<fp16>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<bf16>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<float>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<double>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::int8_t>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::int32_t>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::int64_t>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::uint8_t>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::uint32_t>&);
template void run_tiles(const Context&, StreamRef&, const TileCase<std::uint64_t>&);

}  // namespace iridium::test

#include "device/tile_product_kernels.h"

#include <cstddef>

namespace iridium::test {
namespace {

template <class T>
constexpr int line_elements = 128 / static_cast<int>(sizeof(T));

template <class T>
constexpr TileProductShape shapes[product_shapes] = {
    tile_product_shape<T>,
    {.rows = 16, .columns = 32, .depth = 16, .stages = 2, .threads = 32},
    {.rows = 128, .columns = 64, .depth = line_elements<T>, .stages = 2, .threads = 256},
};

template <TileProductNumber T, MatmulLayout layout, TileProductShape shape>
struct TileProductKernel {
  using Product = TileProduct<T, layout, shape>;

  TileProductCase<T> work;

  IR_DEVICE void operator()(typename Product::ABlock block) const {
    Product product(block);
    const TileGrid<Product::rows, Product::columns> grid(work.d);
    for (auto i = static_cast<std::size_t>(block.index()); i < grid.count();
         i += static_cast<std::size_t>(block.count())) {
      const auto corner = grid.at(i);
      multiply(product, corner.row, corner.column);
      product.for_each_pair([&](std::size_t row, std::size_t column, float first, float second) {
        store_pair(work.d, corner.row + row, corner.column + column, first, second);
      });
      product.for_each_result([&](std::size_t row, std::size_t column, float) {
        const std::size_t r = corner.row + row;
        const std::size_t c = corner.column + column;
        if (r < work.seen.rows && c < work.seen.columns) ++*work.seen.at(r, c);
      });
      product.for_each_eight([&](std::size_t row, std::size_t column, const float* sums) {
        const std::size_t r = corner.row + row;
        for (std::size_t k = 0; k < 8; ++k) {
          const std::size_t c = corner.column + column + k;
          if (r < work.d.rows && c < work.d.columns && *work.d.at(r, c) == sums[k])
            *work.seen.at(r, c) += 10;
        }
      });
    }
  }

 private:
  IR_DEVICE void multiply(Product& product, std::size_t row, std::size_t column) const {
    if (work.form == ProductForm::run) return product.run(work.a, work.b, row, column);
    product.clear();
    if (work.form == ProductForm::by_calls) return multiply_by_calls(product, row, column);
    const std::size_t first = work.a.columns < 40 ? work.a.columns : 40;
    const std::size_t rest = work.a.columns - first;
    const bool is_nk = layout == MatmulLayout::nk;
    product.add(
        work.a.part(0, 0, work.a.rows, first),
        is_nk ? work.b.part(0, 0, work.b.rows, first) : work.b.part(0, 0, first, work.b.columns),
        row, column);
    product.add(work.a.part(0, first, work.a.rows, rest),
                is_nk ? work.b.part(0, first, work.b.rows, rest)
                      : work.b.part(first, 0, rest, work.b.columns),
                row, column);
  }
  /// Copies begin only when a stage has been multiplied: later than they could.
  IR_DEVICE void multiply_by_calls(Product& product, std::size_t row, std::size_t column) const {
    std::size_t k = 0;
    while (k < work.a.columns || product.pending() > 0) {
      for (; k < work.a.columns && product.has_room(); k += Product::depth)
        product.fetch(work.a, work.b, row, column, k);
      product.await();
      product.multiply();
    }
  }
};

template <class T, MatmulLayout layout>
void launch(const Context& context, StreamRef& stream, int blocks, const TileProductCase<T>& work) {
  if (work.shape == 0)
    context.launch(stream, blocks, TileProductKernel<T, layout, shapes<T>[0]>{work});
  else if (work.shape == 1)
    context.launch(stream, blocks, TileProductKernel<T, layout, shapes<T>[1]>{work});
  else
    context.launch(stream, blocks, TileProductKernel<T, layout, shapes<T>[2]>{work});
}

}  // namespace

template <TileProductNumber T>
void run_tile_product(const Context& context, StreamRef& stream, int blocks,
                      const TileProductCase<T>& work) {
  if (work.layout == MatmulLayout::nk)
    launch<T, MatmulLayout::nk>(context, stream, blocks, work);
  else
    launch<T, MatmulLayout::kn>(context, stream, blocks, work);
}
template void run_tile_product(const Context&, StreamRef&, int, const TileProductCase<fp16>&);
template void run_tile_product(const Context&, StreamRef&, int, const TileProductCase<bf16>&);
template void run_tile_product(const Context&, StreamRef&, int, const TileProductCase<float>&);

}  // namespace iridium::test

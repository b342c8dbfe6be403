// A stencil over a grid whose rows are spread over the ranks: each step, neighbours exchange halos.
// Run it with: iridium run -n 4 -- build/examples/08_stencil
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

// The whole grid. Around its elements runs a border that never changes.
struct Shape {
  std::size_t rows;     // without the border
  std::size_t columns;  // without the border

  // From row to row in memory: every row begins at a multiple of 16 bytes.
  IR_DEVICE std::size_t pitch() const { return (columns + 2 + 3) / 4 * 4; }
  // How many rows a rank has: equal shares, and the first ranks one more. With fewer rows than
  // ranks the last ranks have none.
  IR_DEVICE std::size_t rows_of(int rank, int ranks) const {
    const auto size = static_cast<std::size_t>(ranks);
    return rows / size + (static_cast<std::size_t>(rank) < rows % size ? 1 : 0);
  }
};

// One Jacobi step: every inner element becomes the mean of its four neighbours. A matrix holds this
// rank's rows and a frame of one element: above and below lie copies of the neighbours' rows (the
// halo) or the border of the grid, to the left and right its border.
struct JacobiStep {
  iridium::Lane lane;
  iridium::Matrix<float> now;
  iridium::Matrix<float> next;
  Shape whole;

  // Four floats, 16 bytes, for each of the 512 threads that a block has on a GPU.
  static constexpr int tile_rows = 16;
  static constexpr int tile_columns = 128;

  IR_DEVICE void operator()(iridium::Block block) const {
    const int rank = lane.peers().rank();
    const int size = lane.peers().size();
    const std::size_t rows = now.rows - 2;
    const std::size_t columns = now.columns - 2;
    const bool has_upper = rank > 0;
    const bool has_lower = rank + 1 < size && whole.rows_of(rank + 1, size) > 0;

    // Views of the same memory, each moved by one element: at the same place they hold an element
    // and its neighbours.
    const iridium::Matrix<float> inner = next.part(1, 1, rows, columns);
    const iridium::Matrix<float> above = now.part(0, 1, rows, columns);
    const iridium::Matrix<float> below = now.part(2, 1, rows, columns);
    const iridium::Matrix<float> left = now.part(1, 0, rows, columns);
    const iridium::Matrix<float> right = now.part(1, 2, rows, columns);
    const auto load = [&](const iridium::Matrix<float>& matrix, std::size_t row,
                          std::size_t column) {
      return iridium::load<tile_rows, tile_columns>(block, matrix, row, column);
    };

    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;  // all have finished the step before: halos are there
    const iridium::TileGrid<tile_rows, tile_columns> tiles(inner);
    const auto stride = static_cast<std::size_t>(block.count());
    for (auto i = static_cast<std::size_t>(block.index()); i < tiles.count(); i += stride) {
      const auto [row, column] = tiles.at(i);
      const auto sum = (load(above, row, column) + load(below, row, column)) +
                       (load(left, row, column) + load(right, row, column));
      const auto mean = sum.map([](float four) { return 0.25f * four; });
      iridium::store<tile_rows, tile_columns>(block, inner, row, column, mean);

      // This tile's part of my first and last row, into the halos of the ranks above and below.
      block.sync();  // `put` reads what other threads have stored
      const std::size_t rest = columns - column;
      const std::size_t width = rest < tile_columns ? rest : tile_columns;
      if (has_upper && row == 0)
        iridium::put(block, lane, next.at(whole.rows_of(rank - 1, size) + 1, column + 1),
                     inner.at(0, column), width, rank - 1);
      if (has_lower && row + tile_rows >= rows)
        iridium::put(block, lane, next.at(0, column + 1), inner.at(rows - 1, column), width,
                     rank + 1);
    }
    // No barrier: this step wrote what no step before the next `enter` reads.
    call.finish();
  }
};

constexpr iridium::Grid grid = {.blocks = 4, .resident = true};
constexpr int pairs_of_steps = 3;

// The whole grid with its border, as every rank's program computes it for itself.
std::vector<float> initial_values(Shape shape) {
  std::vector<float> values((shape.rows + 2) * shape.pitch());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i < shape.pitch() ? 100.0f : static_cast<float>(31 * i % 23);
  return values;
}

// The plain version, which the kernel is checked against: the same sums in the same order.
void serial_step(Shape shape, std::vector<float>& values) {
  const std::vector<float> now = values;
  for (std::size_t row = 1; row <= shape.rows; ++row)
    for (std::size_t column = 1; column <= shape.columns; ++column) {
      const std::size_t i = row * shape.pitch() + column;
      values[i] =
          0.25f * ((now[i - shape.pitch()] + now[i + shape.pitch()]) + (now[i - 1] + now[i + 1]));
    }
}

bool is_right(iridium::Context& context, iridium::Stream& stream, Shape shape) {
  const iridium::Team team = context.world();
  const std::size_t rows = shape.rows_of(team.rank(), team.size());
  std::size_t first = 0;  // of my rows
  for (int rank = 0; rank < team.rank(); ++rank) first += shape.rows_of(rank, team.size());

  // The same on every rank: as many elements as the rank with the most rows needs.
  const std::size_t elements = (shape.rows_of(0, team.size()) + 2) * shape.pitch();
  auto a = context.allocate<float>(elements);
  auto b = context.allocate<float>(elements);
  // My rows and the one on either side. Both arrays need them: no step writes the border.
  std::vector<float> values = initial_values(shape);
  const std::size_t bytes = (rows + 2) * shape.pitch() * sizeof(float);
  stream.copy(a.data(), &values[first * shape.pitch()], bytes);
  stream.copy(b.data(), &values[first * shape.pitch()], bytes);
  stream.synchronize();

  const auto step = [&](float* from, float* to) {
    context.launch(stream, grid,
                   JacobiStep{team.lane("jacobi_step"),
                              {from, rows + 2, shape.columns + 2, shape.pitch()},
                              {to, rows + 2, shape.columns + 2, shape.pitch()},
                              shape});
  };
  step(a.data(), b.data());
  stream.begin_capture();
  step(b.data(), a.data());
  step(a.data(), b.data());
  const iridium::Graph two_steps = stream.end_capture();
  for (int i = 0; i < pairs_of_steps; ++i) stream.launch(two_steps);

  std::vector<float> found((rows + 2) * shape.pitch());
  stream.copy(found.data(), b.data(), bytes);
  stream.synchronize();
  team.check();
  for (int i = 0; i < 1 + 2 * pairs_of_steps; ++i) serial_step(shape, values);
  for (std::size_t row = 1; row <= rows; ++row)
    for (std::size_t column = 1; column <= shape.columns; ++column)
      if (found[row * shape.pitch() + column] != values[(first + row) * shape.pitch() + column])
        return false;
  return true;
}

int run() {
  iridium::Context context;
  context.prepare<JacobiStep>();
  iridium::Stream stream = context.make_stream();

  bool right = true;
  for (const Shape shape : {Shape{101, 300}, Shape{5, 130}, Shape{1, 1}})
    right = is_right(context, stream, shape) && right;

  std::printf("rank %d of %d, process %ld, backend %s: %d steps on each of 3 grids: %s\n",
              context.rank(), context.size(), static_cast<long>(::getpid()),
              std::string(iridium::name(context.backend())).c_str(), 1 + 2 * pairs_of_steps,
              right ? "right" : "WRONG");
  context.barrier();
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

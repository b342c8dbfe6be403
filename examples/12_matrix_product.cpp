// A kernel with a matrix product in it: every rank multiplies the rows of all ranks, each block of
// rows as soon as its rank has made it.
// Run it with: iridium run -n 4 -- build/examples/12_matrix_product
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

using iridium::bf16;

// D = max(A × B, 0). Every rank makes some rows of A, and multiplies all of them by its own B,
// which is stored as N rows of K elements.
struct Layer {
  using Product = iridium::TileProduct<bf16, iridium::MatmulLayout::nk>;
  using Block = Product::ABlock;

  iridium::Lane lane;
  iridium::Matrix<const bf16> x;  // what A's rows are made of
  iridium::Matrix<bf16> a;        // in a symmetric array: peers read it
  iridium::Matrix<const bf16> b;
  iridium::Matrix<float> d;  // the rows of rank 0, of rank 1 and so on
  std::uint32_t* ready;      // for each tile of rows a flag of every rank
  std::uint32_t round;

  IR_DEVICE void operator()(Block block) const {
    make_rows(block);
    multiply(block);
  }

 private:
  IR_DEVICE std::uint32_t* flags_of(std::size_t row) const {
    return ready + row / Product::rows * static_cast<std::size_t>(lane.peers().size());
  }

  IR_DEVICE void make_rows(Block block) const {
    constexpr int width = 64;
    const std::size_t stride = static_cast<std::size_t>(block.count()) * Product::rows;
    std::size_t row = static_cast<std::size_t>(block.index()) * Product::rows;
    for (; row < a.rows; row += stride) {
      for (std::size_t column = 0; column < a.columns; column += width) {
        const auto tile = iridium::load<Product::rows, width>(block, x, row, column);
        iridium::store<Product::rows, width>(block, a, row, column, tile + tile);
      }
      iridium::signal_all(block, lane.peers(), flags_of(row), round);
    }
  }

  IR_DEVICE void multiply(Block block) const {
    const iridium::Peers& peers = lane.peers();
    const iridium::TileGrid<Product::rows, Product::columns> tiles(a.rows, d.columns);
    Product product(block);
    for (int i = 0; i < peers.size(); ++i) {
      // Everybody begins with its own rows.
      const int place = (peers.rank() + i) % peers.size();
      const iridium::Matrix<const bf16> theirs = a.on(peers, place);
      const auto result = d.part(static_cast<std::size_t>(place) * a.rows, 0, a.rows, d.columns);
      for (auto t = static_cast<std::size_t>(block.index()); t < tiles.count();
           t += static_cast<std::size_t>(block.count())) {
        const auto corner = tiles.at(t);
        // Ended by that rank's `signal_all` above.
        if (!iridium::wait(block, lane, flags_of(corner.row) + place, round,
                           iridium::Compare::at_least, place))
          return;
        product.run(theirs, b, corner.row, corner.column);
        product.for_each_pair([&](std::size_t row, std::size_t column, float first, float second) {
          iridium::store_pair(result, corner.row + row, corner.column + column,
                              iridium::maximum(first, 0.0f), iridium::maximum(second, 0.0f));
        });
      }
    }
  }
};

// None of them is a multiple of a tile.
constexpr std::size_t rows = 150;  // of A, for each rank
constexpr std::size_t columns = 140;
constexpr std::size_t depth = 200;
constexpr std::uint32_t rounds = 3;
// The same on every rank. Blocks wait for other ranks' blocks, so all must run at the same time.
constexpr iridium::Grid grid = {.blocks = 4, .resident = true};

// Small whole numbers, of which bf16 holds each and float the sums of their products.
int x_value(int rank, std::uint32_t round, std::size_t row, std::size_t k) {
  return static_cast<int>((row * 5 + k * 3 + round) % 9) - 4 + rank % 2;
}
int b_value(int rank, std::size_t column, std::size_t k) {
  return static_cast<int>((column * 7 + k) % 7) - 3 + rank % 3;
}

template <class Value>
void set(iridium::Stream& stream, bf16* to, std::size_t height, Value value) {
  std::vector<bf16> elements;
  for (std::size_t row = 0; row < height; ++row)
    for (std::size_t k = 0; k < depth; ++k)
      elements.push_back(iridium::convert<bf16>(static_cast<float>(value(row, k))));
  stream.copy(to, elements.data(), elements.size() * sizeof(bf16));
  stream.synchronize();
}

bool is_right(const std::vector<float>& d, int me, int ranks, std::uint32_t round) {
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        int sum = 0;
        for (std::size_t k = 0; k < depth; ++k)
          sum += 2 * x_value(rank, round, row, k) * b_value(me, column, k);
        const auto expected = static_cast<float>(sum > 0 ? sum : 0);
        if (d[(static_cast<std::size_t>(rank) * rows + row) * columns + column] != expected)
          return false;
      }
  return true;
}

int run() {
  iridium::Context context;
  context.prepare<Layer>();
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  const auto ranks = static_cast<std::size_t>(team.size());
  auto x = context.allocate<bf16>(rows * depth);
  auto a = context.allocate<bf16>(rows * depth);
  auto b = context.allocate<bf16>(columns * depth);
  auto d = context.allocate<float>(ranks * rows * columns);
  constexpr std::size_t row_tiles = (rows + Layer::Product::rows - 1) / Layer::Product::rows;
  auto ready = context.allocate<std::uint32_t>(row_tiles * ranks);
  stream.fill(ready.data(), 0, ready.bytes());
  set(stream, b.data(), columns,
      [&](std::size_t column, std::size_t k) { return b_value(team.rank(), column, k); });
  context.barrier();  // nobody may signal before all have set their flags to zero

  bool right = true;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    set(stream, x.data(), rows,
        [&](std::size_t row, std::size_t k) { return x_value(team.rank(), round, row, k); });
    context.launch(stream, grid,
                   Layer{team.lane("layer"),
                         {x.data(), rows, depth, depth},
                         {a.data(), rows, depth, depth},
                         {b.data(), columns, depth, depth},
                         {d.data(), ranks * rows, columns, columns},
                         ready.data(),
                         round});
    // Nobody makes new rows before all have multiplied these.
    iridium::device_barrier(stream, team);
    std::vector<float> found(d.size());
    stream.copy(found.data(), d.data(), d.bytes());
    stream.synchronize();
    team.check();
    right = is_right(found, team.rank(), team.size(), round) && right;
  }

  std::printf("rank %d of %d, process %ld, backend %s: %u products of %zu x %zu x %zu: %s\n",
              context.rank(), context.size(), static_cast<long>(::getpid()),
              std::string(iridium::name(context.backend())).c_str(), rounds, ranks * rows, columns,
              depth, right ? "right" : "WRONG");
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

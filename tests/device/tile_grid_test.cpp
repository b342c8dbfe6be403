// Matrices as values, and the order in which their tiles are counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/matrix_kernels.h"
#include "iridium/device/matrix.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

using Corners = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr TileOrder all_orders[] = {TileOrder::row, TileOrder::column, TileOrder::swizzled};

struct GridSize {
  std::size_t rows;
  std::size_t columns;
};
/// In elements of tiles of 4 × 16: whole and ragged, narrow and low, one tile, none.
constexpr GridSize sizes[] = {{1, 1},    {4, 16},  {5, 16},  {4, 17},   {40, 160},
                              {41, 161}, {3, 200}, {67, 15}, {128, 64}, {0, 0},
                              {0, 16},   {4, 0},   {36, 33}, {100, 100}};

/// The corners as the documentation has them.
Corners documented(GridSize size, TileOrder order, std::size_t band) {
  const std::size_t down = (size.rows + grid_rows - 1) / grid_rows;
  const std::size_t across = (size.columns + grid_columns - 1) / grid_columns;
  Corners corners;
  const auto add = [&](std::size_t r, std::size_t c) {
    corners.emplace_back(r * grid_rows, c * grid_columns);
  };
  switch (order) {
    case TileOrder::row:
      for (std::size_t r = 0; r < down; ++r)
        for (std::size_t c = 0; c < across; ++c) add(r, c);
      break;
    case TileOrder::column:
      for (std::size_t c = 0; c < across; ++c)
        for (std::size_t r = 0; r < down; ++r) add(r, c);
      break;
    case TileOrder::swizzled:
      for (std::size_t first = 0; first < down; first += band)
        for (std::size_t c = 0; c < across; ++c)
          for (std::size_t r = first; r < std::min(first + band, down); ++r) add(r, c);
      break;
  }
  return corners;
}

Corners corners_of(const TestGrid& grid) {
  Corners corners;
  for (std::size_t i = 0; i < grid.count(); ++i)
    corners.emplace_back(grid.at(i).row, grid.at(i).column);
  return corners;
}

std::string describe(GridSize size, TileOrder order, std::size_t band) {
  return std::to_string(size.rows) + " by " + std::to_string(size.columns) + ", order " +
         std::to_string(static_cast<int>(order)) + ", band " + std::to_string(band);
}

TEST(TileGrids, HaveTheDocumentedOrder) {
  for (const GridSize size : sizes)
    for (const TileOrder order : all_orders)
      for (const std::size_t band : {1u, 2u, 3u, 8u, 10u, 1000u})
        EXPECT_EQ(corners_of(TestGrid(size.rows, size.columns, order, band)),
                  documented(size, order, band))
            << describe(size, order, band);
}

TEST(TileGrids, HaveEveryTileOnce) {
  for (const GridSize size : sizes)
    for (const TileOrder order : all_orders)
      for (const std::size_t band : {0u, 1u, 2u, 5u, 8u, 1000u}) {
        const Corners corners = corners_of(TestGrid(size.rows, size.columns, order, band));
        const std::set<std::pair<std::size_t, std::size_t>> all(corners.begin(), corners.end());
        EXPECT_EQ(all.size(), corners.size()) << describe(size, order, band);
        std::size_t covered = 0;
        for (const auto& [row, column] : all) {
          ASSERT_LT(row, size.rows) << describe(size, order, band);
          ASSERT_LT(column, size.columns) << describe(size, order, band);
          covered += std::min<std::size_t>(grid_rows, size.rows - row) *
                     std::min<std::size_t>(grid_columns, size.columns - column);
        }
        EXPECT_EQ(covered, size.rows * size.columns) << describe(size, order, band);
      }
}

TEST(TileGrids, AreByRowsUnlessTheyAreToldOtherwise) {
  EXPECT_EQ(corners_of(TestGrid(13, 50)), documented({13, 50}, TileOrder::row, 8));
  EXPECT_EQ(corners_of(TestGrid(77, 50, TileOrder::swizzled)),
            documented({77, 50}, TileOrder::swizzled, 8));
}

TEST(TileGrids, OfMatricesHaveTheirRowsAndColumns) {
  const Matrix<float> matrix = {nullptr, 41, 161, 1000};
  for (const TileOrder order : all_orders)
    EXPECT_EQ(corners_of(TestGrid(matrix, order, 3)), documented({41, 161}, order, 3));
  EXPECT_EQ(TestGrid(matrix).count(), 11u * 11u);
}

IR_SCENARIO(tile_grids_of_kernels) {
  constexpr std::size_t max_tiles = 300;
  Context context(job);
  Memory memory(context);
  Stream stream = context.make_stream();
  const auto corners = context.allocate<TestGrid::Corner>(max_tiles);
  const auto count = context.allocate<std::size_t>(1);
  for (const GridSize size : sizes)
    for (const TileOrder order : all_orders)
      for (const std::size_t band : {1u, 3u, 8u, 1000u}) {
        run_tile_grid(context, stream, size.rows, size.columns, order, band, corners.data(),
                      count.data());
        stream.synchronize();
        const auto found = memory.read(corners);
        const Corners expected = documented(size, order, band);
        require(expected.size() <= max_tiles && memory.read(count.data()) == expected.size(),
                describe(size, order, band) + ": another number of tiles");
        for (std::size_t i = 0; i < expected.size(); ++i)
          require(found[i].row == expected[i].first && found[i].column == expected[i].second,
                  describe(size, order, band) + ": tile " + std::to_string(i));
      }
}
TEST(TileGrids, AreTheSameInKernels) {
  expect_all_ok(run_ranks(RankKind::processes, "tile_grids_of_kernels", 1));
}

TEST(Matrices, HaveElementsAPitchApart) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const Matrix<int> matrix = {values.data(), 7, 10, 13};
  EXPECT_EQ(*matrix.at(0, 0), 0);
  EXPECT_EQ(*matrix.at(0, 9), 9);
  EXPECT_EQ(*matrix.at(6, 9), 6 * 13 + 9);
}

TEST(Matrices, HavePartsWithTheSamePitch) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const Matrix<int> matrix = {values.data(), 7, 10, 13};
  const Matrix<int> part = matrix.part(2, 3, 4, 5);
  EXPECT_EQ(part.rows, 4u);
  EXPECT_EQ(part.columns, 5u);
  EXPECT_EQ(part.pitch, 13u);
  for (std::size_t row = 0; row < part.rows; ++row)
    for (std::size_t column = 0; column < part.columns; ++column)
      EXPECT_EQ(part.at(row, column), matrix.at(row + 2, column + 3));
  const Matrix<int> inner = part.part(1, 1, 2, 2);
  EXPECT_EQ(inner.data, matrix.at(3, 4));
  EXPECT_EQ(inner.pitch, 13u);
}

TEST(Matrices, HaveCounterpartsAtMembers) {
  // Four segments of 1000 bytes, and the members 3, 0, 1 of them; this one is rank 0.
  std::vector<float> window(1000);
  const std::uint8_t ranks[] = {3, 0, 1};
  const Peers peers({.place = 1, .size = 3, .rank = 0, .segment_stride = 1000, .ranks = ranks});
  const Matrix<float> mine = {window.data() + 5, 3, 4, 6};
  for (const auto& [place, rank] : {std::pair{0, 3}, {1, 0}, {2, 1}}) {
    const Matrix<float> theirs = mine.on(peers, place);
    EXPECT_EQ(theirs.data, window.data() + 5 + rank * 250);
    EXPECT_EQ(theirs.rows, 3u);
    EXPECT_EQ(theirs.columns, 4u);
    EXPECT_EQ(theirs.pitch, 6u);
    EXPECT_EQ(mine.part(1, 2, 2, 2).on(peers, place).data, theirs.at(1, 2));
  }
  // By their distance where members are evenly spaced.
  const Peers even(
      {.place = 2, .size = 3, .rank = 0, .segment_stride = 1000, .place_stride = -1000});
  EXPECT_EQ(mine.on(even, 0).data, mine.data + 500);
  EXPECT_EQ(mine.on(even, 2).data, mine.data);
}

}  // namespace
}  // namespace iridium::test

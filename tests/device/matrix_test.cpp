// Two-dimensional tiles of matrices, of this rank and of peers, against plain loops.
#include "iridium/device/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "device/areas.h"
#include "device/block_modes.h"
#include "device/matrix_kernels.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::size_t heap_bytes = std::size_t{96} << 20;

/// Where a matrix lies in an array: `shift` elements from its beginning.
struct Shape {
  std::size_t rows;
  std::size_t columns;
  std::size_t pitch;
  std::size_t shift;
  std::size_t span() const { return shift + rows * pitch; }
};

/// What every member does: places are told by their distance from the caller's.
struct MatrixCase {
  MatrixCall call = MatrixCall::load;
  Cache cache = Cache::normal;
  Shape shape = {};
  std::size_t row = 0;
  std::size_t column = 0;
  int distance = 0;
  int place_step = 0;
  std::size_t row_step = 1;
  std::size_t rows = 1;

  bool stores() const { return call == MatrixCall::store || call == MatrixCall::store_to; }
  bool is_remote() const { return call != MatrixCall::load && call != MatrixCall::store; }
  GatheredRows gathered(const Team& team) const {
    return {row_step, row, rows, place_step, (team.rank() + distance) % team.size(), team.size()};
  }
};

std::string describe(const MatrixCase& one, std::size_t element_bytes) {
  std::ostringstream text;
  text << "call " << static_cast<int>(one.call) << ", hint " << static_cast<int>(one.cache) << ": "
       << one.shape.rows << " rows of " << one.shape.columns << " columns of " << element_bytes
       << " bytes, pitch " << one.shape.pitch << ", shifted by " << one.shape.shift << ", at row "
       << one.row << ", column " << one.column << " of place +" << one.distance << ", steps "
       << one.row_step << " and " << one.place_step;
  return text.str();
}

template <class T>
class MatrixCases {
 public:
  /// Collective over the world; the cases are the same on every rank.
  MatrixCases(Context& context, std::vector<MatrixCase> cases)
      : context_(context), cases_(std::move(cases)), areas_(context, largest_source(), sizes()) {}

  /// Runs all cases on all members at once. Collective over the world: other ranks only wait.
  void run(const Team& team) {
    areas_.reset();
    context_.barrier();
    Stream stream = context_.make_stream();
    for (std::size_t i = 0; i < cases_.size() && team.is_member(); ++i)
      launch(stream, team, cases_[i], areas_.area(i));
    stream.synchronize();
    if (team.is_member()) team.check();
    context_.barrier();
    areas_.read();
    for (std::size_t i = 0; i < cases_.size(); ++i)
      areas_.require_area(i, expected(team, cases_[i]), describe(cases_[i], sizeof(T)));
    context_.barrier();
  }

 private:
  void launch(StreamRef& stream, const Team& team, const MatrixCase& one, T* area) {
    // What is stored comes from the source, and what is loaded goes to the area.
    T* const source = const_cast<T*>(areas_.source());
    T* const data = (one.stores() ? area : source) + one.shape.shift;
    run_matrix<T>(context_, stream, team.lane("matrix"),
                  {.call = one.call,
                   .cache = one.cache,
                   .matrix = {data, one.shape.rows, one.shape.columns, one.shape.pitch},
                   .place = (team.rank() + one.distance) % team.size(),
                   .row = one.row,
                   .column = one.column,
                   .rows = one.gathered(team),
                   .elements = one.stores() ? source : area});
  }

  std::vector<T> expected(const Team& team, const MatrixCase& one) const {
    if (!team.is_member()) return {};
    return one.stores() ? expected_store(team, one) : expected_load(team, one);
  }

  static std::vector<T> expected_store(const Team& team, const MatrixCase& one) {
    const int size = team.size();
    const int writer =
        one.is_remote() ? (team.rank() + size - one.distance % size) % size : team.rank();
    const int rank = team.ranks()[static_cast<std::size_t>(writer)];
    std::vector<T> elements(one.shape.span(), Areas<T>::untouched());
    for (std::size_t r = 0; r < matrix_rows; ++r)
      for (std::size_t c = 0; c < matrix_columns; ++c)
        if (one.row + r < one.shape.rows && one.column + c < one.shape.columns)
          elements[one.shape.shift + (one.row + r) * one.shape.pitch + one.column + c] =
              source_element<T>(rank, r * matrix_columns + c);
    return elements;
  }

  static std::vector<T> expected_load(const Team& team, const MatrixCase& one) {
    const GatheredRows gathered = one.gathered(team);
    std::vector<T> elements(matrix_elements);
    for (std::size_t r = 0; r < matrix_rows; ++r)
      for (std::size_t c = 0; c < matrix_columns; ++c) {
        RemoteRow from = {
            one.is_remote() ? (team.rank() + one.distance) % team.size() : team.rank(),
            one.row + r};
        if (one.call == MatrixCall::gather) from = gathered(static_cast<int>(r));
        const int rank = team.ranks()[static_cast<std::size_t>(from.place)];
        const bool inside = from.row < one.shape.rows && one.column + c < one.shape.columns;
        elements[r * matrix_columns + c] =
            inside ? source_element<T>(
                         rank, one.shape.shift + from.row * one.shape.pitch + one.column + c)
                   : T();
      }
    return elements;
  }

  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    for (const MatrixCase& one : cases_)
      sizes.push_back(one.stores() ? one.shape.span() : matrix_elements);
    return sizes;
  }
  std::size_t largest_source() const {
    std::size_t elements = matrix_elements;
    for (const MatrixCase& one : cases_) elements = std::max(elements, one.shape.span());
    return elements;
  }

  Context& context_;
  std::vector<MatrixCase> cases_;
  Areas<T> areas_;
};

/// Pitches that are multiples of 16 bytes for all types, for some, and for none.
std::vector<Shape> shapes() {
  std::vector<Shape> shapes;
  for (const std::size_t shift : {0u, 1u, 16u}) {
    for (const std::size_t pitch : {75u, 76u, 77u, 80u, 96u})
      shapes.push_back({15, 75, pitch, shift});
    shapes.push_back({matrix_rows, matrix_columns, matrix_columns, shift});
    shapes.push_back({1, 40, 48, shift});
    shapes.push_back({1, 1, 1, shift});
    shapes.push_back({7, 3, 5, shift});
  }
  return shapes;
}

struct Position {
  std::size_t row;
  std::size_t column;
};
/// Inside, at both edges and the corner, in the middle of vectors, at the last element, and, if
/// `beyond`, where no element of the matrix is.
std::vector<Position> positions(const Shape& shape, bool beyond) {
  std::vector<Position> all = {{0, 0},
                               {3, 16},
                               {2, 1},
                               {1, 48},
                               {0, 64},
                               {shape.rows - 3, 0},
                               {shape.rows - 2, shape.columns - 15},
                               {shape.rows - 1, shape.columns - 1}};
  if (beyond) {
    all.push_back({shape.rows, 0});
    all.push_back({0, shape.columns});
    all.push_back({shape.rows + 5, shape.columns + 50});
  }
  std::erase_if(all, [&](const Position& at) {
    return !beyond && (at.row >= shape.rows || at.column >= shape.columns);
  });
  // Differences of small shapes have wrapped around.
  std::erase_if(all, [](const Position& at) { return at.row > 1000 || at.column > 1000; });
  return all;
}

std::vector<MatrixCase> matrix_cases(bool beyond) {
  std::vector<MatrixCase> cases;
  for (const MatrixCall call : {MatrixCall::load, MatrixCall::store, MatrixCall::load_from,
                                MatrixCall::store_to, MatrixCall::gather})
    for (const Cache cache : {Cache::normal, Cache::streaming, Cache::shared})
      for (const Shape& shape : shapes())
        for (const Position& at : positions(shape, beyond)) {
          const std::size_t index = cases.size();
          MatrixCase one = {
              .call = call, .cache = cache, .shape = shape, .row = at.row, .column = at.column};
          one.distance = static_cast<int>(index % 8);
          one.place_step = static_cast<int>(index / 8 % 4);
          one.row_step = index % 5;
          one.rows = shape.rows + (beyond ? 2 : 0);
          cases.push_back(one);
        }
  return cases;
}

template <class T>
void check_matrices(Context& context, bool beyond) {
  MatrixCases<T> cases(context, thinned(matrix_cases(beyond)));
  cases.run(context.world());
  if (context.size() > 3) cases.run(context.make_team({3, 0, 1}));
}

class MatrixTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MatrixTest, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(matrix_tiles) {
  Context context(job, {.heap_bytes = heap_bytes});
  check_matrices<std::uint8_t>(context, true);
  check_matrices<fp16>(context, true);
  check_matrices<float>(context, true);
  check_matrices<double>(context, true);
}
TEST_P(MatrixTest, TilesMoveBetweenMembersAndNothingElseChanges) {
  expect_all_ok(run_ranks(GetParam().kind, "matrix_tiles", GetParam().size));
}

/// Numbers that all types hold exactly, others on every rank.
template <class T>
T small_number(int rank, std::size_t index) {
  return convert<T>(
      static_cast<std::int32_t>((index * 37 + static_cast<std::size_t>(rank) * 101) % 1999) - 1000);
}

struct CopyCase {
  Shape from;
  std::size_t to_pitch;
  TileOrder order;
  std::size_t band;
  int blocks;
  int distance;
};

std::vector<CopyCase> copy_cases() {
  std::vector<CopyCase> cases;
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {4, 16}, {13, 50}, {40, 33}, {23, 128}})
    for (const TileOrder order : {TileOrder::row, TileOrder::column, TileOrder::swizzled})
      for (const std::size_t band : {1u, 3u, 100u})
        for (const std::size_t extra : {0u, 1u}) {
          const std::size_t index = cases.size();
          cases.push_back({{rows, columns, columns + extra, index % 2},
                           (columns + 15) / 16 * 16 + index / 2 % 2,
                           order,
                           band,
                           static_cast<int>(index % 4) + 1,
                           static_cast<int>(index % 8)});
        }
  return cases;
}

/// Whole matrices, cut into tiles that the blocks share.
template <class From, class To>
void check_copies(Context& context) {
  constexpr std::size_t max_tiles = 200;
  const std::vector<CopyCase> cases = copy_cases();
  std::vector<std::size_t> sizes;
  std::size_t source_elements = 1;
  for (const CopyCase& one : cases) {
    sizes.push_back(one.from.rows * one.to_pitch);
    source_elements = std::max(source_elements, one.from.span());
  }
  Areas<To> areas(context, 1, sizes);
  const auto source = context.allocate<From>(source_elements);
  const auto visits = context.allocate<std::uint32_t>(max_tiles * cases.size());
  Memory memory(context);
  std::vector<From> values(source_elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = small_number<From>(context.rank(), i);
  memory.write(source, values);
  memory.write(visits, std::vector<std::uint32_t>(visits.size()));
  areas.reset();
  context.barrier();

  const Team team = context.world();
  Stream stream = context.make_stream();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CopyCase& one = cases[i];
    run_converted_copy<From, To>(
        context, stream, team.lane("copy"),
        {.from = {source.data() + one.from.shift, one.from.rows, one.from.columns, one.from.pitch},
         .to = {areas.area(i), one.from.rows, one.from.columns, one.to_pitch},
         .place = (team.rank() + one.distance) % team.size(),
         .order = one.order,
         .band = one.band,
         .blocks = one.blocks,
         .visits = visits.data() + i * max_tiles});
  }
  stream.synchronize();
  team.check();
  context.barrier();

  areas.read();
  const auto visited = memory.read(visits);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CopyCase& one = cases[i];
    const int writer = (team.rank() + team.size() - one.distance % team.size()) % team.size();
    std::vector<To> expected(one.from.rows * one.to_pitch, Areas<To>::untouched());
    for (std::size_t row = 0; row < one.from.rows; ++row)
      for (std::size_t column = 0; column < one.from.columns; ++column)
        expected[row * one.to_pitch + column] =
            convert<To>(small_number<From>(writer, one.from.shift + row * one.from.pitch + column));
    const std::string what = "copy " + std::to_string(i) + " of " + std::to_string(sizeof(From)) +
                             " to " + std::to_string(sizeof(To)) + " bytes";
    areas.require_area(i, expected, what);
    const std::size_t tiles = TestGrid(one.from.rows, one.from.columns).count();
    for (std::size_t tile = 0; tile < max_tiles; ++tile)
      require(visited[i * max_tiles + tile] == (tile < tiles ? 1 : 0),
              what + ": tile " + std::to_string(tile) + " was visited " +
                  std::to_string(visited[i * max_tiles + tile]) + " times");
  }
  context.barrier();
}

IR_SCENARIO(matrix_copies) {
  Context context(job, {.heap_bytes = heap_bytes});
  check_copies<float, float>(context);
  check_copies<fp16, float>(context);
  check_copies<float, fp16>(context);
}
TEST_P(MatrixTest, WholeMatricesAreCopiedAndConvertedTileByTileInAnyOrder) {
  expect_all_ok(run_ranks(GetParam().kind, "matrix_copies", GetParam().size));
}

class MatrixModes : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MatrixModes, testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(matrix_checked) {
  Context context(job, {.heap_bytes = heap_bytes, .checked = true});
  check_matrices<std::uint8_t>(context, false);
  check_matrices<double>(context, false);
  check_copies<float, fp16>(context);
}
TEST_P(MatrixModes, CheckedModeLetsRightAccessesPass) {
  expect_all_ok(run_ranks(GetParam().kind, "matrix_checked", GetParam().size));
}

IR_SCENARIO(matrices_under_drawn_schedules) {
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .heap_bytes = heap_bytes,
                          .checked = mode.seed == 2,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "matrix" + name(mode)});
    check_matrices<float>(context, mode.seed != 2);
    check_copies<float, fp16>(context);
  }
}
TEST_P(MatrixModes, TilesAreRightUnderDrawnSchedulesAndInSplitMode) {
  expect_all_ok(run_ranks(GetParam().kind, "matrices_under_drawn_schedules", GetParam().size));
}

}  // namespace
}  // namespace iridium::test

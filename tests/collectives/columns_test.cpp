// All-gather and reduce-scatter along the columns of matrices with gaps between their rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "collectives/calls.h"
#include "collectives/reference.h"
#include "device/block_modes.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

enum class Kind { gather, scatter };

struct ColumnsCase {
  Kind kind = Kind::gather;
  std::size_t rows = 1;
  std::size_t columns = 1;  ///< of a member's part
  std::size_t part_gap = 0;
  std::size_t joined_gap = 0;
  std::string algorithm = "automatic";
  bool symmetric = false;
  bool in_place = false;
  int blocks = 0;
  int tile = 0;
  ReduceOp op = ReduceOp::sum;
};

std::string describe(const ColumnsCase& what) {
  return fmt::format(
      "{} of {} rows and {} columns, gaps {} and {}, {}, {}{}, {} blocks, tile {}, {}",
      what.kind == Kind::gather ? "all_gather" : "reduce_scatter", what.rows, what.columns,
      what.part_gap, what.joined_gap, what.algorithm, what.symmetric ? "symmetric" : "plain",
      what.in_place ? " in place" : "", what.blocks, what.tile, name(what.op));
}

/// Elements of a member's matrix, gaps included.
template <class T>
std::vector<T> drawn(std::size_t count, std::uint64_t seed, int place) {
  std::mt19937_64 engine(seed * 100 + static_cast<std::uint64_t>(place));
  std::vector<T> elements(count);
  for (T& each : elements) {
    if constexpr (IntegerNumber<T>)
      each = static_cast<T>(engine());
    else
      each = convert<T>(static_cast<double>(engine() >> 40) * 0x1p-22 - 2.0);
  }
  return elements;
}

/// Runs cases of one type on two arrays that are large enough for all.
template <class T>
class ColumnsRun {
 public:
  ColumnsRun(Context& context, const Team& team, std::size_t elements)
      : team_(team),
        stream_(context.make_stream()),
        part_(context.allocate<T>(elements)),
        joined_(context.allocate<T>(elements * static_cast<std::size_t>(team.size()))) {}

  void run(const ColumnsCase& what, std::uint64_t seed) {
    const auto members = static_cast<std::size_t>(team_.size());
    const auto me = static_cast<std::size_t>(team_.rank());
    const std::size_t joined_pitch = members * what.columns + what.joined_gap;
    const std::size_t part_pitch = what.in_place ? joined_pitch : what.columns + what.part_gap;
    const std::size_t part_size = what.rows * part_pitch;
    const std::size_t joined_size = what.rows * joined_pitch;
    const auto part_of = [&](int place) { return drawn<T>(part_size, seed, place); };
    const auto joined_of = [&](int place) { return drawn<T>(joined_size, seed + 1, place); };

    // Where the elements lie that are this member's part of the joined matrix.
    const std::size_t own = me * what.columns;
    const bool gathers = what.kind == Kind::gather;
    std::vector<T> joined = joined_of(team_.rank());
    const std::vector<T> part = part_of(team_.rank());
    if (what.in_place && gathers)
      for_each(what, [&](std::size_t row, std::size_t column) {
        joined[row * joined_pitch + own + column] = part[row * part_pitch + column];
      });
    write(joined_, joined);
    write(part_, part);

    launch(what, part_pitch, joined_pitch);

    std::vector<T> expected_joined = joined;
    std::vector<T> expected_part = part;
    if (gathers) {
      for (std::size_t s = 0; s < members; ++s) {
        const std::vector<T> theirs = part_of(static_cast<int>(s));
        for_each(what, [&](std::size_t row, std::size_t column) {
          expected_joined[row * joined_pitch + s * what.columns + column] =
              theirs[row * part_pitch + column];
        });
      }
    } else {
      std::vector<std::vector<T>> all;
      for (int place = 0; place < team_.size(); ++place) all.push_back(joined_of(place));
      for_each(what, [&](std::size_t row, std::size_t column) {
        std::vector<T> elements;
        for (const std::vector<T>& each : all)
          elements.push_back(each[row * joined_pitch + own + column]);
        const T result = reduced<T>(what.op, elements);
        (what.in_place ? expected_joined[row * joined_pitch + own + column]
                       : expected_part[row * part_pitch + column]) = result;
      });
    }
    compare(what, "the joined matrix", expected_joined, read(joined_, joined_size));
    compare(what, "the part", expected_part, read(part_, part_size));
  }

 private:
  template <class Use>
  static void for_each(const ColumnsCase& what, Use use) {
    for (std::size_t row = 0; row < what.rows; ++row)
      for (std::size_t column = 0; column < what.columns; ++column) use(row, column);
  }

  void launch(const ColumnsCase& what, std::size_t part_pitch, std::size_t joined_pitch) {
    const std::size_t columns = what.columns * static_cast<std::size_t>(team_.size());
    const AllGatherOptions gather = {.algorithm = what.kind == Kind::gather
                                                      ? parse_all_gather_algorithm(what.algorithm)
                                                      : AllGatherAlgorithm::automatic,
                                     .blocks = what.blocks,
                                     .tile = what.tile};
    const ReduceScatterOptions scatter = {.op = what.op, .blocks = what.blocks, .tile = what.tile};
    if (what.symmetric) {
      const SymmetricMatrix<T> part = {part_, what.rows, what.columns, part_pitch};
      const SymmetricMatrix<T> joined = {joined_, what.rows, columns, joined_pitch};
      if (what.kind == Kind::gather)
        return all_gather_columns(stream_, team_, joined, part, gather);
      return reduce_scatter_columns(stream_, team_, part, joined, scatter);
    }
    const Matrix<T> joined = {joined_.data(), what.rows, columns, joined_pitch};
    const Matrix<T> part =
        what.in_place ? joined.part(0, static_cast<std::size_t>(team_.rank()) * what.columns,
                                    what.rows, what.columns)
                      : Matrix<T>{part_.data(), what.rows, what.columns, part_pitch};
    if (what.kind == Kind::gather) return all_gather_columns(stream_, team_, joined, part, gather);
    return reduce_scatter_columns(stream_, team_, part, joined, scatter);
  }

  void write(const SymmetricArray<T>& array, const std::vector<T>& elements) {
    stream_.copy(array.data(), elements.data(), elements.size() * sizeof(T));
    stream_.synchronize();
  }
  std::vector<T> read(const SymmetricArray<T>& array, std::size_t count) {
    std::vector<T> elements(count);
    stream_.copy(elements.data(), array.data(), count * sizeof(T));
    stream_.synchronize();
    team_.check();
    // Peers may not write the next case's elements yet.
    team_.barrier();
    return elements;
  }

  static void compare(const ColumnsCase& what, const char* which, const std::vector<T>& expected,
                      const std::vector<T>& found) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!same_bits(expected[i], found[i]))
        throw std::runtime_error(
            fmt::format("{}: element {} of {} is wrong", describe(what), i, which));
  }

  Team team_;
  Stream stream_;
  SymmetricArray<T> part_;
  SymmetricArray<T> joined_;
};

/// Around a vector, a piece of each tile shape, and several rounds.
template <class T>
std::vector<ColumnsCase> cases() {
  constexpr std::size_t piece = 4096 / sizeof(T);
  std::vector<ColumnsCase> list;
  for (const Kind kind : {Kind::gather, Kind::scatter})
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{0, 3},
                                        {3, 0},
                                        {1, 1},
                                        {5, 3},
                                        {33, 16},
                                        {2, piece - 1},
                                        {3, piece},
                                        {2, piece + 1},
                                        {3, 4 * piece + 1}})
      for (const auto& [part_gap, joined_gap] :
           {std::pair<std::size_t, std::size_t>{0, 0}, {16, 32}, {1, 3}})
        for (const int tile : {1, 2, 4})
          for (const bool symmetric : {false, true})
            for (const std::string& algorithm :
                 kind == Kind::gather ? std::vector<std::string>{"automatic", "push", "pull"}
                                      : std::vector<std::string>{"automatic"})
              list.push_back({.kind = kind,
                              .rows = rows,
                              .columns = columns,
                              .part_gap = part_gap,
                              .joined_gap = joined_gap,
                              .algorithm = algorithm,
                              .symmetric = symmetric,
                              .in_place = !symmetric && tile == 2,
                              .blocks = tile == 4 ? 0 : tile + 1,
                              .tile = tile,
                              .op = reduce_ops()[list.size() % reduce_ops().size()]});
  return list;
}

/// One of `share` cases, unless all are asked for; others for another seed.
template <class T>
void run_columns(Context& context, std::uint64_t seed, std::uint64_t share = 4) {
  const Team narrow = context.make_team(context.world().ranks(), narrow_lane);
  // The widest matrix, in place: a row of the joined one for each of its rows.
  const std::size_t elements = 33 * (4 * 4096 / sizeof(T) + 64) / 8;
  ColumnsRun<T> wide_run(context, context.world(), elements * 8);
  ColumnsRun<T> narrow_run(context, narrow, elements * 8);
  Sample sample(context.size());
  std::uint64_t number = 0;
  for (const ColumnsCase& what : cases<T>()) {
    const bool is_ours = ++number % share == seed % share;
    if (!is_full_run() && (!is_ours || !sample.takes_next())) continue;
    wide_run.run(what, seed + 2 * number);
    narrow_run.run(what, seed + 2 * number);
  }
}

IR_SCENARIO(columns) {
  Context context(job);
  run_columns<std::uint8_t>(context, 1);
  run_columns<bf16>(context, 2);
  run_columns<float>(context, 3);
  run_columns<std::int64_t>(context, 4);
}

IR_SCENARIO(columns_under_drawn_schedules) {
  std::uint64_t seed = 0;
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "drawn" + name(mode)});
    run_columns<bf16>(context, ++seed, 127);
  }
}

class Columns : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Columns,
                         testing::Values(Ranks{RankKind::threads, 1}, Ranks{RankKind::threads, 3},
                                         Ranks{RankKind::processes, 2},
                                         Ranks{RankKind::processes, 5}),
                         [](const auto& test) { return name(test.param); });

TEST_P(Columns, AreJoinedAndSplitAsPlainCodeDoes) {
  expect_all_ok(run_ranks(GetParam().kind, "columns", GetParam().size));
}

TEST(ColumnsUnderDrawnSchedules, AreRight) {
  expect_all_ok(run_ranks(RankKind::threads, "columns_under_drawn_schedules", 3));
}

IR_SCENARIO(refused_columns) {
  Context context(job);
  const Team team = context.world();
  Stream stream = context.make_stream();
  const SymmetricArray<float> a = context.allocate<float>(1000);
  const SymmetricArray<float> b = context.allocate<float>(1000);
  float* const in = a.data();
  float* const out = b.data();
  const auto refused = [&](const std::vector<std::string>& words, const Matrix<float>& to,
                           const Matrix<float>& from, const AllGatherOptions& options = {}) {
    const std::string message = require_error(Errc::invalid_argument, {}, [&] {
                                  all_gather_columns(stream, team, to, from, options);
                                }).what();
    for (const std::string& word : words)
      require(message.find(word) != std::string::npos, fmt::format("{}\nlacks {}", message, word));
  };
  refused({"out has 4 rows and 6 columns for 2 members", "in has 3 rows and 3 columns"},
          {out, 4, 6, 6}, {in, 3, 3, 3});
  refused({"7 columns", "3 columns"}, {out, 4, 7, 7}, {in, 4, 3, 3});
  refused({"out has a pitch of 5 elements and 6 columns"}, {out, 4, 6, 5}, {in, 4, 3, 3});
  refused({"in has a pitch of 2 elements and 3 columns"}, {out, 4, 6, 6}, {in, 4, 3, 2});
  refused({"in is a null pointer"}, {out, 4, 6, 6}, {nullptr, 4, 3, 3});
  refused({"overlap"}, {out, 4, 6, 6}, {out + 1, 4, 3, 3});
  refused({"overlap"}, {out, 4, 6, 8}, {out + 5, 4, 3, 8});
  refused({"packet does not work along columns"}, {out, 4, 6, 6}, {in, 4, 3, 3},
          {.algorithm = AllGatherAlgorithm::packet});
  refused({"over the limit"}, {out, ~std::size_t{0} / 8, 6, 6}, {in, ~std::size_t{0} / 8, 3, 3});
  refused({"9999 blocks"}, {out, 4, 6, 6}, {in, 4, 3, 3}, {.blocks = 9999});
  refused({"a tile of 3"}, {out, 4, 6, 6}, {in, 4, 3, 3}, {.tile = 3});

  // Matrices that only lie between each other's rows are none of that, though they touch.
  all_gather_columns(stream, team, Matrix<float>{out, 4, 6, 16}, {out + 6, 4, 3, 16});
  all_gather_columns(stream, team, Matrix<float>{out + 3, 4, 6, 16}, {out, 4, 3, 16});
  const auto scatter = [&](const SymmetricMatrix<float>& to, const SymmetricMatrix<float>& from) {
    reduce_scatter_columns(stream, team, to, from);
  };
  scatter({b, 4, 3, 3}, {a, 4, 6, 6});
  const std::string pushed =
      require_error(Errc::invalid_argument, {}, [&] {
        reduce_scatter_columns(stream, team, SymmetricMatrix<float>{b, 4, 3, 3}, {a, 4, 6, 6},
                               {.algorithm = ReduceScatterAlgorithm::push});
      }).what();
  require(pushed.find("push does not work along columns") != std::string::npos, pushed);
  const std::string outside = require_error(Errc::invalid_argument, {}, [&] {
                                scatter({b, 4, 3, 3, 990}, {a, 4, 6, 6});
                              }).what();
  require(
      outside.find("first element at 990 needs 12 elements from there on; its array has 1000") !=
          std::string::npos,
      outside);
  stream.synchronize();
  team.check();
}

TEST(ColumnsRefused, AreThoseThatCannotBe) {
  expect_all_ok(run_ranks(RankKind::processes, "refused_columns", 2));
}

}  // namespace
}  // namespace iridium::test

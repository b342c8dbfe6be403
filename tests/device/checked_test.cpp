// Checked mode: accesses that go astray fail their team, and do not take place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "device/block_modes.h"
#include "device/matrix_kernels.h"
#include "device/remote_memory_kernels.h"
#include "iridium/remote_memory.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr int ranks = 4;
/// Unevenly spaced, so that places are looked up; rank 2 is no member.
const std::vector<int> members = {3, 0, 1};
/// The member that goes wrong.
constexpr int offender = 1;
const TeamOptions small_lane = {
    .max_blocks = 2, .scratch_bytes = 4096, .packet_bytes = 1024, .name = {}};

std::string hex(const void* address) {
  return fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(address));
}

/// An access and what its error says.
struct BadAccess {
  std::string what;
  std::function<void(StreamRef&, const Lane&)> launch;
  std::vector<std::string> words;
  bool loads = false;  ///< zeros to this rank's memory
};

/// A rank with an array that is not to change, but for the part that loads go to.
class CheckedRank {
 public:
  static constexpr std::size_t count = 4096;
  static constexpr std::size_t loaded = 3072;  ///< where loads go to

  CheckedRank(const Job& job, ContextOptions options = {})
      : context(job, with_checks(std::move(options))),
        memory(context),
        stream(context.make_stream()),
        data(context.allocate<float>(count)) {
    for (std::size_t i = 0; i < count; ++i)
      start.push_back(static_cast<float>(job.rank * 10'000) + static_cast<float>(i) + 1);
    memory.write(data, start);
    context.barrier();
  }

  Team make_team() { return context.make_team(members, small_lane); }

  float* segment_begin() const { return reinterpret_cast<float*>(context.segment()); }
  float* segment_end() const {
    return reinterpret_cast<float*>(context.segment() + context.heap_bytes());
  }
  std::string segment_range() const {
    return "segment is " + hex(segment_begin()) + " to " + hex(segment_end());
  }

  /// The last bytes of this rank's segment: what an access that straddles its end would change.
  std::vector<float> last_of_segment() {
    std::vector<float> last(16);
    stream.copy(last.data(), segment_end() - last.size(), last.size() * sizeof(float));
    stream.synchronize();
    return last;
  }

  void require_untouched(const BadAccess& access) {
    const auto found = memory.read(data);
    for (std::size_t i = 0; i < loaded; ++i)
      require(found[i] == start[i], access.what + ": element " + std::to_string(i) + " changed");
    const bool zeros = access.loads && context.rank() == members[offender];
    for (std::size_t i = loaded; i < count; ++i)
      require(found[i] == start[i] || (zeros && found[i] == 0),
              access.what + ": element " + std::to_string(i) + " was loaded");
    memory.write(data, start);
  }

  Context context;
  Memory memory;
  Stream stream;
  SymmetricArray<float> data;
  std::vector<float> start;

 private:
  static ContextOptions with_checks(ContextOptions options) {
    options.checked = true;
    return options;
  }
};

template <class T = float>
RemoteWork<T> remote_work(const CheckedRank& rank, RemoteCall call, std::size_t count) {
  return {.call = call,
          .to = reinterpret_cast<T*>(rank.data.data() + CheckedRank::loaded),
          .from = reinterpret_cast<T*>(rank.data.data()),
          .target = 0,
          .source = 2,
          .count = count};
}

bool is_load(RemoteCall call) {
  return call == RemoteCall::load || call == RemoteCall::load_tiles;
}
/// Whether a peer's counterpart of `to` is what the call writes.
bool writes_peer(RemoteCall call) {
  return call == RemoteCall::store || call == RemoteCall::store_tiles || call == RemoteCall::put ||
         call == RemoteCall::copy || call == RemoteCall::update;
}
bool reads_peer(RemoteCall call) {
  return is_load(call) || call == RemoteCall::get || call == RemoteCall::copy;
}

constexpr RemoteCall all_calls[] = {
    RemoteCall::load, RemoteCall::store, RemoteCall::load_tiles, RemoteCall::store_tiles,
    RemoteCall::copy, RemoteCall::put,   RemoteCall::get};

template <class T>
void add_remote(std::vector<BadAccess>& all, const CheckedRank& rank, const std::string& what,
                const RemoteWork<T>& work, std::vector<std::string> words) {
  all.push_back({what + ", call " + std::to_string(static_cast<int>(work.call)),
                 [&rank, work](StreamRef& stream, const Lane& lane) {
                   run_remote(rank.context, stream, lane, work);
                 },
                 std::move(words), is_load(work.call)});
}

template <class T>
void add_outside(std::vector<BadAccess>& all, const CheckedRank& rank, RemoteCall call,
                 const std::string& what, T* address, std::size_t count) {
  const std::vector<std::string> words = {
      std::to_string(count * sizeof(T)) + " bytes at " + hex(address), rank.segment_range()};
  auto work = remote_work<T>(rank, call, count);
  if (writes_peer(call)) {
    work.to = address;
    add_remote(all, rank, "to " + what, work, words);
  }
  work = remote_work<T>(rank, call, count);
  if (reads_peer(call)) {
    work.from = address;
    add_remote(all, rank, "from " + what, work, words);
  }
}

/// Before, after and across the ends of the segment, and elsewhere.
std::vector<BadAccess> outside_the_segment(const CheckedRank& rank) {
  std::vector<BadAccess> all;
  auto* const end = reinterpret_cast<std::uint8_t*>(rank.segment_end());
  for (const RemoteCall call : all_calls) {
    const bool single = call == RemoteCall::load || call == RemoteCall::store;
    const std::size_t count = single ? 1 : 4;
    const std::vector<std::pair<std::string, float*>> places = {
        {"before the segment", rank.segment_begin() - 4},
        {"after the segment", rank.segment_end()},
        {"far after the segment", rank.segment_end() + (std::size_t{1} << 40)},
        {"across the end", reinterpret_cast<float*>(end - (single ? 2 : 8))},
        {"across the beginning", rank.segment_begin() - (single ? 1 : 2)},
        {"at nothing", nullptr}};
    for (const auto& [what, address] : places) add_outside(all, rank, call, what, address, count);
    add_outside(all, rank, call, "one byte beyond the end", end + 1 - count, count);
  }
  // Into the segment, but beyond its end.
  RemoteWork<float> work = remote_work(rank, RemoteCall::put, std::size_t{1} << 40);
  work.to = rank.data.data();
  add_remote(all, rank, "more than the segment", work,
             {std::to_string(std::size_t{1} << 42) + " bytes", rank.segment_range()});
  return all;
}

std::vector<BadAccess> at_no_place(const CheckedRank& rank, const std::vector<int>& places) {
  std::vector<BadAccess> all;
  for (const RemoteCall call : all_calls)
    for (const int place : places) {
      const std::vector<std::string> words = {"place " + std::to_string(place) + " ",
                                              "the team has 3 members"};
      RemoteWork<float> work = remote_work(rank, call, 1);
      work.target = place;
      if (writes_peer(call)) add_remote(all, rank, "to no place", work, words);
      work = remote_work(rank, call, 1);
      work.source = place;
      if (reads_peer(call)) add_remote(all, rank, "from no place", work, words);
    }
  return all;
}

MatrixWork<float> matrix_work(const CheckedRank& rank, MatrixCall call) {
  return {.call = call,
          .matrix = {rank.data.data(), 15, 75, 80},
          .place = 2,
          .rows = {.rows = 15, .first_place = 2, .members = 3},
          .elements = rank.data.data() + CheckedRank::loaded};
}

void add_matrix(std::vector<BadAccess>& all, const CheckedRank& rank, const std::string& what,
                const MatrixWork<float>& work, std::vector<std::string> words) {
  all.push_back({what + ", matrix call " + std::to_string(static_cast<int>(work.call)),
                 [&rank, work](StreamRef& stream, const Lane& lane) {
                   run_matrix(rank.context, stream, lane, work);
                 },
                 std::move(words), work.call != MatrixCall::store_to});
}

std::vector<BadAccess> bad_matrices(const CheckedRank& rank, const std::vector<int>& places) {
  std::vector<BadAccess> all;
  for (const MatrixCall call : {MatrixCall::load_from, MatrixCall::store_to, MatrixCall::gather}) {
    MatrixWork<float> work = matrix_work(rank, call);
    work.matrix.pitch = 74;
    add_matrix(all, rank, "a narrow pitch", work, {"pitch of 74 elements", "75 columns"});

    work = matrix_work(rank, call);
    work.row = 15;
    work.rows.first_row = 15;
    work.rows.rows = 100;
    work.rows.row_step = 0;
    add_matrix(all, rank, "below the matrix", work, {"row 15, column 0", "15 rows and 75 columns"});

    work = matrix_work(rank, call);
    work.column = 75;
    add_matrix(all, rank, "right of the matrix", work, {"column 75", "15 rows and 75 columns"});

    work = matrix_work(rank, call);
    work.matrix.rows = 0;
    add_matrix(all, rank, "a matrix without rows", work, {"0 rows and 75 columns"});

    work = matrix_work(rank, call);
    work.matrix.data = rank.segment_end() - 14 * 80 - 74;
    add_matrix(
        all, rank, "across the end", work,
        {std::to_string((14 * 80 + 75) * sizeof(float)) + " bytes at " + hex(work.matrix.data),
         rank.segment_range()});

    for (const int place : places) {
      work = matrix_work(rank, call);
      work.place = place;
      work.rows.first_place = place;
      work.rows.members = std::numeric_limits<int>::max();
      add_matrix(all, rank, "no place", work,
                 {"place " + std::to_string(place) + " ", "the team has 3 members"});
    }
  }
  return all;
}

void require_names(const Error& error, const std::vector<std::string>& words,
                   const std::string& what) {
  for (const std::string& word : words)
    require(std::string(error.what()).find(word) != std::string::npos,
            fmt::format("{}: the error lacks \"{}\": {}", what, word, error.what()));
}

/// A team that does what it should: every member writes to the next one, or adds.
void require_works(CheckedRank& rank, const Team& team, RemoteCall call = RemoteCall::put) {
  rank.memory.write(rank.data, rank.start);
  rank.context.barrier();
  if (team.is_member()) {
    RemoteWork<float> work = remote_work(rank, call, 1000);
    work.target = (team.rank() + 1) % team.size();
    run_remote(rank.context, rank.stream, team.lane("right"), work);
    rank.stream.synchronize();
    team.check();
  }
  rank.context.barrier();
  if (team.is_member()) {
    const int before = members[static_cast<std::size_t>((team.rank() + 2) % 3)];
    const auto found = rank.memory.read(rank.data);
    for (std::size_t i = 0; i < 1000; ++i) {
      const float added = call == RemoteCall::update ? rank.start[CheckedRank::loaded + i] : 0;
      require(found[CheckedRank::loaded + i] ==
                  added + static_cast<float>(before * 10'000) + static_cast<float>(i) + 1,
              "a new team of the same ranks works");
    }
  }
  rank.memory.write(rank.data, rank.start);
  rank.context.barrier();
}

/// As the offender has them: addresses are others on every rank.
std::vector<std::string> words_of_offender(Context& context, const std::vector<std::string>& mine) {
  std::array<char, 400> text = {};
  std::string lines;
  for (const std::string& word : mine) lines += word + "\n";
  require(lines.size() < text.size(), "the words are few");
  std::copy(lines.begin(), lines.end(), text.begin());
  text = context.world().broadcast(text, members[offender]);
  std::vector<std::string> words;
  std::istringstream stream(text.data());
  while (std::getline(stream, lines)) words.push_back(lines);
  return words;
}

/// The members' team fails by the offender's access, tells all members, and touches nothing.
void require_fault(CheckedRank& rank, const BadAccess& access, Errc code = Errc::invalid_argument) {
  const Team team = rank.make_team();
  const std::vector<float> last = rank.last_of_segment();
  const std::vector<std::string> words = words_of_offender(rank.context, access.words);
  const int world_rank = members[offender];
  const auto require_error_of_team = [&](const std::function<void()>& call) {
    const Error error = require_error(code, {world_rank}, call);
    require_names(error, words, access.what);
    require_names(error,
                  {"in bad access (block 0, step 0 of " + team.name() + ")",
                   "as rank " + std::to_string(world_rank) + " saw it"},
                  access.what);
  };
  try {
    if (team.is_member() && team.rank() == offender) {
      access.launch(rank.stream, team.lane("bad access"));
      rank.stream.synchronize();
      require_error_of_team([&] { team.check(); });
    }
    rank.context.barrier();
    if (team.is_member()) {
      require_error_of_team([&] { team.check(); });
      require_error_of_team([&] { team.lane("another kernel"); });
      require_error_of_team([&] { put(rank.stream, team, rank.data.data(), &last[0], 4, 0); });
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(access.what + ": " + error.what());
  }
  rank.require_untouched(access);
  require(rank.last_of_segment() == last, access.what + ": the segment's end changed");
  rank.context.barrier();
}

void require_faults(CheckedRank& rank, const std::vector<BadAccess>& accesses) {
  for (const BadAccess& access : accesses) require_fault(rank, access);
  require_works(rank, rank.make_team());
}

class CheckedTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CheckedTest, testing::ValuesIn(both_kinds(ranks)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(checked_segments) {
  CheckedRank rank(job);
  require_faults(rank, outside_the_segment(rank));
}
TEST_P(CheckedTest, AccessesOutsideTheSegmentFailTheTeamAndTouchNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_segments", ranks));
}

IR_SCENARIO(checked_places) {
  CheckedRank rank(job);
  require_faults(rank, at_no_place(rank, {-1, 3, 63, 1000}));
}
TEST_P(CheckedTest, PlacesThatDoNotExistFailTheTeamAndTouchNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_places", ranks));
}

// Apart, and not with ranks as threads: where such a place is looked up, its process dies.
IR_SCENARIO(checked_updates) {
  CheckedRank rank(job);
  RemoteWork<float> work = remote_work(rank, RemoteCall::update, 1);
  std::vector<BadAccess> all;
  work.target = 3;
  add_remote(all, rank, "no place", work, {"place 3 ", "the team has 3 members"});
  work.target = 0;
  work.to = rank.segment_end();
  add_remote(all, rank, "after the segment", work, {"4 bytes at " + hex(work.to)});
  require_faults(rank, all);
  const Team team = rank.make_team();
  if (has_native_atomics(team.link())) require_works(rank, team, RemoteCall::update);
}
TEST_P(CheckedTest, UpdatesAreMadeWhereTheirMemberIsAndWhereItsSegmentIs) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_updates", ranks));
}

IR_SCENARIO(checked_updates_without_atomics) {
  CheckedRank rank(job, {.link = Link::pcie});
  const BadAccess access = {"an update",
                            [&](StreamRef& stream, const Lane& lane) {
                              run_remote(rank.context, stream, lane,
                                         remote_work(rank, RemoteCall::update, 1));
                            },
                            {"an atomic update of rank 3's memory", "no native atomics"}};
  require_fault(rank, access, Errc::unsupported);
  require_works(rank, rank.make_team());
}
TEST_P(CheckedTest, UpdatesOverALinkWithoutAtomicsFailTheTeamAndTouchNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_updates_without_atomics", ranks));
}

IR_SCENARIO(checked_distant_places) {
  CheckedRank rank(job);
  const std::vector<int> places = {std::numeric_limits<int>::max() - 1, 2'000'000'000,
                                   -2'000'000'000};
  require_faults(rank, at_no_place(rank, places));
  require_faults(rank, bad_matrices(rank, {2'000'000'000}));
}
TEST(CheckedPlaces, ThatAreFarAwayAreNotLookedUp) {
  expect_all_ok(run_ranks(RankKind::processes, "checked_distant_places", ranks));
}

IR_SCENARIO(checked_matrices) {
  CheckedRank rank(job);
  require_faults(rank, bad_matrices(rank, {3, 64, 1000}));
}
TEST_P(CheckedTest, TilesOutsideTheirMatrixAndNarrowPitchesFailTheTeamAndTouchNothing) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_matrices", ranks));
}

IR_SCENARIO(checked_sizes_that_wrap) {
  CheckedRank rank(job);
  std::vector<BadAccess> all;
  // One element more than 2^64 bytes.
  RemoteWork<float> work = remote_work(rank, RemoteCall::load_tiles, (std::size_t{1} << 62) + 1);
  work.tiles = 1;
  add_remote(all, rank, "2^62 + 1 elements", work, {rank.segment_range()});
  for (const MatrixCall call : {MatrixCall::load_from, MatrixCall::store_to, MatrixCall::gather}) {
    MatrixWork<float> matrix = matrix_work(rank, call);
    matrix.matrix = {rank.data.data() + CheckedRank::loaded, std::size_t{1} << 60, 16, 16};
    matrix.rows.rows = 15;
    add_matrix(all, rank, "2^60 rows", matrix, {rank.segment_range()});
  }
  require_faults(rank, all);
}
TEST_P(CheckedTest, SizesWhoseBytesWrapAroundAreOutsideTheSegment) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_sizes_that_wrap", ranks));
}

IR_SCENARIO(checked_in_all_modes) {
  for (const BlockMode& mode : block_modes) {
    CheckedRank rank(job, {.backend = BackendKind::host,
                           .split_blocks = mode.split,
                           .schedule_seed = mode.seed,
                           .name = "checked" + name(mode)});
    require_faults(rank, at_no_place(rank, {3}));
    require_faults(rank, outside_the_segment(rank));
    require_faults(rank, bad_matrices(rank, {3}));
  }
}
TEST_P(CheckedTest, FaultsAreTheSameUnderDrawnSchedulesAndInSplitMode) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_in_all_modes", ranks));
}

IR_SCENARIO(checked_ends_of_the_segment) {
  CheckedRank rank(job);
  const Team team = rank.make_team();
  if (team.is_member())
    for (const RemoteCall call : {RemoteCall::load, RemoteCall::load_tiles, RemoteCall::get}) {
      for (float* const from : {rank.segment_begin(), rank.segment_end() - 4}) {
        RemoteWork<float> work = remote_work(rank, call, 4);
        work.from = from;
        run_remote(rank.context, rank.stream, team.lane("ends"), work);
      }
      RemoteWork<float> nothing = remote_work(rank, call, 0);
      nothing.from = rank.segment_end();
      run_remote(rank.context, rank.stream, team.lane("nothing"), nothing);
    }
  rank.stream.synchronize();
  if (team.is_member()) team.check();
  rank.context.barrier();
  require_works(rank, team);
}
TEST_P(CheckedTest, TheFirstAndTheLastElementOfTheSegmentAreInside) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_ends_of_the_segment", ranks));
}

IR_SCENARIO(checked_all_at_once) {
  CheckedRank rank(job);
  for (int round = 0; round < 10; ++round) {
    const Team team = rank.make_team();
    Lane lane;
    if (team.is_member()) lane = team.lane("bad access");
    rank.context.barrier();
    std::uint64_t told = 0;
    if (team.is_member()) {
      const auto accesses = at_no_place(rank, {3 + team.rank()});
      accesses[static_cast<std::size_t>(round) % accesses.size()].launch(rank.stream, lane);
      rank.stream.synchronize();
      const Error error = require_error(Errc::invalid_argument, {}, [&] { team.check(); });
      told = std::hash<std::string>()(error.what());
    }
    const auto all = rank.context.world().all_gather(told);
    require(all[3] == all[0] && all[0] == all[1], "all members tell of the same fault");
  }
  require_works(rank, rank.make_team());
}
TEST_P(CheckedTest, OfSeveralFaultsAtOnceAllMembersTellTheSame) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_all_at_once", ranks));
}

IR_SCENARIO(checked_in_a_graph) {
  CheckedRank rank(job);
  const Team team = rank.make_team();
  std::optional<Graph> graph;
  if (team.is_member()) {
    RemoteWork<float> work = remote_work(rank, RemoteCall::put, 4);
    work.target = (team.rank() + 1) % team.size();
    if (team.rank() == offender) work.to = rank.segment_end();
    rank.stream.begin_capture();
    run_remote(rank.context, rank.stream, team.lane("bad access"), work);
    graph = rank.stream.end_capture();
    team.check();
  }
  rank.context.barrier();
  if (team.is_member()) {
    rank.stream.launch(*graph);
    rank.stream.synchronize();
    if (team.rank() == offender)
      require_error(Errc::invalid_argument, {members[offender]}, [&] { team.check(); });
  }
  rank.context.barrier();
  if (team.is_member())
    require_error(Errc::invalid_argument, {members[offender]}, [&] { team.check(); });
  require_works(rank, rank.make_team());
}
TEST_P(CheckedTest, ACapturedAccessFailsTheTeamWhenItIsReplayed) {
  expect_all_ok(run_ranks(GetParam().kind, "checked_in_a_graph", ranks));
}

IR_SCENARIO(unchecked_lanes) {
  Context context(job);
  require(!context.world().lane().is_checked(), "checks are asked for");
  Context other(job, {.checked = true, .name = "checked"});
  require(other.world().lane().is_checked(), "and done");
}
TEST_P(CheckedTest, LanesAreCheckedWhereTheContextIs) {
  expect_all_ok(run_ranks(GetParam().kind, "unchecked_lanes", 2));
}

}  // namespace
}  // namespace iridium::test

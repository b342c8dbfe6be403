// Copies between members as stream operations, and matrices made by their pitch in bytes.
#include "iridium/remote_memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class PutAndGetTest : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PutAndGetTest, ::testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

constexpr std::size_t count = 5000;
constexpr std::uint8_t untouched = 0xa5;

std::vector<std::uint8_t> bytes_of(int rank, int round) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + static_cast<std::size_t>(rank) * 31 +
                                         static_cast<std::size_t>(round) * 57);
  return bytes;
}

/// `expected` in the middle of an array, from `first` on, and nothing around it.
void require_bytes(const std::vector<std::uint8_t>& found, std::size_t first,
                   const std::vector<std::uint8_t>& source, std::size_t from, std::size_t bytes,
                   const std::string& what) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool inside = i >= first && i < first + bytes;
    require(found[i] == (inside ? source[from + i - first] : untouched),
            what + " of " + std::to_string(bytes) + " bytes: byte " + std::to_string(i));
  }
}

struct Arrays {
  explicit Arrays(Context& context)
      : source(context.allocate<std::uint8_t>(count)),
        target(context.allocate<std::uint8_t>(count)) {}
  SymmetricArray<std::uint8_t> source;
  SymmetricArray<std::uint8_t> target;
};

/// Every member copies to, and from, the member `distance` places on.
void check_copies(Context& context, const Team& team, const Arrays& arrays, int distance) {
  Memory memory(context);
  Stream stream = context.make_stream();
  const std::vector<std::uint8_t> blank(count, untouched);
  const int size = team.size();
  int round = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{777}, count - 5}) {
    for (const bool puts : {true, false}) {
      ++round;
      memory.write(arrays.source, bytes_of(context.rank(), round));
      memory.write(arrays.target, blank);
      context.barrier();
      if (team.is_member()) {
        const int other = (team.rank() + distance) % size;
        if (puts)
          put(stream, team, arrays.target.data() + 3, arrays.source.data() + 2, bytes, other);
        else
          get(stream, team, arrays.target.data() + 3, arrays.source.data() + 2, bytes, other);
        stream.synchronize();
        team.check();
      }
      context.barrier();
      const auto found = memory.read(arrays.target);
      if (!team.is_member()) {
        require(found == blank, "who is no member is left alone");
        continue;
      }
      const int place = (team.rank() + (puts ? size - distance : distance)) % size;
      const int rank = team.ranks()[static_cast<std::size_t>(place)];
      require_bytes(found, 3, bytes_of(rank, round), 2, bytes, puts ? "put" : "get");
    }
  }
}

IR_SCENARIO(puts_and_gets) {
  Context context(job);
  const Arrays arrays(context);
  std::vector<Team> teams = {context.world()};
  if (job.size > 3) teams.push_back(context.make_team({3, 0, 1}));
  for (const Team& team : teams)
    for (int distance = 0; distance < team.size(); ++distance)
      check_copies(context, team, arrays, distance);
}
TEST_P(PutAndGetTest, CopyBetweenAnyMembersAndNothingElseChanges) {
  expect_all_ok(run_ranks(GetParam().kind, "puts_and_gets", GetParam().size));
}

IR_SCENARIO(puts_and_gets_off_the_heap) {
  Context context(job);
  const Arrays arrays(context);
  Stream stream = context.make_stream();
  const Team team = context.world();
  const int next = (job.rank + 1) % job.size;
  const auto mine = bytes_of(job.rank, 1);
  std::vector<std::uint8_t> back(count);
  put(stream, team, arrays.target.data(), mine.data(), count, next);
  stream.synchronize();
  context.barrier();
  get(stream, team, back.data(), arrays.target.data(), count, next);
  stream.synchronize();
  require(back == mine, "what was put at the next rank is got from there");
  const auto here = Memory(context).read(arrays.target);
  require(here == bytes_of((job.rank + job.size - 1) % job.size, 1), "and here is the previous's");
  context.barrier();
}
TEST_P(PutAndGetTest, TheOwnSideIsAnyMemory) {
  expect_all_ok(run_ranks(GetParam().kind, "puts_and_gets_off_the_heap", GetParam().size));
}

IR_SCENARIO(captured_puts_and_gets) {
  Context context(job);
  Memory memory(context);
  const Arrays arrays(context);
  const auto got = context.allocate<std::uint8_t>(count);
  Stream stream = context.make_stream();
  const Team team = context.world();
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  memory.write(arrays.target, std::vector<std::uint8_t>(count, untouched));
  memory.write(got, std::vector<std::uint8_t>(count, untouched));
  context.barrier();
  stream.begin_capture();
  put(stream, team, arrays.target.data() + 10, arrays.source.data(), 999, next);
  get(stream, team, got.data(), arrays.source.data() + 1, 1234, next);
  require_error(Errc::invalid_argument, {}, [&] {
    put(stream, team, arrays.target.data(), arrays.source.data(), 1, job.size);
  });
  const Graph graph = stream.end_capture();
  require(graph.node_count() == 2, "both copies were recorded, and nothing else");
  context.barrier();
  require(memory.read(arrays.target)[10] == untouched && memory.read(got)[0] == untouched,
          "what is captured does not run");
  for (int round = 1; round <= 4; ++round) {
    memory.write(arrays.source, bytes_of(job.rank, round));
    context.barrier();
    stream.launch(graph);
    stream.synchronize();
    context.barrier();
    require_bytes(memory.read(arrays.target), 10, bytes_of(previous, round), 0, 999, "put");
    require_bytes(memory.read(got), 0, bytes_of(next, round), 1, 1234, "get");
    context.barrier();
  }
}
TEST_P(PutAndGetTest, ReplaysCopyTheDataOfTheMoment) {
  expect_all_ok(run_ranks(GetParam().kind, "captured_puts_and_gets", GetParam().size));
}

void require_refused(const std::string& word, const std::function<void()>& call) {
  const Error error = require_error(Errc::invalid_argument, {}, call);
  require(std::string(error.what()).find(word) != std::string::npos,
          std::string(error.what()) + " lacks " + word);
}

IR_SCENARIO(bad_puts_and_gets) {
  Context context(job);
  Memory memory(context);
  const Arrays arrays(context);
  Stream stream = context.make_stream();
  const Team team = context.world();
  const Team others = context.make_team({1}, {.name = "others"});
  std::uint8_t* const here = arrays.source.data();
  std::uint8_t* const there = arrays.target.data();
  std::uint8_t elsewhere[4] = {};
  memory.write(arrays.target, std::vector<std::uint8_t>(count, untouched));
  context.barrier();

  for (const int place : {-1, 2, 64, std::numeric_limits<int>::max()}) {
    const std::string word = "place " + std::to_string(place) + " does not exist";
    require_refused(word, [&] { put(stream, team, there, here, 4, place); });
    require_refused(word, [&] { get(stream, team, there, here, 4, place); });
    require_refused(word, [&] { get(stream, team, there, here, 0, place); });
  }
  const std::string off = "4 bytes at";
  require_refused(off, [&] { put(stream, team, elsewhere, here, 4, 1); });
  require_refused(off, [&] { get(stream, team, here, elsewhere, 4, 1); });
  require_refused(off, [&] { put(stream, team, nullptr, here, 4, 1); });
  require_refused(off, [&] { get(stream, team, here, nullptr, 4, 1); });
  require_refused(off, [&] { put(stream, team, there + count - 3, here, 4, 1); });
  require_refused(off, [&] { get(stream, team, here, there + count - 3, 4, 1); });
  // A peer's memory is not named by its own address.
  require_refused(off, [&] { put(stream, team, arrays.target.at(1 - job.rank), here, 4, 1); });
  const std::size_t wraps = std::numeric_limits<std::size_t>::max();
  require_refused("do not lie", [&] { put(stream, team, there + 1, here, wraps, 1); });
  require_refused("put: a null pointer with 4 bytes",
                  [&] { put(stream, team, there, nullptr, 4, 1); });
  require_refused("get: a null pointer with 4 bytes",
                  [&] { get(stream, team, nullptr, there, 4, 1); });
  if (job.rank == 0) {
    const Error error =
        require_error(Errc::not_a_member, {}, [&] { put(stream, others, there, here, 4, 0); });
    require(std::string(error.what()).find("team others") != std::string::npos, error.what());
    require_error(Errc::not_a_member, {}, [&] { get(stream, others, there, here, 4, 0); });
    require_error(Errc::not_a_member, {}, [&] { get(stream, others, nullptr, nullptr, 0, 5); });
  }
  put(stream, team, there, nullptr, 0, 1 - job.rank);
  get(stream, team, nullptr, here, 0, 1 - job.rank);
  stream.synchronize();
  context.barrier();
  require(memory.read(arrays.target) == std::vector<std::uint8_t>(count, untouched),
          "what is refused is not done");
  memory.write(arrays.source, bytes_of(job.rank, 1));
  context.barrier();
  put(stream, team, there, here, count, 1 - job.rank);
  stream.synchronize();
  context.barrier();
  require(memory.read(arrays.target) == bytes_of(1 - job.rank, 1), "and the rest still works");
}
TEST(PutAndGet, RefuseWhatCannotWork) {
  expect_all_ok(run_ranks(RankKind::processes, "bad_puts_and_gets", 2));
}

IR_SCENARIO(freed_puts_and_gets) {
  Context context(job);
  auto array = context.allocate<std::uint8_t>(100);
  const auto mine = context.allocate<std::uint8_t>(100);
  std::uint8_t* const freed = array.data();
  array = {};
  Stream stream = context.make_stream();
  require_refused("put: 4 bytes", [&] { put(stream, context.world(), freed, mine.data(), 4, 0); });
  require_refused("get: 4 bytes", [&] { get(stream, context.world(), mine.data(), freed, 4, 0); });
}
TEST(PutAndGet, RefuseArraysThatAreFreed) {
  expect_all_ok(run_ranks(RankKind::processes, "freed_puts_and_gets", 2));
}

TEST(MatricesWithPitch, TakeWholeElementsAndRows) {
  double values[1] = {};
  const auto matrix = matrix_with_pitch(values, 7, 5, 48);
  static_assert(std::is_same_v<decltype(matrix), const Matrix<double>>);
  EXPECT_EQ(matrix.data, values);
  EXPECT_EQ(matrix.rows, 7u);
  EXPECT_EQ(matrix.columns, 5u);
  EXPECT_EQ(matrix.pitch, 6u);
  EXPECT_EQ(matrix_with_pitch(values, 7, 5, 40).pitch, 5u);
  EXPECT_EQ(matrix_with_pitch(values, 0, 0, 0).pitch, 0u);
  const std::uint8_t byte = 0;
  EXPECT_EQ(matrix_with_pitch(&byte, 3, 5, 7).pitch, 7u);
}

void expect_refused(const std::vector<std::string>& words, std::size_t columns,
                    std::size_t pitch_bytes) {
  double values[1] = {};
  const Error error = expect_error(Errc::invalid_argument,
                                   [&] { matrix_with_pitch(values, 2, columns, pitch_bytes); });
  for (const std::string& word : words)
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
}

TEST(MatricesWithPitch, RefusePartsOfElements) {
  expect_refused({"a pitch of 44 bytes", "multiple of the 8 bytes"}, 5, 44);
  expect_refused({"a pitch of 1 bytes"}, 0, 1);
}

TEST(MatricesWithPitch, RefusePitchesBelowARow) {
  expect_refused({"a pitch of 32 bytes", "less than 5 columns of 8 bytes"}, 5, 32);
  expect_refused({"a pitch of 0 bytes", "less than 1 columns"}, 1, 0);
  // As bytes, so many columns would be 8.
  expect_refused({"a pitch of 64 bytes"}, (std::size_t{1} << 61) + 1, 64);
}

}  // namespace
}  // namespace iridium::test

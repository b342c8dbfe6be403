// Loads, stores and copies between members, against plain loops over the same elements.
#include "iridium/device/remote_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "device/areas.h"
#include "device/block_modes.h"
#include "device/remote_memory_kernels.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

constexpr std::size_t heap_bytes = std::size_t{96} << 20;

/// What every member does: places are told by their distance from the caller's.
struct RemoteCase {
  RemoteCall call = RemoteCall::put;
  MaskKind mask = MaskKind::everywhere;
  Cache cache = Cache::normal;
  std::size_t count = 0;
  // By how many elements the arrays are moved off the places vectors can be read from.
  std::size_t to_shift = 0;
  std::size_t from_shift = 0;
  int target_distance = 0;
  int source_distance = 0;
  int blocks = 1;
  Sharing sharing = Sharing::none;

  bool reads_peer() const {
    return call == RemoteCall::load || call == RemoteCall::load_tiles || call == RemoteCall::copy ||
           call == RemoteCall::get;
  }
  bool writes_peer() const { return !reads_peer() || call == RemoteCall::copy; }
};

std::string describe(const RemoteCase& one, std::size_t element_bytes) {
  std::ostringstream text;
  text << "call " << static_cast<int>(one.call) << " of " << one.count << " elements of "
       << element_bytes << " bytes, mask " << static_cast<int>(one.mask) << ", hint "
       << static_cast<int>(one.cache) << ", shifted by " << one.to_shift << " and "
       << one.from_shift << ", to place +" << one.target_distance << " from place +"
       << one.source_distance << " by " << one.blocks << " blocks, sharing "
       << static_cast<int>(one.sharing);
  return text.str();
}

constexpr Cache all_hints[] = {Cache::normal, Cache::streaming, Cache::shared};
constexpr MaskKind all_masks[] = {MaskKind::everywhere, MaskKind::thirds, MaskKind::range,
                                  MaskKind::nothing};

template <class T>
class RemoteCases {
 public:
  /// Collective over the world; the cases are the same on every rank.
  RemoteCases(Context& context, std::vector<RemoteCase> cases)
      : context_(context), cases_(std::move(cases)), areas_(context, largest_source(), sizes()) {}

  /// Runs all cases on all members at once. Collective over the world: other ranks only wait.
  void run(const Team& team) {
    areas_.reset();
    context_.barrier();
    Stream stream = context_.make_stream();
    if (team.is_member())
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        const RemoteCase& one = cases_[i];
        run_remote<T>(context_, stream, team.lane("remote"),
                      {.call = one.call,
                       .mask = one.mask,
                       .cache = one.cache,
                       .to = areas_.area(i) + one.to_shift,
                       .from = areas_.source() + one.from_shift,
                       .target = (team.rank() + one.target_distance) % team.size(),
                       .source = (team.rank() + one.source_distance) % team.size(),
                       .count = one.count,
                       .blocks = one.blocks,
                       .sharing = one.sharing});
      }
    stream.synchronize();
    if (team.is_member()) team.check();
    context_.barrier();
    areas_.read();
    for (std::size_t i = 0; i < cases_.size(); ++i)
      areas_.require_area(i, expected(team, cases_[i]), describe(cases_[i], sizeof(T)));
    context_.barrier();
  }

 private:
  /// Elements that the case writes, as far as its mask allows.
  static std::size_t span(const RemoteCase& one) {
    if constexpr (Number<T>) {
      constexpr std::size_t tile = remote_tile<T>;
      if (one.call == RemoteCall::load_tiles) return (one.count + tile - 1) / tile * tile;
    }
    return one.count;
  }

  std::vector<T> expected(const Team& team, const RemoteCase& one) const {
    if (!team.is_member()) return {};
    const int size = team.size();
    // Who writes to this rank, and from where.
    const int writer =
        one.writes_peer() ? (team.rank() + size - one.target_distance % size) % size : team.rank();
    const int source = one.reads_peer() ? (writer + one.source_distance) % size : writer;
    const int rank = team.ranks()[static_cast<std::size_t>(source)];
    const TestMask mask = {one.mask, one.count};
    std::vector<T> elements(one.to_shift + span(one), Areas<T>::untouched());
    for (std::size_t i = 0; i < span(one); ++i) {
      if (i < one.count && mask(i))
        elements[one.to_shift + i] = source_element<T>(rank, one.from_shift + i);
      else if (one.call == RemoteCall::load_tiles)
        elements[one.to_shift + i] = T();
    }
    return elements;
  }

  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    for (const RemoteCase& one : cases_) sizes.push_back(one.to_shift + span(one));
    return sizes;
  }
  std::size_t largest_source() const {
    std::size_t elements = 1;
    for (const RemoteCase& one : cases_) elements = std::max(elements, one.from_shift + one.count);
    return elements;
  }

  Context& context_;
  std::vector<RemoteCase> cases_;
  Areas<T> areas_;
};

/// Goes through all distances, so that in a list of cases everybody writes to everybody.
void set_distances(RemoteCase& one, std::size_t index) {
  one.target_distance = static_cast<int>(index % 8);
  one.source_distance = static_cast<int>(index / 8 % 8);
}

/// Sizes around those at which something changes: elements, vectors, tiles of loads and copies.
template <class T>
std::vector<std::size_t> counts() {
  const auto tile = static_cast<std::size_t>(remote_threads) * vector_elements<T> * 4;
  return {0,        1,    vector_elements<T> + 2,           tile / 2,
          tile - 1, tile, 3 * tile + vector_elements<T> + 1};
}

/// Every count, shift, mask and hint of every call on tiles and vectors.
template <class T>
std::vector<RemoteCase> vector_cases() {
  std::vector<RemoteCase> cases;
  for (const RemoteCall call : {RemoteCall::load_tiles, RemoteCall::store_tiles, RemoteCall::copy,
                                RemoteCall::put, RemoteCall::get})
    for (const MaskKind mask : all_masks)
      for (const Cache cache : all_hints) {
        if (cache != Cache::normal && !has_hints<T>) continue;
        for (const std::size_t count : counts<T>())
          for (const auto& [to_shift, from_shift] :
               {std::pair<std::size_t, std::size_t>{0, 0}, {1, 0}, {0, 1}, {1, 1}, {3, 2}}) {
            RemoteCase one = {.call = call,
                              .mask = mask,
                              .cache = cache,
                              .count = count,
                              .to_shift = to_shift,
                              .from_shift = from_shift};
            set_distances(one, cases.size());
            cases.push_back(one);
          }
      }
  return cases;
}

template <class T>
std::vector<RemoteCase> element_cases() {
  std::vector<RemoteCase> cases;
  for (int round = 0; round < 8; ++round)
    for (const RemoteCall call : {RemoteCall::load, RemoteCall::store})
      for (const std::size_t count : {0u, 1u, 5u, 200u}) {
        RemoteCase one = {.call = call, .count = count, .to_shift = 1, .from_shift = 2};
        one.blocks = round % 3 + 1;
        set_distances(one, cases.size());
        cases.push_back(one);
      }
  return cases;
}

/// Copies that the blocks of a grid share.
template <class T>
std::vector<RemoteCase> shared_cases() {
  std::vector<RemoteCase> cases;
  for (const RemoteCall call : {RemoteCall::copy, RemoteCall::put, RemoteCall::get})
    for (const Sharing sharing : {Sharing::slices, Sharing::grid})
      for (const int blocks : {1, 2, 3, 7})
        for (const std::size_t count : counts<T>())
          for (const MaskKind mask : all_masks) {
            // A slice's mask counts from where the slice begins.
            if (sharing == Sharing::slices && mask != MaskKind::everywhere) continue;
            RemoteCase one = {.call = call, .mask = mask, .count = count};
            one.blocks = blocks;
            one.sharing = sharing;
            one.to_shift = cases.size() % 3;
            one.from_shift = cases.size() / 3 % 3;
            set_distances(one, cases.size());
            cases.push_back(one);
          }
  return cases;
}

/// Vectors of elements of which no whole number is 16 bytes.
template <class T>
std::vector<RemoteCase> struct_cases() {
  std::vector<RemoteCase> cases;
  for (const RemoteCall call : {RemoteCall::copy, RemoteCall::put, RemoteCall::get})
    for (const Sharing sharing : {Sharing::none, Sharing::slices, Sharing::grid})
      for (const std::size_t count : {0u, 1u, 2u, 15u, 1000u})
        for (const std::size_t shift : {0u, 1u, 4u}) {
          RemoteCase one = {.call = call, .count = count, .to_shift = shift, .from_shift = shift};
          one.blocks = sharing == Sharing::none ? 1 : 3;
          one.sharing = sharing;
          set_distances(one, cases.size());
          cases.push_back(one);
        }
  return cases;
}

/// The world, and members whose ranks are not evenly spaced.
std::vector<Team> teams(Context& context) {
  std::vector<Team> teams = {context.world()};
  if (context.size() > 3) teams.push_back(context.make_team({3, 0, 1}));
  return teams;
}

template <class T>
void check_cases(Context& context, const std::vector<RemoteCase>& cases) {
  RemoteCases<T> all(context, thinned(cases));
  for (const Team& team : teams(context)) all.run(team);
}

template <class T>
void check_vectors(Context& context) {
  check_cases<T>(context, vector_cases<T>());
  check_cases<T>(context, shared_cases<T>());
}

class RemoteMemoryTest : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RemoteMemoryTest, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(remote_vectors) {
  Context context(job, {.heap_bytes = heap_bytes});
  check_vectors<std::uint8_t>(context);
  check_vectors<fp16>(context);
  check_vectors<float>(context);
  check_vectors<double>(context);
}
TEST_P(RemoteMemoryTest, TilesAndVectorsMoveBetweenAnyMembersAndNothingElseChanges) {
  expect_all_ok(run_ranks(GetParam().kind, "remote_vectors", GetParam().size));
}

IR_SCENARIO(remote_elements) {
  Context context(job, {.heap_bytes = heap_bytes});
  check_cases<std::uint8_t>(context, element_cases<std::uint8_t>());
  check_cases<fp16>(context, element_cases<fp16>());
  check_cases<float>(context, element_cases<float>());
  check_cases<double>(context, element_cases<double>());
  check_cases<ThreeBytes>(context, element_cases<ThreeBytes>());
  check_cases<TwelveBytes>(context, element_cases<TwelveBytes>());
}
TEST_P(RemoteMemoryTest, ElementsOfAnySizeMoveBetweenAnyMembers) {
  expect_all_ok(run_ranks(GetParam().kind, "remote_elements", GetParam().size));
}

IR_SCENARIO(remote_structs) {
  Context context(job, {.heap_bytes = heap_bytes});
  check_cases<ThreeBytes>(context, struct_cases<ThreeBytes>());
  check_cases<TwelveBytes>(context, struct_cases<TwelveBytes>());
}
TEST_P(RemoteMemoryTest, VectorsOfStructsMoveBetweenAnyMembers) {
  expect_all_ok(run_ranks(GetParam().kind, "remote_structs", GetParam().size));
}

class RemoteMemoryModes : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RemoteMemoryModes, testing::ValuesIn(both_kinds(4)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(remote_memory_checked) {
  Context context(job, {.heap_bytes = heap_bytes, .checked = true});
  check_vectors<std::uint8_t>(context);
  check_vectors<double>(context);
  check_cases<float>(context, element_cases<float>());
  check_cases<TwelveBytes>(context, element_cases<TwelveBytes>());
}
TEST_P(RemoteMemoryModes, CheckedModeLetsRightAccessesPass) {
  expect_all_ok(run_ranks(GetParam().kind, "remote_memory_checked", GetParam().size));
}

IR_SCENARIO(remote_memory_under_drawn_schedules) {
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .heap_bytes = heap_bytes,
                          .checked = mode.seed == 2,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "remote" + name(mode)});
    check_vectors<std::uint8_t>(context);
    check_vectors<float>(context);
    check_cases<TwelveBytes>(context, element_cases<TwelveBytes>());
  }
}
TEST_P(RemoteMemoryModes, AccessesAreRightUnderDrawnSchedulesAndInSplitMode) {
  expect_all_ok(run_ranks(GetParam().kind, "remote_memory_under_drawn_schedules", GetParam().size));
}

IR_SCENARIO(memory_off_the_heap) {
  Context context(job, {.backend = BackendKind::host, .checked = true});
  constexpr std::size_t count = 777;
  const auto array = context.allocate<float>(count);
  std::vector<float> mine(count);
  for (std::size_t i = 0; i < count; ++i)
    mine[i] = static_cast<float>(i) + static_cast<float>(job.rank) / 16;
  std::vector<float> theirs(count);
  Stream stream = context.make_stream();
  const Team team = context.world();
  const int next = (job.rank + 1) % job.size;
  run_remote<float>(context, stream, team.lane(),
                    {.call = RemoteCall::put,
                     .to = array.data(),
                     .from = mine.data(),
                     .target = next,
                     .count = count});
  stream.synchronize();
  context.barrier();
  run_remote<float>(context, stream, team.lane(),
                    {.call = RemoteCall::get,
                     .to = theirs.data(),
                     .from = array.data(),
                     .source = next,
                     .count = count});
  stream.synchronize();
  team.check();
  context.barrier();
  require(mine == theirs, "what was put at the next rank is got from there");
}
TEST_P(RemoteMemoryModes, TheOwnSideOfPutAndGetIsAnyMemory) {
  expect_all_ok(run_ranks(GetParam().kind, "memory_off_the_heap", GetParam().size));
}

/// Slices of consecutive blocks follow each other, cover everything, and begin where vectors do.
void require_cover(const Slice* slices, int blocks, std::size_t count, std::size_t bytes) {
  const std::string what = std::to_string(count) + " elements of " + std::to_string(bytes) +
                           " bytes, " + std::to_string(blocks) + " blocks: ";
  std::size_t next = 0;
  for (int block = 0; block < blocks; ++block) {
    const Slice& slice = slices[block];
    const std::string which = what + "block " + std::to_string(block);
    require(slice.first == next,
            which + " begins at " + std::to_string(slice.first) + ", not " + std::to_string(next));
    require(slice.count == 0 || 16 % bytes != 0 || slice.first * bytes % 16 == 0,
            which + " begins inside a vector");
    require(slice.count <= count - next, which + " goes beyond the end");
    next += slice.count;
  }
  require(next == count, what + "they end at " + std::to_string(next));
}

IR_SCENARIO(slices) {
  Context context(job);
  Memory memory(context);
  Stream stream = context.make_stream();
  std::vector<std::size_t> counts;
  for (std::size_t count = 0; count <= 70; ++count) counts.push_back(count);
  for (const std::size_t count : {127u, 128u, 129u, 1000u, 1023u, 4096u, 65537u, 1'000'003u})
    counts.push_back(count);
  counts.push_back((std::size_t{1} << 40) + 7);
  const auto device_counts = context.allocate<std::size_t>(counts.size());
  memory.write(device_counts, counts);
  for (const int blocks : {1, 2, 3, 4, 5, 7, 16, 33, 64, 132}) {
    const auto slices = context.allocate<Slice>(counts.size() * static_cast<std::size_t>(blocks));
    for (const int bytes : {1, 2, 3, 4, 8, 12}) {
      run_slices(context, stream, blocks, bytes, device_counts.data(), counts.size(),
                 slices.data());
      stream.synchronize();
      const auto found = memory.read(slices);
      for (std::size_t i = 0; i < counts.size(); ++i)
        require_cover(found.data() + i * static_cast<std::size_t>(blocks), blocks, counts[i],
                      static_cast<std::size_t>(bytes));
    }
  }
}
TEST(Slices, CoverEveryElementOnceAndBeginWhereVectorsDo) {
  expect_all_ok(run_ranks(RankKind::processes, "slices", 1));
}

}  // namespace
}  // namespace iridium::test

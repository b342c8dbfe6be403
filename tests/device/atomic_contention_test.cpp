// Atomics of many threads, blocks and ranks at once: nothing is lost, and flags order data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device/atomic_kernels.h"
#include "device/block_modes.h"
#include "support/links.h"
#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

template <class T>
std::vector<T> words_before() {
  std::vector<T> words(contended_words);
  words[added] = static_cast<T>(~std::uint64_t{4});
  words[subtracted] = 7;
  words[cleared] = static_cast<T>(~std::uint64_t{0});
  words[flipped] = 0x5a;
  words[smallest] = std::numeric_limits<T>::max();
  words[largest] = std::numeric_limits<T>::min();
  words[incremented] = 100;
  words[latest] = 42;
  return words;
}

/// What `items` items from `first` on leave; of `latest` and `replaced` only the sum is certain.
template <class T>
std::vector<T> words_after(std::uint64_t first, std::uint64_t items) {
  std::vector<T> words = words_before<T>();
  words[latest] = add(words[latest], words[replaced]);
  words[replaced] = 0;
  for (std::uint64_t item = first; item < first + items; ++item) {
    const auto number = static_cast<T>(item);
    const auto mark = static_cast<T>(mark_of(item));
    const auto bit = static_cast<T>(std::uint64_t{1} << item % (sizeof(T) * 8));
    words[added] = add(words[added], number);
    words[subtracted] = subtract(words[subtracted], number);
    words[set] = static_cast<T>(words[set] | bit);
    words[cleared] = static_cast<T>(words[cleared] & ~bit);
    words[flipped] = static_cast<T>(words[flipped] ^ mark);
    words[smallest] = std::min(words[smallest], mark);
    words[largest] = std::max(words[largest], mark);
    words[incremented] = add(words[incremented], T(1));
    words[latest] = add(words[latest], mark);
    words[tickets] = add(words[tickets], T(1));
  }
  return words;
}

void require_each_once(const std::uint32_t* seen, std::uint64_t limit) {
  for (std::uint64_t ticket = 0; ticket < limit; ++ticket)
    require(seen[ticket] == 1, fmt::format("ticket {} was drawn {} times", ticket, seen[ticket]));
  require(seen[limit] == 0, fmt::format("{} tickets were out of range", seen[limit]));
}

template <class T>
void require_words(const T* words, std::uint64_t first, std::uint64_t items) {
  const std::vector<T> expected = words_after<T>(first, items);
  for (std::size_t i = 0; i < contended_words; ++i) {
    if (i == replaced) continue;
    const T found = i == latest ? add(words[latest], words[replaced]) : words[i];
    require(found == expected[i], fmt::format("word {} of {} bytes is {:#x}, not {:#x}", i,
                                              sizeof(T), found, expected[i]));
  }
}

/// All ranks on one rank's words, where the link has native atomics, then every rank's blocks on
/// its own, then every block on its own.
template <class T>
void check_contention(Context& context, StreamRef& stream, std::uint32_t items) {
  constexpr int blocks = 4;
  Memory memory(context);
  const Team team = context.world();
  const auto ranks = static_cast<std::uint32_t>(context.size());
  const std::uint32_t items_of_rank = blocks * items;
  const auto words = context.allocate<T>(blocks * contended_words);
  const auto seen = context.allocate<std::uint32_t>(ranks * items_of_rank + blocks);
  const auto run = [&](Contention<T> work) {
    std::vector<T> start;
    for (int block = 0; block < blocks; ++block)
      for (const T word : words_before<T>()) start.push_back(word);
    memory.write(words, start);
    memory.write(seen, std::vector<std::uint32_t>(seen.size()));
    context.barrier();
    work.blocks = blocks;
    work.items = items;
    work.words = words.data();
    work.seen = seen.data();
    run_contention(context, stream, team.lane(), work);
    stream.synchronize();
    team.check();
    context.barrier();
  };
  for (const int place : {context.size() - 1, context.size() / 2}) {
    if (!has_native_atomics(team)) break;
    run({.scope = Scope::system,
         .place = place,
         .first_item = static_cast<std::uint64_t>(context.rank()) * items_of_rank,
         .limit = ranks * items_of_rank});
    const auto found = memory.read(words);
    if (context.rank() == place) {
      require_words(found.data(), 0, ranks * items_of_rank);
      require_each_once(memory.read(seen).data(), ranks * items_of_rank);
    }
    const std::vector<T> untouched = words_before<T>();
    const std::size_t first = context.rank() == place ? std::size_t{contended_words} : 0;
    for (std::size_t i = first; i < found.size(); ++i)
      require(found[i] == untouched[i % contended_words], "the other words are as before");
  }
  run({.scope = Scope::device, .place = context.rank(), .limit = items_of_rank});
  require_words(memory.read(words).data(), 0, items_of_rank);
  require_each_once(memory.read(seen).data(), items_of_rank);
  run({.scope = Scope::block, .place = context.rank(), .limit = items});
  const auto found = memory.read(words);
  const auto drawn = memory.read(seen);
  for (std::size_t block = 0; block < blocks; ++block) {
    require_words(found.data() + block * contended_words, block * items, items);
    require_each_once(drawn.data() + block * (items + 1), items);
  }
}

void check_all_contention(Context& context, std::uint32_t items) {
  Stream stream = context.make_stream();
  check_contention<std::int32_t>(context, stream, items);
  check_contention<std::uint32_t>(context, stream, items);
  check_contention<std::int64_t>(context, stream, items);
  check_contention<std::uint64_t>(context, stream, items);
}

class AtomicContention : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AtomicContention, testing::ValuesIn(all_ranks()),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(atomic_contention) {
  Context context(job);
  check_all_contention(context, 300);
}
TEST_P(AtomicContention, UpdatesOfAllThreadsBlocksAndRanksAtOnceAreAllCounted) {
  expect_all_ok(run_ranks(GetParam().kind, "atomic_contention", GetParam().size));
}

template <class T>
void check_sums(Context& context, StreamRef& stream) {
  // The largest sum of ones that all types can hold exactly.
  constexpr std::uint32_t most = 256;
  constexpr std::uint32_t blocks = 2;
  Memory memory(context);
  const Team team = context.world();
  if (!has_native_atomics(team)) return;
  const auto ranks = static_cast<std::uint32_t>(context.size());
  const std::uint32_t items = most / blocks / ranks;
  const std::uint32_t total = items * blocks * ranks;
  const auto numbers = context.allocate<T>(summed_numbers + 3);
  const auto seen = context.allocate<std::uint32_t>(total + 1);
  for (int place = 0; place < context.size(); ++place) {
    // Two-byte numbers begin and end in the middle of a word.
    std::vector<T> start(numbers.size(), convert<T>(0.0f));
    start.front() = start[summed_numbers + 1] = start.back() = convert<T>(-1.625f);
    memory.write(numbers, start);
    memory.write(seen, std::vector<std::uint32_t>(seen.size()));
    context.barrier();
    run_sums<T>(context, stream, team.lane(),
                {.place = place,
                 .blocks = static_cast<int>(blocks),
                 .items = items,
                 .words = numbers.data() + 1,
                 .seen = seen.data(),
                 .limit = total});
    stream.synchronize();
    team.check();
    context.barrier();
    const auto found = memory.read(numbers);
    std::vector<T> expected = start;
    if (context.rank() == place) {
      for (std::size_t i = 0; i < summed_numbers; ++i)
        expected[i + 1] =
            convert<T>(i % 2 == 0 ? static_cast<float>(total) : -static_cast<float>(total));
      require_each_once(memory.read(seen).data(), total);
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      require(found[i] == expected[i],
              fmt::format("number {} of {} bytes is {}, not {}", i, sizeof(T),
                          convert<double>(found[i]), convert<double>(expected[i])));
    context.barrier();
  }
}

void check_all_sums(Context& context) {
  Stream stream = context.make_stream();
  check_sums<float>(context, stream);
  check_sums<double>(context, stream);
  check_sums<fp16>(context, stream);
  check_sums<bf16>(context, stream);
}

IR_SCENARIO(atomic_sums) {
  Context context(job);
  check_all_sums(context);
}
TEST_P(AtomicContention, SumsOfSmallFloatsAreExactAndLeaveNeighbouringHalvesAlone) {
  expect_all_ok(run_ranks(GetParam().kind, "atomic_sums", GetParam().size));
}

class AtomicModes : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AtomicModes, testing::ValuesIn(both_kinds(3)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(atomics_under_drawn_schedules) {
  for (const BlockMode& mode : block_modes) {
    Context context(job, {.backend = BackendKind::host,
                          .split_blocks = mode.split,
                          .schedule_seed = mode.seed,
                          .name = "atomics" + name(mode)});
    check_all_contention(context, 50);
    check_all_sums(context);
  }
}
TEST_P(AtomicModes, UpdatesAreCountedUnderDrawnSchedulesAndInSplitMode) {
  expect_all_ok(run_ranks(GetParam().kind, "atomics_under_drawn_schedules", GetParam().size));
}

class AtomicMessages : public testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AtomicMessages, testing::ValuesIn(both_kinds(2)),
                         [](const auto& test) { return name(test.param); });

IR_SCENARIO(messages_by_atomics) {
  Context context(job);
  if (!has_native_atomics(context.world())) return;
  prepare_messages(context);
  Memory memory(context);
  const auto words = context.allocate<std::uint32_t>(3 + Messages::words);
  // No round has this number.
  memory.write(words, std::vector<std::uint32_t>(words.size(), ~0u));
  context.barrier();
  Stream stream = context.make_stream();
  run_messages(context, stream, context.world().lane(),
               {.flag = words.data(),
                .answer = words.data() + 1,
                .data = words.data() + 3,
                .wrong = words.data() + 2});
  stream.synchronize();
  context.world().check();
  const std::uint32_t wrong = memory.read(words.data() + 2);
  require(wrong == 0, fmt::format("{} words of messages were not those that were sent", wrong));
  context.barrier();
}
TEST_P(AtomicMessages, EveryReleasingCallSendsToEveryAcquiringCall) {
  expect_all_ok(run_ranks(GetParam().kind, "messages_by_atomics", 2));
}

}  // namespace
}  // namespace iridium::test

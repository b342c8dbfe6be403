#include "runtime/device_fault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace iridium {
namespace {

using std::chrono::milliseconds;

const std::vector<int> ranks = {4, 2, 7};

/// Every number is another one, so that none can stand for another.
FaultRecord record_of(FaultKind kind, std::uint64_t missing) {
  FaultRecord record;
  record.kind = kind;
  record.reporter = 1;
  record.block = 31;
  record.step = 57;
  record.expected = 113;
  record.seen = 109;
  record.missing = missing;
  record.detail[0] = 0x7001;
  record.detail[1] = 0x7113;
  record.detail[2] = 0x7f0000;
  record.detail[3] = 0x2000;
  constexpr std::string_view operation = "all_reduce";
  std::copy(operation.begin(), operation.end(), record.operation.text);
  return record;
}

Fault describe(const FaultRecord& record) {
  return iridium::describe(record, ranks, "team pair", milliseconds(2500));
}

void expect_words(const Fault& fault, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(fault.message.find(part), std::string::npos) << fault.message << "\nlacks " << part;
}

const std::string place = "in all_reduce (block 31, step 57 of team pair), as rank 2 saw it";

TEST(DeviceFaults, NameTheRanksThatDidNotArrive) {
  const Fault fault = describe(record_of(FaultKind::timeout, 0b101));
  EXPECT_EQ(fault.code, Errc::timeout);
  EXPECT_EQ(fault.ranks, (std::vector<int>{4, 7}));
  expect_words(fault,
               {"ranks 4, 7 did not arrive", "within 2.5 s", place, "expected 113", "found 109",
                "; ContextOptions::timeout or IRIDIUM_TIMEOUT changes the limit"});
}

TEST(DeviceFaults, NameOneRankByItsPlace) {
  for (std::size_t missing = 0; missing < ranks.size(); ++missing) {
    const Fault fault = describe(record_of(FaultKind::timeout, std::uint64_t{1} << missing));
    EXPECT_EQ(fault.ranks, std::vector<int>{ranks[missing]});
    expect_words(fault, {"rank " + std::to_string(ranks[missing]) + " did not arrive"});
  }
}

TEST(DeviceFaults, NameTheLastOfTheLargestTeam) {
  std::vector<int> all(max_team_size);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = max_team_size - 1 - static_cast<int>(i);
  const Fault fault = iridium::describe(record_of(FaultKind::timeout, std::uint64_t{1} << 63), all,
                                        "team world", milliseconds(1000));
  EXPECT_EQ(fault.ranks, std::vector<int>{0});
}

TEST(DeviceFaults, NameNobodyWhereAnySignalWasMissing) {
  const Fault fault = describe(record_of(FaultKind::timeout, 0));
  EXPECT_EQ(fault.code, Errc::timeout);
  EXPECT_TRUE(fault.ranks.empty());
  expect_words(fault, {"a signal did not arrive", "2.5 s", place});
}

TEST(DeviceFaults, NameTheRanksThatLeft) {
  const Fault fault = describe(record_of(FaultKind::peer_left, 0b110));
  EXPECT_EQ(fault.code, Errc::peer_left);
  EXPECT_EQ(fault.ranks, (std::vector<int>{2, 7}));
  expect_words(fault, {"ranks 2, 7 destroyed the context", "2.5 s", place});
}

TEST(DeviceFaults, NameTheRankWhoseCallsOverlapped) {
  const Fault fault = describe(record_of(FaultKind::lane_busy, 0));
  EXPECT_EQ(fault.code, Errc::lane_busy);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {"two operations of team pair", place, "one stream", "a team of its own"});
}

TEST(DeviceFaults, NameTheRankWhoseGridWasTooLargeAndBothNumbers) {
  const Fault fault = describe(record_of(FaultKind::grid_too_large, 0));
  EXPECT_EQ(fault.code, Errc::invalid_argument);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {"109 blocks", place, "the limit is 113"});
}

TEST(DeviceFaults, NameAPlaceThatDoesNotExistAndTheNumberOfMembers) {
  FaultRecord record = record_of(FaultKind::no_such_place, 0b111);
  for (const int number : {-1, 3, 1000, -2'000'000'000}) {
    record.detail[0] = static_cast<std::uint64_t>(number);
    const Fault fault = describe(record);
    EXPECT_EQ(fault.code, Errc::invalid_argument);
    EXPECT_EQ(fault.ranks, std::vector<int>{2});
    expect_words(fault, {"place " + std::to_string(number) + " ", place, "the team has 3 members"});
  }
}

TEST(DeviceFaults, NameTheMemberThatCannotBeUpdated) {
  FaultRecord record = record_of(FaultKind::no_native_atomics, 0b111);
  record.detail[0] = 2;
  const Fault fault = describe(record);
  EXPECT_EQ(fault.code, Errc::unsupported);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {"an atomic update of rank 7's memory", place, "no native atomics"});
}

TEST(DeviceFaults, NameAnAddressItsBytesAndTheSegmentItIsOutside) {
  const Fault fault = describe(record_of(FaultKind::outside_segment, 0b111));
  EXPECT_EQ(fault.code, Errc::invalid_argument);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {std::to_string(0x7113) + " bytes at 0x7001 ", place,
                       "rank 2's segment is 0x7f0000 to 0x7f2000"});
}

TEST(DeviceFaults, NameATileAndTheSizeOfTheMatrixItIsOutside) {
  FaultRecord record = record_of(FaultKind::outside_matrix, 0b111);
  record.detail[0] = 1201;
  record.detail[1] = 1203;
  record.detail[2] = 1100;
  record.detail[3] = 1102;
  const Fault fault = describe(record);
  EXPECT_EQ(fault.code, Errc::invalid_argument);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {"row 1201, column 1203", place, "1100 rows and 1102 columns"});
}

TEST(DeviceFaults, NameAPitchAndTheColumnsItIsTooNarrowFor) {
  FaultRecord record = record_of(FaultKind::narrow_pitch, 0b111);
  record.detail[0] = 74;
  record.detail[1] = 75;
  const Fault fault = describe(record);
  EXPECT_EQ(fault.code, Errc::invalid_argument);
  EXPECT_EQ(fault.ranks, std::vector<int>{2});
  expect_words(fault, {"a pitch of 74 elements", place, "75 columns"});
}

/// A text as checked mode keeps it.
void put_text(std::uint64_t* words, std::string_view text) {
  std::memcpy(words, text.data(), text.size());
}

TEST(DeviceFaults, NameWhatMembersCallsDifferInAndBothSides) {
  FaultRecord record = record_of(FaultKind::calls_differ, 0);
  record.seen = 2;
  record.expected = static_cast<std::uint32_t>(CallTerm::count);
  std::ranges::fill(record.detail, 0);
  record.detail[0] = 1201;
  record.detail[3] = 1203;
  Fault fault = describe(record);
  EXPECT_EQ(fault.code, Errc::mismatch);
  EXPECT_EQ(fault.ranks, (std::vector<int>{2, 7}));
  expect_words(fault, {place, "the count is 1201 on rank 2 and 1203 on rank 7"});

  record.expected = static_cast<std::uint32_t>(CallTerm::operation);
  put_text(record.detail, "reduce_scatter");
  std::ranges::fill(record.detail + 3, record.detail + 6, 0);
  expect_words(describe(record), {"the operation is reduce_scatter on rank 2 and none on rank 7"});
  // Without an end.
  put_text(record.detail + 3, "0123456789abcdef01234567");
  expect_words(describe(record), {"and 0123456789abcdef01234567 on rank 7"});
}

TEST(DeviceFaults, NameEveryTermOfACall) {
  FaultRecord record = record_of(FaultKind::calls_differ, 0);
  std::set<std::string> messages;
  for (std::uint32_t term = 0; term < call_term_count; ++term) {
    record.expected = term;
    messages.insert(describe(record).message);
  }
  EXPECT_EQ(messages.size(), call_term_count);
  record.expected = call_term_count;
  EXPECT_EQ(describe(record).code, Errc::protocol);
}

TEST(DeviceFaults, NamePartsThatDifferAndBothSides) {
  FaultRecord record = record_of(FaultKind::parts_differ, 0);
  record.seen = 0;
  record.detail[0] = 44;
  record.detail[1] = 48;
  const Fault fault = describe(record);
  EXPECT_EQ(fault.code, Errc::mismatch);
  expect_words(fault, {place, "rank 2 expects 44 bytes of rank", "which sends 48"});
}

TEST(DeviceFaults, OfUnknownKindSayWhich) {
  const auto last = static_cast<std::uint32_t>(FaultKind::no_native_atomics);
  for (const std::uint32_t kind : {0u, last + 1, 4'000'000'000u}) {
    const Fault fault = describe(record_of(static_cast<FaultKind>(kind), 0b111));
    EXPECT_EQ(fault.code, Errc::protocol);
    EXPECT_TRUE(fault.ranks.empty());
    expect_words(fault, {"unknown kind " + std::to_string(kind), place});
  }
}

TEST(DeviceFaults, SurvivePlacesThatAreNone) {
  FaultRecord record = record_of(FaultKind::timeout, ~std::uint64_t{0});
  record.reporter = 4'000'000'000u;
  const Fault fault = describe(record);
  EXPECT_EQ(fault.ranks, ranks);
  record.kind = FaultKind::lane_busy;
  EXPECT_EQ(describe(record).ranks.size(), 1u);
}

}  // namespace
}  // namespace iridium

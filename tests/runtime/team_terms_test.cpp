#include "runtime/team_terms.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;

TeamTerms some_terms() {
  return {.version = "1.2.3",
          .backend = "host",
          .placement = "device",
          .heap_bytes = 1u << 20,
          .scratch_bytes = 4096,
          .packet_bytes = 512,
          .tuning_table = 0xabcdef,
          .checked = false,
          .lanes_at_once = 2,
          .beside_compute = true,
          .exclusive = false,
          .timeout_ms = 30'000,
          .device = "Abacus 3",
          .max_blocks = 64};
}

void expect_equal(const TeamTerms& left, const TeamTerms& right) {
  EXPECT_EQ(left.version, right.version);
  EXPECT_EQ(left.backend, right.backend);
  EXPECT_EQ(left.placement, right.placement);
  EXPECT_EQ(left.heap_bytes, right.heap_bytes);
  EXPECT_EQ(left.scratch_bytes, right.scratch_bytes);
  EXPECT_EQ(left.packet_bytes, right.packet_bytes);
  EXPECT_EQ(left.tuning_table, right.tuning_table);
  EXPECT_EQ(left.checked, right.checked);
  EXPECT_EQ(left.lanes_at_once, right.lanes_at_once);
  EXPECT_EQ(left.beside_compute, right.beside_compute);
  EXPECT_EQ(left.exclusive, right.exclusive);
  EXPECT_EQ(left.timeout_ms, right.timeout_ms);
  EXPECT_EQ(left.device, right.device);
  EXPECT_EQ(left.max_blocks, right.max_blocks);
}

struct Difference {
  const char* name;
  std::function<void(TeamTerms&)> change;
  std::string first;   ///< what the message says of the unchanged terms
  std::string second;  ///< and of the changed ones
};

std::vector<Difference> differences() {
  return {
      {"version", [](TeamTerms& terms) { terms.version = "1.2.4"; }, "1.2.3", "1.2.4"},
      {"backend", [](TeamTerms& terms) { terms.backend = "cuda"; }, "host", "cuda"},
      {"placement", [](TeamTerms& terms) { terms.placement = "host"; }, "device", "host"},
      {"heap", [](TeamTerms& terms) { terms.heap_bytes = 99; }, "1048576", "99"},
      {"scratch", [](TeamTerms& terms) { terms.scratch_bytes = 98; }, "4096", "98"},
      {"packet", [](TeamTerms& terms) { terms.packet_bytes = 97; }, "512", "97"},
      {"tuning table", [](TeamTerms& terms) { terms.tuning_table = 5; }, "11259375", "5"},
      {"checked", [](TeamTerms& terms) { terms.checked = true; }, "false", "true"},
      {"lanes at once", [](TeamTerms& terms) { terms.lanes_at_once = 3; }, "2", "3"},
      {"beside_compute", [](TeamTerms& terms) { terms.beside_compute = false; }, "true", "false"},
      {"exclusive", [](TeamTerms& terms) { terms.exclusive = true; }, "false", "true"},
      {"timeout", [](TeamTerms& terms) { terms.timeout_ms = 96; }, "30000", "96"},
  };
}

TEST(TeamTermsReconciled, ThatAgreeAreTheTerms) {
  const TeamTerms terms = some_terms();
  expect_equal(reconcile({3}, {terms}), terms);
  expect_equal(reconcile({4, 2, 0}, {terms, terms, terms}), terms);
}

TEST(TeamTermsReconciled, TakeTheSmallestGrid) {
  std::vector<TeamTerms> terms(3, some_terms());
  for (const std::size_t smallest : {0u, 1u, 2u}) {
    for (TeamTerms& each : terms) each.max_blocks = 64;
    terms[smallest].max_blocks = 7;
    EXPECT_EQ(reconcile({0, 1, 2}, terms).max_blocks, 7);
  }
}

TEST(TeamTermsReconciled, NameNoDeviceWhereTheyDiffer) {
  for (const std::size_t other : {0u, 1u, 2u}) {
    std::vector<TeamTerms> terms(3, some_terms());
    terms[other].device = "Abacus 4";
    EXPECT_EQ(reconcile({0, 1, 2}, terms).device, "");
  }
}

TEST(TeamTermsReconciled, NameBothRanksAndBothValuesOfADifference) {
  for (const Difference& difference : differences()) {
    SCOPED_TRACE(difference.name);
    std::vector<TeamTerms> terms(3, some_terms());
    difference.change(terms[2]);
    const Error error = expect_error(Errc::mismatch, [&] { reconcile({10, 11, 12}, terms); });
    EXPECT_EQ(error.ranks(), (std::vector<int>{10, 12}));
    const std::string message = error.what();
    for (const std::string& part : {std::string(difference.name), "rank 10 has " + difference.first,
                                    "rank 12 has " + difference.second})
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  }
}

TEST(TeamTermsReconciled, FindADifferenceOfTheFirst) {
  for (const Difference& difference : differences()) {
    SCOPED_TRACE(difference.name);
    std::vector<TeamTerms> terms(2, some_terms());
    difference.change(terms[0]);
    const Error error = expect_error(Errc::mismatch, [&] { reconcile({5, 6}, terms); });
    EXPECT_EQ(error.ranks(), (std::vector<int>{5, 6}));
  }
}

TEST(TeamTermsBytes, GoThereAndBack) {
  expect_equal(decode_terms(encode(some_terms())), some_terms());
  for (const Difference& difference : differences()) {
    TeamTerms terms = some_terms();
    difference.change(terms);
    expect_equal(decode_terms(encode(terms)), terms);
  }
  TeamTerms negative = some_terms();
  negative.timeout_ms = -1;
  negative.max_blocks = -2;
  expect_equal(decode_terms(encode(negative)), negative);
}

TEST(TeamTermsBytes, CutShortAreAProtocolError) {
  const Bytes whole = encode(some_terms());
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(Errc::protocol, [&] { decode_terms(std::span(whole).first(size)); });
}

TEST(TeamTermsBytes, OfAnyKindAreTermsOrAProtocolError) {
  const Bytes valid = encode(some_terms());
  int decoded = 0;
  int refused = 0;
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    for (int i = 0; i < 5000; ++i) {
      Bytes bytes = valid;
      if (i % 2 == 0) bytes.resize(random() % 128);
      const std::size_t changes = i % 2 == 0 ? bytes.size() : 1 + random() % 4;
      for (std::size_t change = 0; change < changes; ++change)
        bytes[i % 2 == 0 ? change : random() % bytes.size()] = static_cast<std::byte>(random());
      try {
        const TeamTerms terms = decode_terms(bytes);
        expect_equal(decode_terms(encode(terms)), terms);
        ++decoded;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::protocol) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace iridium

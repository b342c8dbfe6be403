#include "iridium/tuning.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>

#include "support/memory.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// Of a case that only names an operation and its size.
std::string algorithm(const TuningTable& table, std::string_view operation, std::size_t bytes,
                      int members = 2, bool symmetric = false, std::string_view backend = "host") {
  return table
      .choose({.operation = operation,
               .symmetric = symmetric,
               .backend = backend,
               .members = members,
               .bytes = bytes})
      .algorithm;
}

TEST(TuningTables, TakeTheFirstRowThatFits) {
  const TuningTable table(
      "all_reduce plain host 2 1K  first   3 2 64K\n"
      "all_reduce plain host 2 *   second  4 1 0\n"
      "all_reduce plain *    * *   third   5 1 0\n"
      "all_reduce *     *    * *   fourth  6 1 0\n"
      "*          *     *    * *   fifth   7 4 0\n");
  EXPECT_EQ(algorithm(table, "all_reduce", 1024), "first");
  EXPECT_EQ(algorithm(table, "all_reduce", 1025), "second");
  EXPECT_EQ(algorithm(table, "all_reduce", 0, 1), "first");
  EXPECT_EQ(algorithm(table, "all_reduce", 0, 3), "third");
  EXPECT_EQ(algorithm(table, "all_reduce", 0, 2, false, "cuda"), "third");
  EXPECT_EQ(algorithm(table, "all_reduce", 0, 2, true), "fourth");
  EXPECT_EQ(algorithm(table, "broadcast", 0), "fifth");
  EXPECT_EQ(table.choose({.operation = "all_reduce", .backend = "host", .members = 2}),
            (Choice{.algorithm = "first", .blocks = 3, .tile = 2, .round_bytes = 64 << 10}));
}

TEST(TuningTables, KnowBackendsAndDevices) {
  const TuningTable table(
      "all_reduce plain NVIDIA_H200 * * own   1 1 0\n"
      "all_reduce plain cuda        * * cudas 1 1 0\n"
      "all_reduce plain *           * * any   1 1 0\n");
  const auto algorithm = [&](std::string_view backend, std::string_view device) {
    return table.choose({.operation = "all_reduce", .backend = backend, .device = device})
        .algorithm;
  };
  EXPECT_EQ(algorithm("cuda", "NVIDIA_H200"), "own");
  EXPECT_EQ(algorithm("cuda", "NVIDIA_H100"), "cudas");
  EXPECT_EQ(algorithm("cuda", ""), "cudas");
  EXPECT_EQ(algorithm("host", "Abacus"), "any");
}

TEST(TuningTables, KnowLinks) {
  const TuningTable table(
      "all_reduce plain cuda nvlink 4 1K near   1 1 0\n"
      "all_reduce plain cuda pcie   4 1K far    1 1 0\n"
      "all_reduce plain cuda shared 4 1K same   1 1 0\n"
      "all_reduce plain cuda *      4 2K every  2 1 0\n"
      "all_reduce plain cuda        4 4K old    3 1 0\n"
      "all_reduce plain cuda pcie   4 8K behind 4 1 0\n");
  const auto algorithm = [&](Link link, std::size_t bytes) {
    return table
        .choose({.operation = "all_reduce",
                 .backend = "cuda",
                 .members = 4,
                 .bytes = bytes,
                 .link = link})
        .algorithm;
  };
  EXPECT_EQ(algorithm(Link::shared, 1024), "same");
  EXPECT_EQ(algorithm(Link::nvlink, 1024), "near");
  EXPECT_EQ(algorithm(Link::pcie, 1024), "far");
  EXPECT_EQ(algorithm(Link::pcie_atomics, 1024), "far");
  for (const Link link : {Link::shared, Link::nvlink, Link::pcie_atomics, Link::pcie}) {
    EXPECT_EQ(algorithm(link, 2048), "every") << name(link);
    EXPECT_EQ(algorithm(link, 4096), "old") << "a row of nine words is for any link";
  }
  EXPECT_EQ(algorithm(Link::pcie, 8192), "behind");
  const std::string message =
      expect_error(Errc::unsupported, [&] { algorithm(Link::nvlink, 8192); }).what();
  EXPECT_NE(message.find("link nvlink"), std::string::npos) << message;
}

/// For a bf16 product; `can` is not asked about "automatic", and accepts all but "cannot".
std::string matmul_algorithm(const TuningTable& table, const MatmulShape& shape,
                             std::string_view layout = "nk", std::string_view backend = "host",
                             std::string_view device = {}, std::string_view dtype = "bf16") {
  return std::string(table.choose(
      {.dtype = dtype, .layout = layout, .backend = backend, .device = device, .shape = shape},
      [](std::string_view algorithm) {
        return algorithm != "cannot" && algorithm != "automatic";
      }));
}

TEST(TuningTables, TakeTheFirstRowThatFitsAProductAndCanDoIt) {
  const TuningTable table(
      "all_reduce * * * * ring 1 1 0\n"
      "matmul bf16 nk NVIDIA_H200 16 * *  first\n"
      "matmul bf16 nk *           16 1K 2K second   # a comment\n"
      "matmul bf16 *  cuda        * * *   cannot\n"
      "matmul *    kn host        64 * *  third\n"
      "matmul tf32 *  *           * * *   fourth\n"
      "*      *    *  * * * fifth 1 1 0\n");
  EXPECT_EQ(matmul_algorithm(table, {16, 4096, 4096}, "nk", "cuda", "NVIDIA_H200"), "first");
  EXPECT_EQ(matmul_algorithm(table, {17, 1, 1}, "nk", "cuda", "NVIDIA_H200"), "automatic")
      << "what cannot do it decides nothing";
  EXPECT_EQ(matmul_algorithm(table, {16, 1024, 2048}), "second");
  EXPECT_EQ(matmul_algorithm(table, {17, 1024, 2048}), "automatic");
  EXPECT_EQ(matmul_algorithm(table, {16, 1025, 2048}), "automatic");
  EXPECT_EQ(matmul_algorithm(table, {16, 1024, 2049}), "automatic");
  EXPECT_EQ(matmul_algorithm(table, {64, 4096, 4096}, "kn"), "third");
  EXPECT_EQ(matmul_algorithm(table, {65, 1, 1}, "kn"), "automatic");
  EXPECT_EQ(matmul_algorithm(table, {65, 1, 1}, "kn", "cuda", "", "tf32"), "fourth");
  EXPECT_EQ(algorithm(table, "all_reduce", 1), "ring") << "rows of collectives are apart";
  EXPECT_EQ(algorithm(table, "broadcast", 1), "fifth");
}

TEST(TuningTables, EndTheSearchForAProductAtAutomatic) {
  const TuningTable table(
      "matmul * nk * 16 * * automatic\n"
      "matmul * *  * *  * * simple\n");
  EXPECT_EQ(matmul_algorithm(table, {16, 1, 1}), "automatic");
  EXPECT_EQ(matmul_algorithm(table, {17, 1, 1}), "simple");
}

TEST(TuningTables, RefuseRowsOfProductsThatAreNone) {
  const auto refusal = [](const char* row) -> std::string {
    try {
      const TuningTable table(std::string("# head\n") + row);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return error.what();
    }
    return "none";
  };
  const auto expect = [&](const char* row, const char* part) {
    EXPECT_NE(refusal(row).find(part), std::string::npos) << row << ": " << refusal(row);
  };
  expect("matmul bf16 nk host 16 16 simple", "line 2: 7 words; expected 8 for matmul");
  expect("matmul * * * * * simple 1 1 0", "line 2: 10 words; expected 8 for matmul");
  expect("matmul bf16 nn host 16 16 16 simple", "line 2: layout (expected *, kn or nk) is 'nn'");
  expect("matmul bf16 nk host x 16 16 simple", "line 2: M is 'x'");
  expect("matmul bf16 nk host 16 -1 16 simple", "line 2: N is '-1'");
  expect("matmul bf16 nk host 16 16 1Q simple", "line 2: K is '1Q'");
}

TEST(TuningTables, NameLinksByThreeWords) {
  EXPECT_EQ(tuning_link(Link::shared), "shared");
  EXPECT_EQ(tuning_link(Link::apart), "shared") << "as if apart, on the same device";
  EXPECT_EQ(tuning_link(Link::nvlink), "nvlink");
  EXPECT_EQ(tuning_link(Link::pcie_atomics), "pcie");
  EXPECT_EQ(tuning_link(Link::pcie), "pcie");
}

TEST(TuningTables, NameDevicesByOneWord) {
  EXPECT_EQ(tuning_device("NVIDIA H200"), "NVIDIA_H200");
  EXPECT_EQ(tuning_device(" a\tb #3\n"), "_a_b__3_");
  EXPECT_EQ(tuning_device(""), "");
}

TEST(TuningTables, SkipBlankLinesAndComments) {
  const TuningTable table("\n  # a remark\n\tall_reduce * * * * packet 1 1 0 # and another\n\n#\n");
  EXPECT_EQ(algorithm(table, "all_reduce", 5), "packet");
}

TEST(TuningTables, WithoutARowForACaseSayWhich) {
  const TuningTable table("all_reduce plain host 4 1K packet 1 1 0\n");
  const std::pair<std::size_t, int> beyond[] = {{1025, 4}, {1024, 5}};
  for (const auto& [bytes, members] : beyond) {
    const std::string message = expect_error(Errc::unsupported, [&] {
                                  algorithm(table, "all_reduce", bytes, members);
                                }).what();
    for (const std::string& word : {std::string("all_reduce"), std::string("host"),
                                    std::to_string(bytes), std::to_string(members)})
      EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks " << word;
  }
  expect_error(Errc::unsupported, [&] { algorithm(TuningTable(""), "all_reduce", 0); });
}

struct BadLine {
  const char* line;
  const char* word;  ///< that the message has
};
constexpr BadLine bad_lines[] = {
    {"all_reduce plain host 2 1K packet 1 1", "8 words"},
    {"all_reduce plain host 2 1K packet 1 1 0 0", "'2'"},
    {"all_reduce plain host shared 2 1K packet 1 1 0 0", "11 words"},
    {"all_reduce plain host pcie_atomics 2 1K packet 1 1 0", "nvlink or pcie) is 'pcie_atomics'"},
    {"all_reduce plain host none 2 1K packet 1 1 0", "link (expected *"},
    {"all_reduce plain host nvlink two 1K packet 1 1 0", "'two'"},
    {"all_reduce", "1 words"},
    {"all_reduce shared host 2 1K packet 1 1 0", "'shared'"},
    {"all_reduce plain host two 1K packet 1 1 0", "'two'"},
    {"all_reduce plain host -2 1K packet 1 1 0", "'-2'"},
    {"all_reduce plain host 3000000000 1K packet 1 1 0", "'3000000000'"},
    {"all_reduce plain host 2 1KB packet 1 1 0", "'1KB'"},
    {"all_reduce plain host 2 99999999999999999999 packet 1 1 0", "'99999999999999999999'"},
    {"all_reduce plain host 2 1K packet 0 1 0", "'0'"},
    {"all_reduce plain host 2 1K packet 1025 1 0", "'1025'"},
    {"all_reduce plain host 2 1K packet * 1 0", "'*'"},
    {"all_reduce plain host 2 1K packet 1 0 0", "'0'"},
    {"all_reduce plain host 2 1K packet 1 3 0", "'3'"},
    {"all_reduce plain host 2 1K packet 1 8 0", "'8'"},
    {"all_reduce plain host 2 1K packet 1 1 some", "'some'"},
};

TEST(TuningTables, RefuseLinesThatAreNoRowsByTheirNumber) {
  for (const BadLine& bad : bad_lines) {
    const std::string text =
        std::string("# a remark\n\nbroadcast * * * * pull 1 1 0\n") + bad.line + "\nnonsense\n";
    const std::string message =
        expect_error(Errc::invalid_argument, [&] { TuningTable table(text); }).what();
    EXPECT_NE(message.find("line 4"), std::string::npos) << message;
    EXPECT_NE(message.find(bad.word), std::string::npos) << message << "\nlacks " << bad.word;
  }
}

TEST(TuningTables, HaveTheHashOfTheirText) {
  const std::string row = "all_reduce * * * * packet 1 1 0\n";
  EXPECT_EQ(TuningTable(row).hash(), TuningTable(row).hash());
  EXPECT_NE(TuningTable(row).hash(), TuningTable(row + row).hash());
}

/// Every power of two up to 2^40, and what lies around it.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all = {0};
  for (int power = 0; power <= 40; ++power)
    for (const int around : {-1, 0, 1})
      all.push_back((std::size_t{1} << power) + static_cast<std::size_t>(around));
  return all;
}

TEST(TheShippedTable, HasAnAnswerForEverything) {
  const TuningTable table(shipped_tuning_table());
  const TuningTable again(shipped_tuning_table());
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"all_reduce",
       [](const std::string& text) {
         const AllReduceAlgorithm algorithm = parse_all_reduce_algorithm(text);
         EXPECT_NE(algorithm, AllReduceAlgorithm::automatic);
         EXPECT_NE(algorithm, AllReduceAlgorithm::atomic) << "which does not know all reductions";
       }},
      {"reduce_scatter",
       [](const std::string& text) {
         EXPECT_NE(parse_reduce_scatter_algorithm(text), ReduceScatterAlgorithm::automatic);
       }},
      {"all_gather",
       [](const std::string& text) {
         EXPECT_NE(parse_all_gather_algorithm(text), AllGatherAlgorithm::automatic);
       }},
      {"all_to_all", [](const std::string&) {}},
      {"broadcast",
       [](const std::string& text) {
         EXPECT_NE(parse_broadcast_algorithm(text), BroadcastAlgorithm::automatic);
       }},
  };
  for (const auto& [operation, parse] : known)
    for (const bool symmetric : {false, true})
      for (const std::string_view backend : {"cuda", "host"})
        for (int members = 1; members <= max_team_size; ++members)
          for (const std::size_t bytes : sizes())
            for (const Link link : {Link::shared, Link::nvlink, Link::pcie_atomics, Link::pcie}) {
              const TuningCase what = {operation, symmetric, backend, "", members, bytes, link};
              const Choice choice = table.choose(what);
              parse(choice.algorithm);
              ASSERT_GE(choice.blocks, 1);
              ASSERT_TRUE(choice.tile == 1 || choice.tile == 2 || choice.tile == 4);
              ASSERT_EQ(choice, again.choose(what)) << "what was chosen before does not matter";
            }
}

/// The shipped rows without those that name a link.
std::string rows_for_any_link() {
  std::istringstream lines{std::string(shipped_tuning_table())};
  std::string rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const auto count = std::distance(std::istream_iterator<std::string>(words), {});
    if (line.starts_with('#') || count == 9) rows += line + "\n";
  }
  return rows;
}

TEST(TheShippedTable, ChoosesForOneGpuAsIfThereWereNoLinks) {
  const TuningTable table(shipped_tuning_table());
  const TuningTable measured(rows_for_any_link());
  bool differs = false;
  for (const char* operation :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"})
    for (const bool symmetric : {false, true})
      for (int members = 1; members <= max_team_size; ++members)
        for (const std::size_t bytes : sizes()) {
          TuningCase what = {operation, symmetric, "cuda", "", members, bytes};
          ASSERT_EQ(table.choose(what), measured.choose(what)) << operation << " " << bytes;
          what.link = Link::pcie;
          differs = differs || table.choose(what) != measured.choose(what);
        }
  EXPECT_TRUE(differs) << "over other links something else is chosen";
}

TEST(TheShippedTable, HasRowsForLinks) {
  const TuningTable table(shipped_tuning_table());
  const auto algorithm = [&](const char* operation, Link link, int members, std::size_t bytes) {
    return table
        .choose({.operation = operation,
                 .backend = "cuda",
                 .members = members,
                 .bytes = bytes,
                 .link = link})
        .algorithm;
  };
  constexpr std::size_t kib = 1024;
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 2, 512 * kib), "packet");
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 4, 128 * kib), "packet");
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 4, 512 * kib), "one_shot");
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 8, 64 * kib), "packet_two_shot");
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 8, 256 * kib), "one_shot");
  EXPECT_EQ(algorithm("all_reduce", Link::nvlink, 8, 512 * kib), "two_shot");
  EXPECT_EQ(algorithm("all_gather", Link::nvlink, 8, 512 * kib), "packet");
  EXPECT_EQ(algorithm("reduce_scatter", Link::nvlink, 8, 256 * kib), "packet");
  EXPECT_EQ(algorithm("all_reduce", Link::pcie, 8, 16 * kib), "one_shot");
  EXPECT_EQ(algorithm("all_reduce", Link::pcie_atomics, 2, 17 * kib), "two_shot_push");
  EXPECT_EQ(algorithm("reduce_scatter", Link::pcie, 8, 16 * kib), "push");
  EXPECT_EQ(algorithm("all_gather", Link::pcie_atomics, 8, 512 * kib), "push");
}

/// Makes `text` this process's table, as long as none has been read.
void use_table(const std::string& text) {
  std::string path = "/tmp/iridium-tuning-XXXXXX";
  const int file = ::mkstemp(path.data());
  require(file >= 0, "a temporary file");
  ::close(file);
  std::ofstream(path) << text;
  ::setenv("IRIDIUM_TUNING_TABLE", path.c_str(), 1);
  try {
    tuning_table();
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
  ::unlink(path.c_str());
}

IR_SCENARIO(table_from_a_file) {
  use_table(
      "all_reduce plain * * 1K  nonsense  1 1 0\n"
      "all_reduce plain * * 2K  automatic 1 1 0\n");
  require(
      tuning_table().choose({.operation = "broadcast", .backend = "host"}) ==
          TuningTable(shipped_tuning_table()).choose({.operation = "broadcast", .backend = "host"}),
      "what the file does not decide, the shipped table does");
  Context context(job);
  Stream stream = context.make_stream();
  auto in = context.allocate<float>(1024);
  auto out = context.allocate<float>(1024);
  const auto refusal = [&](std::size_t count) {
    return std::string(require_error(Errc::invalid_argument, {}, [&] {
                         all_reduce(stream, context.world(), out.data(), in.data(), count);
                       }).what());
  };
  require(refusal(256).find("'nonsense'") != std::string::npos, "the file's row was chosen");
  require(refusal(512).find("automatic") != std::string::npos, "a row that decides nothing");
  Memory(context).write(in, std::vector<float>(1024, 3));
  all_reduce(stream, context.world(), out.data(), in.data(), 1024);
  stream.synchronize();
  context.world().check();
  require(
      Memory(context).read(out) == std::vector<float>(1024, 3.0f * static_cast<float>(job.size)),
      "a size beyond the file's rows");
}
TEST(TuningFiles, GoBeforeTheShippedTable) {
  expect_all_ok(run_ranks(RankKind::processes, "table_from_a_file", 2));
}

IR_SCENARIO(table_of_tiny_rounds) {
  use_table("all_reduce plain * * * one_shot 1 1 8\n");
  Context context(job);
  Stream stream = context.make_stream();
  auto array = context.allocate<float>(1024);
  const std::string message =
      require_error(Errc::invalid_argument, {}, [&] {
        all_reduce(stream, context.world(), array.data(), array.data(), 1024);
      }).what();
  require(message.find("a round of the tuning table is 8 bytes; one_shot needs at least ") !=
              std::string::npos,
          message);
}
TEST(TuningFiles, WithRoundsThatAreTooSmallAreWhatIsBlamed) {
  expect_all_ok(run_ranks(RankKind::processes, "table_of_tiny_rounds", 2));
}

IR_SCENARIO(table_of_links) {
  use_table(
      "all_reduce * * nvlink * * near 1 1 0\n"
      "all_reduce * * pcie   * * far  1 1 0\n"
      "all_reduce * * shared * * same 1 1 0\n");
  const std::pair<Link, const char*> cases[] = {{Link::shared, "'same'"},
                                                {Link::nvlink, "'near'"},
                                                {Link::pcie_atomics, "'far'"},
                                                {Link::pcie, "'far'"}};
  for (const auto& [link, algorithm] : cases) {
    Context context(job, {.link = link});
    Stream stream = context.make_stream();
    auto array = context.allocate<float>(8);
    const auto chosen = [&](const Team& team) {
      return std::string(require_error(Errc::invalid_argument, {}, [&] {
                           all_reduce(stream, team, array.data(), array.data(), 8);
                         }).what());
    };
    const std::string message = chosen(context.world());
    require(message.find(algorithm) != std::string::npos, message);
    const Team teams[] = {context.make_team({0}), context.make_team({1})};
    require(chosen(teams[job.rank]).find("'same'") != std::string::npos,
            "no link lies within a rank");
  }
}
TEST(TuningFiles, DecideByTheTeamsLink) {
  expect_all_ok(run_ranks(RankKind::processes, "table_of_links", 2));
}

IR_SCENARIO(different_tables) {
  if (job.rank == 1) use_table("all_reduce * * * * packet 1 1 0\n");
  const std::string message =
      require_error(Errc::mismatch, {0, 1}, [&] { Context context(job); }).what();
  for (const char* word : {"tuning table", "rank 0 has", "rank 1 has"})
    require(message.find(word) != std::string::npos, message + "\nlacks " + word);
}
TEST(TuningFiles, MustBeTheSameOnAllRanks) {
  expect_all_ok(run_ranks(RankKind::processes, "different_tables", 2));
}

IR_SCENARIO(bad_table) {
  const std::string message = require_error(Errc::invalid_argument, {}, [&] {
                                use_table("# fine\nall_reduce * * * *\n");
                              }).what();
  const std::string path = std::getenv("IRIDIUM_TUNING_TABLE");
  require(message == "invalid_argument: " + path +
                         " (IRIDIUM_TUNING_TABLE): tuning table, line 2: 5 words; expected 9, or "
                         "10 with a link",
          message);
}
IR_SCENARIO(no_table) {
  // One without an end, and one from which nothing would ever come.
  const std::string fifo = testing::TempDir() + "tuning_fifo_" + std::to_string(::getpid());
  require(::mkfifo(fifo.c_str(), 0600) == 0, "mkfifo");
  for (const char* path : {"/nonexistent/table", "/tmp", "/dev/zero", fifo.c_str()}) {
    ::setenv("IRIDIUM_TUNING_TABLE", path, 1);
    const std::string message =
        require_error(Errc::invalid_argument, {}, [] { tuning_table(); }).what();
    require(message.find("IRIDIUM_TUNING_TABLE") != std::string::npos &&
                message.find(path) != std::string::npos,
            message);
  }
  ::unlink(fifo.c_str());
  const std::pair<std::string, const char*> reasons[] = {
      {"/nonexistent/table", "No such file or directory"},
      {"/tmp/" + std::string(300, 'x'), "File name too long"}};
  for (const auto& [path, reason] : reasons) {
    ::setenv("IRIDIUM_TUNING_TABLE", path.c_str(), 1);
    const std::string message =
        require_error(Errc::invalid_argument, {}, [] { tuning_table(); }).what();
    require(message.ends_with("'" + path + "', which cannot be read: " + reason), message);
  }
}
IR_SCENARIO(empty_table) {
  use_table("");
  const TuningCase what = {.operation = "all_reduce", .backend = "host"};
  require(tuning_table().choose(what) == TuningTable(shipped_tuning_table()).choose(what),
          "the shipped table decides all");
}
TEST(TuningFiles, ThatAreNoTablesAreRefused) {
  expect_all_ok(run_ranks(RankKind::processes, "bad_table", 1));
  expect_all_ok(run_ranks(RankKind::processes, "no_table", 1));
}
TEST(TuningFiles, MayBeEmpty) {
  expect_all_ok(run_ranks(RankKind::processes, "empty_table", 1));
}

TEST(UsefulBlocks, GrowWithTheMessage) {
  // A packet or a vector for each of 512 threads.
  const std::pair<const char*, std::size_t> cases[] = {{"packet", 4096}, {"two_shot", 8192}};
  for (const auto& [algorithm, least] : cases) {
    EXPECT_EQ(useful_blocks(0, algorithm), 1);
    EXPECT_EQ(useful_blocks(least, algorithm), 1);
    EXPECT_EQ(useful_blocks(least + 1, algorithm), 2);
    EXPECT_EQ(useful_blocks(std::size_t{1} << 40, algorithm), 1024);
  }
}

}  // namespace
}  // namespace iridium::test

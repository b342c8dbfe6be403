#include "cli/peers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::json;

/// Four ranks on GPUs of their own, all pairs alike.
PeersReport four_gpus() {
  PeersReport report{"cuda", {0, 1, 2, 3}, {}};
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to)
      if (from != to) report.pairs.push_back({from, to, Link::nvlink, 2.5, 400, 380, {}, {}});
  return report;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PeersReports, GoThroughAFileUnchangedUpToALineThatIsCutOff) {
  const PeersReport report = four_gpus();
  std::string text = as_line(report.backend, report.devices);
  // Both directions of a pair come one after the other.
  for (const bool is_back : {false, true})
    for (const PeerFigures& pair : report.pairs)
      if ((pair.from > pair.to) == is_back) text += as_line(pair);
  std::stringstream file(text);
  const PeersReport read = read_peers(file);
  EXPECT_EQ(peers_as_json("1", read), peers_as_json("1", report));
  EXPECT_TRUE(read.is_well());

  std::stringstream cut(text.substr(0, text.size() - 5));
  const PeersReport shorter = read_peers(cut);
  EXPECT_EQ(shorter.pairs.size(), 11u);
  EXPECT_FALSE(shorter.is_well());
}

TEST(PeersReports, AreMatricesForPeople) {
  const std::string text = peers_as_table(four_gpus());
  EXPECT_TRUE(has(text, "rank 3 uses GPU 3\n")) << text;
  EXPECT_TRUE(has(text,
                  "link\n"
                  "rank  0       1       2       3\n"
                  "0     -       nvlink  nvlink  nvlink\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "stores, GB/s\n"
                  "rank  0    1    2    3\n"
                  "0     -    400  400  400\n"))
      << text;
  EXPECT_TRUE(has(text, "12 of 12 pairs")) << text;
  EXPECT_FALSE(has(text, "note:")) << text;
}

TEST(PeersReports, AreObjectsForPrograms) {
  const Json json = Json::parse(peers_as_json("1.2.3", four_gpus()));
  EXPECT_EQ(json.at("version"), "1.2.3");
  EXPECT_EQ(json.at("devices"), Json({0, 1, 2, 3}));
  EXPECT_EQ(json.at("pairs").size(), 12u);
  EXPECT_EQ(json.at("pairs").at(0).at("link"), "nvlink");
  EXPECT_EQ(json.at("pairs").at(0).at("store_gbps"), 400);
  EXPECT_EQ(json.at("pairs").at(0).at("load_gbps"), 380);
  EXPECT_EQ(json.at("pairs").at(0).at("error"), "");
  EXPECT_EQ(json.at("hints"), Json::array());
  EXPECT_EQ(json.at("well"), true);
}

TEST(PeerHints, NamePairsThatAreWrong) {
  PeersReport report = four_gpus();
  report.pairs[3].wrong = "word 0 of 5 that rank 1 stored to rank 0 is 0x0, not 0x1";
  const auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 2u);
  EXPECT_EQ(hints[0], report.pairs[3].wrong);
  for (const char* part : {"IOMMU", "ACS", "trained down", "nvidia-smi topo -m"})
    EXPECT_TRUE(has(hints[1], part)) << hints[1];
  EXPECT_FALSE(report.is_well());
  const std::string text = peers_as_table(report);
  EXPECT_TRUE(has(text,
                  "loads, GB/s\n"
                  "rank  0      1    2    3\n"
                  "0     -      380  380  380\n"
                  "1     wrong  -    380  380\n"))
      << text;
  EXPECT_TRUE(has(text, "11 of 12 pairs")) << text;

  report.pairs[3].link = Link::shared;
  EXPECT_EQ(peer_hints(report).size(), 1u) << "one GPU has no switch inside";
}

TEST(PeerHints, NamePairsThatAreSlowForTheirLink) {
  PeersReport report = four_gpus();
  // All alike, as an IOMMU makes them: no pair is slow beside another one.
  for (PeerFigures& pair : report.pairs) pair.store_gbps = 19;
  auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 13u);
  EXPECT_EQ(hints[0],
            "rank 0 stores to rank 1 at 19.0 GB/s; a link of this kind (nvlink) reaches 20");
  EXPECT_TRUE(has(hints[12], "IOMMU")) << hints[12];
  EXPECT_TRUE(report.is_well()) << "slow is not wrong";

  for (PeerFigures& pair : report.pairs) pair.link = Link::pcie;
  EXPECT_TRUE(peer_hints(report).empty());
  for (PeerFigures& pair : report.pairs) pair.load_gbps = 0.05;
  hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 13u);
  EXPECT_EQ(hints[0],
            "rank 0 loads from rank 1 at 0.05 GB/s; a link of this kind (pcie) reaches 4");
}

TEST(PeerHints, NamePairsThatAreSlowBesideOthersWithTheirLink) {
  PeersReport report = four_gpus();
  report.pairs[0].load_gbps = 90;
  const auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 2u);
  EXPECT_EQ(hints[0], "rank 0 loads from rank 1 at 90.0 GB/s; others with this link reach 380");

  // Another link is not expected to be as fast.
  report.pairs[0].link = Link::pcie;
  EXPECT_TRUE(peer_hints(report).empty());
}

TEST(PeerHints, AskNothingOfRanksThatShareAGpu) {
  for (const Link link : {Link::shared, Link::apart}) {
    PeersReport report = four_gpus();
    for (PeerFigures& pair : report.pairs) pair.link = link;
    report.pairs[0].store_gbps = report.pairs[1].load_gbps = 0.1;
    EXPECT_TRUE(peer_hints(report).empty()) << name(link);
  }
}

TEST(PeerHints, NamePairsThatCouldNotBeMeasured) {
  PeersReport report = four_gpus();
  report.pairs[3] = {1, 0, Link::pcie, 0, 7, 0, {}, "rank 1: no room"};
  const auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0], "rank 1 and the memory of rank 0 could not be measured: rank 1: no room");
  EXPECT_FALSE(report.is_well());

  const std::string text = peers_as_table(report);
  EXPECT_TRUE(has(text, "1     pcie    -       nvlink  nvlink\n")) << text;
  EXPECT_TRUE(has(text, "1     7.0  -    400  400\n")) << text;
  EXPECT_TRUE(has(text, "1     failed  -    380  380\n")) << text;
  EXPECT_TRUE(has(text, "11 of 12 pairs")) << text;
  const Json json = Json::parse(peers_as_json("1", report));
  EXPECT_EQ(json.at("pairs").at(3).at("link"), "pcie");
  EXPECT_EQ(json.at("pairs").at(3).at("error"), "rank 1: no room");
  EXPECT_EQ(json.at("well"), false);
}

TEST(Peers, AreMeasured) {
  const CommandResult result =
      run_command({"info", "--peers", "-n", "4", "--backend", "host", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("backend"), "host");
  EXPECT_EQ(json.at("devices"), Json({-1, -1, -1, -1}));
  EXPECT_EQ(json.at("well"), true);
  EXPECT_EQ(json.at("hints"), Json::array());
  ASSERT_EQ(json.at("pairs").size(), 12u);
  std::size_t next = 0;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      const Json& pair = json.at("pairs").at(next++);
      EXPECT_EQ(pair.at("from"), from);
      EXPECT_EQ(pair.at("to"), to);
      EXPECT_EQ(pair.at("link"), "shared");
      EXPECT_EQ(pair.at("wrong"), "");
      EXPECT_EQ(pair.at("error"), "");
      for (const char* figure : {"barrier_us", "store_gbps", "load_gbps"})
        EXPECT_GT(pair.at(figure).get<double>(), 0) << figure;
    }
}

TEST(Peers, AreShownForPeople) {
  const CommandResult result = run_command({"info", "--peers", "-n", "2"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_TRUE(has(result.output,
                  "link\n"
                  "rank  0       1\n"
                  "0     -       shared\n"
                  "1     shared  -\n"))
      << result.output;
  EXPECT_TRUE(has(result.output, "\nstores, GB/s\n")) << result.output;
  EXPECT_TRUE(has(result.output, "\nloads, GB/s\n")) << result.output;
  EXPECT_TRUE(has(result.output, "2 of 2 pairs")) << result.output;
  EXPECT_EQ(run_command({"info", "--peers", "-n", "1"}).status, 0) << "one rank has no peers";
}

TEST(Peers, RefuseWhatIsNoQuestion) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"info", "--peers", "--settings"},
                                             {"info", "--peers", "-n", "65"},
                                             {"info", "--peers", "--choose", "all_reduce"},
                                             {"info", "-n", "4"},
                                             {"info", "--backend", "host"}})
    EXPECT_EQ(run_command(arguments).status, 2) << arguments.back();
}

TEST(Peers, SayWhyRanksCannotStart) {
  const CommandResult result = run_command({"info", "--peers", "--backend", "cuda"});
  if (result.status == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(result.output, "");
  EXPECT_TRUE(has(result.error, "cuda")) << result.error;
}

}  // namespace
}  // namespace iridium::cli

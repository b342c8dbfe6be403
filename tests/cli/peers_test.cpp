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
      if (from != to) report.pairs.push_back({from, to, Link::nvlink, 2.5, 400, 380, {}});
  return report;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PeersReports, GoThroughAFileUnchangedUpToALineThatIsCutOff) {
  const PeersReport report = four_gpus();
  std::string text = as_line(report.backend, report.devices);
  for (const PeerFigures& pair : report.pairs) text += as_line(pair);
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
                  "put, GB/s\n"
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
  EXPECT_EQ(json.at("pairs").at(0).at("put_gbps"), 400);
  EXPECT_EQ(json.at("hints"), Json::array());
  EXPECT_EQ(json.at("well"), true);
}

TEST(PeerHints, NamePairsThatAreWrong) {
  PeersReport report = four_gpus();
  report.pairs[3].wrong = "word 0 of 5 that was put is 0x0, not 0x1";
  const auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_TRUE(has(hints[0], "rank 1 and the memory of rank 0: word 0 of 5")) << hints[0];
  EXPECT_TRUE(has(hints[0], "ACS")) << hints[0];
  EXPECT_FALSE(report.is_well());
  EXPECT_TRUE(has(peers_as_table(report), "11 of 12 pairs"));

  report.pairs[3].link = Link::shared;
  EXPECT_FALSE(has(peer_hints(report)[0], "ACS")) << "one GPU has no switch inside";
}

TEST(PeerHints, NamePairsThatAreSlowBesideOthersWithTheirLink) {
  PeersReport report = four_gpus();
  report.pairs[0].get_gbps = 90;
  const auto hints = peer_hints(report);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_TRUE(has(hints[0], "rank 0 reads from rank 1 at 90.0 GB/s")) << hints[0];
  EXPECT_TRUE(has(hints[0], "380")) << hints[0];

  // Another link is not expected to be as fast.
  report.pairs[0].link = Link::pcie;
  EXPECT_TRUE(peer_hints(report).empty());
}

TEST(Peers, AreMeasured) {
  const CommandResult result =
      run_command({"info", "--peers", "-n", "3", "--backend", "host", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("backend"), "host");
  EXPECT_EQ(json.at("devices"), Json({-1, -1, -1}));
  ASSERT_EQ(json.at("pairs").size(), 6u);
  for (const Json& pair : json.at("pairs")) {
    EXPECT_EQ(pair.at("link"), "shared");
    EXPECT_EQ(pair.at("wrong"), "");
    for (const char* figure : {"barrier_us", "put_gbps", "get_gbps"})
      EXPECT_GT(pair.at(figure).get<double>(), 0) << figure;
  }
}

TEST(Peers, AreShownForPeople) {
  const CommandResult result = run_command({"info", "--peers", "-n", "2"});
  ASSERT_EQ(result.status, 0) << result.error;
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

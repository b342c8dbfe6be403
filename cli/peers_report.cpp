#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/peers.h"
#include "cli/text_table.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Raised whenever a field changes its meaning or goes away.
constexpr int schema = 1;

/// Below this share of the best pair with the same link a pair is called slow.
constexpr double slow_share = 0.6;

/// Errors quote what drivers say, which need not be UTF-8.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const PeerFigures& pair) {
  return {{"from", pair.from},
          {"to", pair.to},
          {"link", name(pair.link)},
          {"barrier_us", pair.barrier_us},
          {"store_gbps", pair.store_gbps},
          {"load_gbps", pair.load_gbps},
          {"wrong", pair.wrong},
          {"error", pair.error}};
}

PeerFigures figures_from(const Json& json) {
  PeerFigures pair;
  pair.from = json.at("from");
  pair.to = json.at("to");
  pair.link = parse_link(json.at("link").get<std::string>());
  pair.barrier_us = json.at("barrier_us");
  pair.store_gbps = json.at("store_gbps");
  pair.load_gbps = json.at("load_gbps");
  pair.wrong = json.at("wrong");
  pair.error = json.at("error");
  return pair;
}

std::string number_text(double value) {
  if (value < 1) return fmt::format("{:.2g}", value);
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

/// Rows are the ranks that act, columns those whose memory they reach.
std::string matrix(const PeersReport& report, const std::string& title,
                   const std::function<std::string(const PeerFigures&)>& cell) {
  const int ranks = report.ranks();
  TextTable::Row heading = {"rank"};
  for (int to = 0; to < ranks; ++to) heading.push_back(std::to_string(to));
  TextTable table(heading);
  for (int from = 0; from < ranks; ++from) {
    TextTable::Row row(heading.size(), "-");
    row[0] = std::to_string(from);
    for (const PeerFigures& pair : report.pairs)
      if (pair.from == from) row[static_cast<std::size_t>(pair.to) + 1] = cell(pair);
    table.add_row(row);
  }
  return title + "\n" + table.render() + "\n";
}

bool has_link(const PeerFigures& pair) {
  return pair.link != Link::shared && pair.link != Link::apart;
}

/// What pairs reach in this way that are slow for their link, or beside others with the same one.
/// Ranks that share a GPU share what disturbs it.
void find_slow_ones(const PeersReport& report, const std::string& verb,
                    double PeerFigures::* figure, std::vector<std::string>& hints) {
  for (const PeerFigures& pair : report.pairs) {
    const double rate = pair.*figure;
    if (rate == 0 || !pair.wrong.empty() || !has_link(pair)) continue;
    double best = 0;
    for (const PeerFigures& other : report.pairs)
      if (other.link == pair.link) best = std::max(best, other.*figure);
    std::string expected;
    if (const double least = least_gbps(pair.link); rate < least)
      expected = fmt::format("a link of this kind ({}) reaches {}", name(pair.link), least);
    else if (rate < slow_share * best)
      expected = fmt::format("others with this link reach {}", number_text(best));
    else
      continue;
    hints.push_back(fmt::format("rank {} {} rank {} at {} GB/s; {}", pair.from, verb, pair.to,
                                number_text(rate), expected));
  }
}

}  // namespace

bool PeersReport::is_well() const {
  const auto count = devices.size();
  return pairs.size() == count * (count - std::min<std::size_t>(count, 1)) &&
         std::ranges::all_of(pairs, &PeerFigures::is_well);
}

std::string as_line(const std::string& backend, const std::vector<int>& devices) {
  return text_of({{"backend", backend}, {"devices", devices}}, -1);
}

std::string as_line(const PeerFigures& figures) {
  return text_of(to_json(figures), -1);
}

PeersReport read_peers(std::istream& from) {
  PeersReport report;
  std::string line;
  while (std::getline(from, line) && !from.eof()) {
    const Json json = Json::parse(line);
    if (json.contains("backend")) {
      report.backend = json.at("backend");
      report.devices = json.at("devices").get<std::vector<int>>();
    } else {
      report.pairs.push_back(figures_from(json));
    }
  }
  std::ranges::sort(report.pairs, {},
                    [](const PeerFigures& pair) { return std::pair(pair.from, pair.to); });
  return report;
}

std::vector<std::string> peer_hints(const PeersReport& report) {
  std::vector<std::string> hints;
  find_slow_ones(report, "stores to", &PeerFigures::store_gbps, hints);
  find_slow_ones(report, "loads from", &PeerFigures::load_gbps, hints);
  bool blames_link = !hints.empty();
  for (const PeerFigures& pair : report.pairs) {
    if (pair.wrong.empty()) continue;
    hints.push_back(pair.wrong);
    blames_link = blames_link || has_link(pair);
  }
  if (blames_link)
    hints.emplace_back(
        "usual causes: an IOMMU that translates, ACS on a PCIe switch, or a link that trained "
        "down; `nvidia-smi topo -m` shows what lies between GPUs, docs/several_gpus.md what to do");
  for (const PeerFigures& pair : report.pairs)
    if (!pair.error.empty())
      hints.push_back(fmt::format("rank {} and the memory of rank {} could not be measured: {}",
                                  pair.from, pair.to, pair.error));
  return hints;
}

std::string peers_as_table(const PeersReport& report) {
  std::string text = fmt::format("{} ranks, backend {}\n", report.ranks(), report.backend);
  for (int rank = 0; rank < report.ranks(); ++rank)
    if (const int device = report.devices[static_cast<std::size_t>(rank)]; device >= 0)
      text += fmt::format("rank {} uses GPU {}\n", rank, device);
  text += "\nEvery row acts on the memory of the ranks in its columns.\n\n";
  text +=
      matrix(report, "link", [](const PeerFigures& pair) { return std::string(name(pair.link)); });
  const auto number = [](const PeerFigures& pair, double value) {
    return value == 0 && !pair.error.empty() ? "failed" : number_text(value);
  };
  text += matrix(report, "barrier of the two, microseconds",
                 [&](const PeerFigures& pair) { return number(pair, pair.barrier_us); });
  const auto rates = [&](const std::string& title, double PeerFigures::* rate) {
    text += matrix(report, title, [&](const PeerFigures& pair) {
      return pair.wrong.empty() ? number(pair, pair.*rate) : "wrong";
    });
  };
  rates("stores, GB/s", &PeerFigures::store_gbps);
  rates("loads, GB/s", &PeerFigures::load_gbps);
  for (const std::string& hint : peer_hints(report)) text += "note: " + hint + "\n";
  text += fmt::format("{} of {} pairs read and wrote each other's bytes as they should\n",
                      std::ranges::count_if(report.pairs, &PeerFigures::is_well),
                      report.ranks() * (report.ranks() - 1));
  return text;
}

std::string peers_as_json(std::string_view version, const PeersReport& report) {
  Json pairs = Json::array();
  for (const PeerFigures& pair : report.pairs) pairs.push_back(to_json(pair));
  return text_of({{"schema", schema},
                  {"version", version},
                  {"backend", report.backend},
                  {"devices", report.devices},
                  {"pairs", pairs},
                  {"hints", peer_hints(report)},
                  {"well", report.is_well()}},
                 2);
}

}  // namespace iridium::cli

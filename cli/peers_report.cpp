#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>

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
  return {{"from", pair.from},         {"to", pair.to},
          {"link", name(pair.link)},   {"barrier_us", pair.barrier_us},
          {"put_gbps", pair.put_gbps}, {"get_gbps", pair.get_gbps},
          {"wrong", pair.wrong}};
}

PeerFigures figures_from(const Json& json) {
  PeerFigures pair;
  pair.from = json.at("from");
  pair.to = json.at("to");
  pair.link = parse_link(json.at("link").get<std::string>());
  pair.barrier_us = json.at("barrier_us");
  pair.put_gbps = json.at("put_gbps");
  pair.get_gbps = json.at("get_gbps");
  pair.wrong = json.at("wrong");
  return pair;
}

std::string number_text(double value) {
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

/// A hint for pairs that move bytes in this direction much slower than the best with their link.
void find_slow_ones(const PeersReport& report, const std::string& verb,
                    double PeerFigures::* figure, std::vector<std::string>& hints) {
  for (const PeerFigures& pair : report.pairs) {
    // Ranks that share a GPU share what disturbs it.
    if (!pair.wrong.empty() || pair.link == Link::shared) continue;
    double best = 0;
    for (const PeerFigures& other : report.pairs)
      if (other.link == pair.link) best = std::max(best, other.*figure);
    if (pair.*figure >= slow_share * best) continue;
    hints.push_back(fmt::format(
        "rank {} {} rank {} at {} GB/s, others with this link reach {}: look at `nvidia-smi topo "
        "-m` for what lies between their GPUs; an IOMMU that translates, or ACS on a PCIe switch, "
        "sends such traffic through the CPU",
        pair.from, verb, pair.to, number_text(pair.*figure), number_text(best)));
  }
}

}  // namespace

bool PeersReport::is_well() const {
  const auto count = devices.size();
  return pairs.size() == count * (count - std::min<std::size_t>(count, 1)) &&
         std::ranges::all_of(pairs, [](const PeerFigures& pair) { return pair.wrong.empty(); });
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
  return report;
}

std::vector<std::string> peer_hints(const PeersReport& report) {
  std::vector<std::string> hints;
  for (const PeerFigures& pair : report.pairs)
    if (!pair.wrong.empty()) {
      hints.push_back(
          fmt::format("rank {} and the memory of rank {}: {}", pair.from, pair.to, pair.wrong));
      if (pair.link != Link::shared)
        hints.back() +=
            "; where GPUs do not get each other's bytes, an IOMMU that translates or ACS on a PCIe "
            "switch is the usual cause: see docs/several_gpus.md";
    }
  find_slow_ones(report, "writes to", &PeerFigures::put_gbps, hints);
  find_slow_ones(report, "reads from", &PeerFigures::get_gbps, hints);
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
  const auto figure = [&](const std::string& title, double PeerFigures::* value) {
    text += matrix(report, title, [value](const PeerFigures& pair) {
      return pair.wrong.empty() ? number_text(pair.*value) : "wrong";
    });
  };
  figure("barrier of the two, microseconds", &PeerFigures::barrier_us);
  figure("put, GB/s", &PeerFigures::put_gbps);
  figure("get, GB/s", &PeerFigures::get_gbps);
  const std::vector<std::string> hints = peer_hints(report);
  for (const std::string& hint : hints) text += "note: " + hint + "\n";
  const auto wrong = std::ranges::count_if(
      report.pairs, [](const PeerFigures& pair) { return !pair.wrong.empty(); });
  const int expected = report.ranks() * (report.ranks() - 1);
  text += fmt::format("{} of {} pairs read and wrote each other's bytes as they should\n",
                      static_cast<std::ptrdiff_t>(report.pairs.size()) - wrong, expected);
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

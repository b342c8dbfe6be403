// Measures Open MPI in the heats of `iridium bench` (docs/benchmarks.md, Peers): its barrier,
// MPI_Put and MPI_Get to the next rank of a ring, and its collectives. bench/peers/openmpi starts
// it.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "mpi_operations.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int rounds = 5;
constexpr double most_calls = 1e6;
/// Longer than the others of a heat may take.
constexpr std::chrono::minutes patience{10};

struct Options {
  int ranks = 0;
  std::filesystem::path plan;
  int samples = 0;
  double sample_us = 0;
  std::filesystem::path turns;
  std::filesystem::path rows;
};

/// One heat; its functions are collective.
class Contestant {
 public:
  Contestant(const World& world, const Heat& heat, const Options& options)
      : world_(world), heat_(heat), options_(options), skipped_(reason_to_skip(heat)) {
    if (!skipped_.empty()) return;
    operation_ = make_operation(world, heat);
    check("before");
    if (failed_.empty()) choose_calls();
  }

  void measure(int round) {
    if (!skipped_.empty() || !failed_.empty()) return;
    for (int i = round; i < options_.samples; i += rounds)
      samples_.push_back(time(calls_) / calls_);
  }

  /// To be called once, after the last round; the figures are rank 0's.
  std::vector<Json> figures() {
    if (skipped_.empty() && failed_.empty()) check("after");
    Json eager = figure("eager");
    if (!skipped_.empty())
      eager["skipped"] = skipped_;
    else if (!failed_.empty())
      eager["failed"] = failed_;
    else
      add_numbers(eager);
    Json graph = figure("graph");
    graph["skipped"] = skipped_.empty() ? "MPI has no graphs" : skipped_;
    return {graph, eager};
  }

 private:
  void check(const std::string& when) {
    const auto seed = world_.from_first(std::uint64_t{std::random_device()()} << 32);
    failed_ = world_.first_text(operation_->check(seed));
    if (!failed_.empty()) failed_.insert(0, "wrong result " + when + " the measurement: ");
  }

  /// Microseconds that `calls` take on this rank.
  double time(int calls) {
    world_.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) operation_->call();
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }

  /// Tries more and more calls, for as long as two samples: a rank that waits for a core for a
  /// while must not make all samples short.
  void choose_calls() {
    double best = std::numeric_limits<double>::infinity();
    double spent = 0;
    while (spent < 2 * options_.sample_us) {
      const double elapsed = world_.from_first(std::max(1e-3, time(calls_)));
      spent += elapsed;
      best = std::min(best, elapsed / calls_);
      if (elapsed < options_.sample_us / 4 && 2 * calls_ <= most_calls) calls_ *= 2;
    }
    calls_ = static_cast<int>(std::clamp(std::round(options_.sample_us / best), 1.0, most_calls));
  }

  Json figure(const std::string& mode) const {
    return {{"operation", heat_.operation}, {"contender", "openmpi"}, {"algorithm", ""},
            {"dtype", heat_.dtype},         {"op", heat_.op},         {"mode", mode},
            {"ranks", world_.ranks()},      {"bytes", heat_.bytes},   {"blocks", 0}};
  }

  void add_numbers(Json& figure) {
    std::ranges::sort(samples_);
    const auto at = [this](double share) {
      return samples_[static_cast<std::size_t>(share * static_cast<double>(samples_.size() - 1))];
    };
    const double gbps = static_cast<double>(operation_->payload()) / at(0.5) / 1000;
    figure.update({{"samples", samples_.size()},
                   {"calls", calls_},
                   {"median_us", at(0.5)},
                   {"p10_us", at(0.1)},
                   {"p90_us", at(0.9)},
                   {"algorithm_gbps", gbps},
                   {"bus_gbps", gbps * operation_->bus_factor()},
                   {"copy_share", 0}});
  }

  const World& world_;
  const Heat& heat_;
  const Options& options_;
  std::string skipped_;
  std::string failed_;
  std::unique_ptr<Operation> operation_;
  int calls_ = 1;
  std::vector<double> samples_;
};

/// The folder of turns, which rank 0 looks at for all.
class Turns {
 public:
  Turns(const World& world, const std::filesystem::path& folder) : world_(world), folder_(folder) {}

  /// Collective: waits for the file `name`; false when the run ends instead.
  bool wait(const std::string& name) const {
    return world_.from_first_later(world_.rank() == 0 && appears(name));
  }

  /// Creates a file; ranks other than 0 do nothing.
  void create(const std::string& name, const std::string& text = {}) const {
    if (world_.rank() != 0) return;
    std::ofstream file(folder_ / name);
    if (!(file << text).flush())
      throw std::runtime_error("cannot create " + (folder_ / name).string());
  }

 private:
  bool appears(const std::string& name) const {
    const auto deadline = Clock::now() + patience;
    // Both files come from `iridium bench`.
    while (!std::filesystem::exists(folder_ / name)) {
      if (std::filesystem::exists(folder_ / "end")) return false;
      if (Clock::now() > deadline)
        throw std::runtime_error((folder_ / name).string() + " did not appear within " +
                                 std::to_string(patience.count()) + " minutes");
      std::this_thread::sleep_for(pause_between_looks);
    }
    return true;
  }

  const World& world_;
  std::filesystem::path folder_;
};

/// Adds lines; what reads the file at the same time sees complete ones only.
void append(const std::filesystem::path& path, const std::vector<Json>& figures) {
  std::ofstream rows(path, std::ios::app);
  for (const Json& figure : figures) {
    const std::string line = figure.dump() + '\n';
    rows.write(line.data(), static_cast<std::streamsize>(line.size())).flush();
  }
  if (!rows) throw std::runtime_error("cannot write to " + path.string());
}

template <class Value>
Value number(const std::string& name, const std::string& text) {
  Value value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(value > 0))
    throw std::runtime_error(name + " must be a number above 0, not '" + text + "'");
  return value;
}

Options parse(std::span<char*> words) {
  std::map<std::string, std::string> given;
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (i + 1 == words.size()) throw std::runtime_error(std::string(words[i]) + " has no value");
    given[words[i]] = words[i + 1];
  }
  const auto take = [&given](const std::string& name) {
    auto node = given.extract(name);
    if (node.empty()) throw std::runtime_error(name + " is missing");
    return node.mapped();
  };
  Options options;
  options.ranks = number<int>("--ranks", take("--ranks"));
  options.plan = take("--plan");
  options.samples = number<int>("--samples", take("--samples"));
  options.sample_us = 1000 * number<double>("--sample-time", take("--sample-time"));
  options.turns = take("--turns");
  options.rows = take("--rows");
  if (!given.empty()) throw std::runtime_error("unknown argument " + given.begin()->first);
  return options;
}

std::vector<Heat> read_plan(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<Heat> heats;
  for (const Json& heat : Json::parse(file))
    heats.push_back({.number = heat.at("heat").get<int>(),
                     .operation = heat.at("operation").get<std::string>(),
                     .bytes = heat.at("bytes").get<std::size_t>(),
                     .dtype = heat.value("dtype", ""),
                     .op = heat.value("op", "")});
  return heats;
}

/// Takes the five turns of a heat; false when the run ended before the last one.
bool run_heat(const World& world, const Turns& turns, const Heat& heat, const Options& options) {
  std::unique_ptr<Contestant> contestant;
  for (int round = 0; round < rounds; ++round) {
    const std::string turn = std::to_string(heat.number) + "." + std::to_string(round);
    if (!turns.wait(turn)) return false;
    if (round == 0) contestant = std::make_unique<Contestant>(world, heat, options);
    contestant->measure(round);
    if (round == rounds - 1) {
      const std::vector<Json> figures = contestant->figures();
      // Before the last turn ends: what it frees takes time too.
      contestant.reset();
      if (world.rank() == 0) append(options.rows, figures);
    }
    // Nobody works any more once the turn is another one's.
    world.barrier();
    turns.create(turn + ".done");
  }
  return true;
}

/// "4.1.4", of the library that runs.
std::string version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string line = text.data();
  const std::string name = line.substr(0, line.find(','));
  const std::string prefix = "Open MPI v";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

void run(const Options& options) {
  const World world;
  if (world.ranks() != options.ranks)
    throw std::runtime_error("--ranks is " + std::to_string(options.ranks) + ", but mpirun made " +
                             std::to_string(world.ranks()) + " ranks");
  const std::vector<Heat> heats = read_plan(options.plan);
  const Turns turns(world, options.turns);
  turns.create("versions.json", Json{{"openmpi", version()}}.dump());
  world.barrier();
  turns.create("ready");
  for (const Heat& heat : heats)
    if (!run_heat(world, turns, heat, options)) return;
  turns.wait("end");
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  try {
    run(parse({words, static_cast<std::size_t>(count)}));
  } catch (const std::exception& error) {
    // One write, since all ranks share the stream.
    std::cerr << "mpi_peer: " + std::string(error.what()) + "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}

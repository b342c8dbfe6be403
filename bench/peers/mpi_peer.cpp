// Measures Open MPI in the heats of `iridium bench` (docs/benchmarks.md, Peers): MPI_Barrier, and
// MPI_Put and MPI_Get to the next rank of a ring. bench/peers/openmpi starts it.
// The C++ bindings that MPI has dropped do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
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
#include <type_traits>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Bytes = std::span<unsigned char>;

constexpr int rounds = 5;
constexpr double most_calls = 1e6;
/// How often a rank that waits for its turn looks: seldom, since others are being measured.
constexpr std::chrono::milliseconds pause_between_looks{5};
/// Longer than the others of a heat may take.
constexpr std::chrono::minutes patience{10};

struct Heat {
  int number = 0;
  std::string operation;
  std::size_t bytes = 0;
};

struct Options {
  int ranks = 0;
  std::filesystem::path plan;
  int samples = 0;
  double sample_us = 0;
  std::filesystem::path turns;
  std::filesystem::path rows;
};

/// The communicator of all ranks.
class World {
 public:
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int next() const { return (rank_ + 1) % ranks_; }
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

  /// Collective: what rank 0 gives.
  template <class Value>
  Value from_first(Value value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    MPI_Bcast(&value, sizeof(value), MPI_BYTE, 0, MPI_COMM_WORLD);
    return value;
  }

  /// Collective: the same, for a wait of minutes that leaves the cores to others.
  bool from_first_later(bool value) const {
    int word = value ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    int is_done = 0;
    // Ended by rank 0, which has a limit; when it dies mpirun ends the others.
    while (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), is_done == 0)
      std::this_thread::sleep_for(pause_between_looks);
    return word != 0;
  }

  /// Collective: the first text that is not empty, in the order of ranks.
  std::string first_text(const std::string& mine) const {
    using Line = std::array<char, 200>;
    Line line{};
    std::copy_n(mine.begin(), std::min(mine.size(), line.size() - 1), line.begin());
    std::vector<Line> all(static_cast<std::size_t>(ranks_));
    MPI_Allgather(line.data(), sizeof(Line), MPI_BYTE, all.data(), sizeof(Line), MPI_BYTE,
                  MPI_COMM_WORLD);
    for (const Line& one : all)
      if (one[0] != 0) return one.data();
    return "";
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
};

/// Bytes of a window that every rank has, open to all ranks until it is destroyed.
class Window {
 public:
  enum class Kind { remote, shared };

  /// Collective.
  Window(std::size_t bytes, Kind kind) : bytes_(bytes) {
    const auto allocate = kind == Kind::remote ? MPI_Win_allocate : MPI_Win_allocate_shared;
    allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    MPI_Win_lock_all(0, window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  /// Collective.
  ~Window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  Bytes mine() { return {static_cast<unsigned char*>(memory_), bytes_}; }
  /// Of a shared window: where another rank's bytes are.
  void* of_rank(int rank) const {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* memory = nullptr;
    MPI_Win_shared_query(window_, rank, &bytes, &unit, &memory);
    return memory;
  }

  void synchronize() const { MPI_Win_sync(window_); }
  MPI_Win get() const { return window_; }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

/// What is measured; all functions are collective.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  virtual void call() = 0;
  /// Bytes that a call moves for one rank.
  virtual std::size_t payload() const = 0;
  /// Calls it with inputs made of `seed`; what is wrong with this rank's result, or nothing.
  virtual std::string check(std::uint64_t seed) = 0;
};

class Barrier final : public Operation {
 public:
  explicit Barrier(const World& world)
      : world_(world), values_(sizeof(std::uint64_t), Window::Kind::shared) {}

  void call() override { MPI_Barrier(MPI_COMM_WORLD); }
  std::size_t payload() const override { return 0; }

  /// Every rank writes a value, some of them late, and after a barrier reads all of them.
  std::string check(std::uint64_t seed) override {
    std::string wrong;
    std::mt19937_64 random(seed);
    for (int step = 0; step < 10; ++step) {
      const std::uint64_t value = random();
      if (static_cast<int>(value % static_cast<unsigned>(world_.ranks())) == world_.rank())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      at(world_.rank()).store(value + static_cast<unsigned>(world_.rank()));
      values_.synchronize();
      call();
      values_.synchronize();
      for (int rank = 0; rank < world_.ranks(); ++rank)
        if (at(rank).load() != value + static_cast<unsigned>(rank) && wrong.empty())
          wrong = "rank " + std::to_string(world_.rank()) + " did not see what rank " +
                  std::to_string(rank) + " wrote before the barrier";
      // Not by the barrier under test: nobody overwrites what another one still reads.
      world_.first_text("");
    }
    return wrong;
  }

 private:
  std::atomic_ref<std::uint64_t> at(int rank) const {
    return std::atomic_ref(*static_cast<std::uint64_t*>(values_.of_rank(rank)));
  }

  const World& world_;
  Window values_;
};

void fill(Bytes bytes, std::uint64_t seed, int rank, unsigned char mask) {
  std::mt19937_64 random(seed + static_cast<unsigned>(rank));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random() ^ (mask * 0x0101'0101'0101'0101U);
    std::memcpy(&bytes[at], &word, std::min(sizeof(word), bytes.size() - at));
  }
}

/// MPI_Put to the next rank, or MPI_Get from it, each with a flush.
class RingCopy final : public Operation {
 public:
  enum class Kind { put, get };

  RingCopy(const World& world, std::size_t bytes, Kind kind)
      : world_(world), kind_(kind), local_(bytes), window_(bytes, Window::Kind::remote) {}

  void call() override {
    const int count = static_cast<int>(local_.size());
    const auto move = [&](auto function) {
      function(local_.data(), count, MPI_BYTE, world_.next(), 0, count, MPI_BYTE, window_.get());
    };
    if (kind_ == Kind::put)
      move(MPI_Put);
    else
      move(MPI_Get);
    MPI_Win_flush(world_.next(), window_.get());
  }

  std::size_t payload() const override { return local_.size(); }

  std::string check(std::uint64_t seed) override {
    const bool is_put = kind_ == Kind::put;
    const Bytes input = is_put ? Bytes(local_) : window_.mine();
    const Bytes output = is_put ? window_.mine() : Bytes(local_);
    const int source = is_put ? world_.previous() : world_.next();
    fill(input, seed, world_.rank(), 0);
    // No byte is right before the call.
    fill(output, seed, source, 0xff);
    window_.synchronize();
    world_.barrier();
    call();
    world_.barrier();
    window_.synchronize();
    return difference(output, seed, source);
  }

 private:
  std::string difference(Bytes output, std::uint64_t seed, int source) const {
    std::vector<unsigned char> expected(output.size());
    fill(expected, seed, source, 0);
    const auto [wrong, right] = std::ranges::mismatch(output, expected);
    if (right == expected.end()) return "";
    return "rank " + std::to_string(world_.rank()) + ": byte " +
           std::to_string(right - expected.begin()) + " from rank " + std::to_string(source) +
           " is " + std::to_string(*wrong) + ", not " + std::to_string(*right);
  }

  const World& world_;
  Kind kind_;
  std::vector<unsigned char> local_;
  Window window_;
};

/// Why the heat is skipped, or nothing.
std::string reason_to_skip(const Heat& heat) {
  if (heat.operation == "device_barrier") return "";
  if (heat.operation != "put" && heat.operation != "get")
    return "Open MPI has no such operation here";
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (heat.bytes <= most) return "";
  return "a call of MPI moves " + std::to_string(most) + " bytes at most";
}

std::unique_ptr<Operation> make_operation(const World& world, const Heat& heat) {
  if (heat.operation == "device_barrier") return std::make_unique<Barrier>(world);
  const auto kind = heat.operation == "put" ? RingCopy::Kind::put : RingCopy::Kind::get;
  return std::make_unique<RingCopy>(world, heat.bytes, kind);
}

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
    return {{"operation", heat_.operation},
            {"contender", "openmpi"},
            {"algorithm", ""},
            {"dtype", ""},
            {"mode", mode},
            {"ranks", world_.ranks()},
            {"bytes", heat_.bytes},
            {"blocks", 0}};
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
                   {"bus_gbps", gbps},
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
  void create(const std::string& name) const {
    if (world_.rank() != 0) return;
    if (!std::ofstream(folder_ / name))
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
                     .bytes = heat.at("bytes").get<std::size_t>()});
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

void run(const Options& options) {
  const World world;
  if (world.ranks() != options.ranks)
    throw std::runtime_error("--ranks is " + std::to_string(options.ranks) + ", but mpirun made " +
                             std::to_string(world.ranks()) + " ranks");
  const std::vector<Heat> heats = read_plan(options.plan);
  const Turns turns(world, options.turns);
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

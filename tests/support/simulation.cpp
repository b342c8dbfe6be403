#include "support/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>

#include "support/sanitizers.h"

namespace iridium::test {
namespace {

constexpr std::size_t max_teams = 4;
constexpr std::align_val_t line{128};

std::size_t lane_bytes(const SimulationOptions& options) {
  return lay_out_lane(options.ranks, options.lane).bytes;
}

const char* name(Scope scope) {
  return scope == Scope::block ? "block" : scope == Scope::device ? "device" : "system";
}

}  // namespace

Simulation::Simulation(const SimulationOptions& options)
    : options_(options),
      stride_((options.data_bytes + max_teams * lane_bytes(options) + 4095) / 4096 * 4096),
      used_((options.data_bytes + 127) / 128 * 128),
      scheduler_({.split = options.split, .seed = options.seed}, this) {
  const std::size_t bytes = stride_ * static_cast<std::size_t>(options.ranks);
  auto* memory = static_cast<std::byte*>(::operator new(bytes, line));
  std::memset(memory, 0, bytes);
  window_ = {memory, [](std::byte* address) { ::operator delete(address, line); }};
  std::vector<int> everyone(static_cast<std::size_t>(options.ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  make_team(everyone);
}

Simulation::~Simulation() = default;

std::byte* Simulation::segment(int rank) const {
  return window_.get() + static_cast<std::size_t>(rank) * stride_;
}

std::uint32_t* Simulation::data(int rank) const {
  return reinterpret_cast<std::uint32_t*>(segment(rank));
}

int Simulation::make_team(const std::vector<int>& ranks) {
  if (teams_.size() == max_teams) throw std::logic_error("too many simulated teams");
  const LaneLayout layout = lay_out_lane(static_cast<int>(ranks.size()), options_.lane);
  SimulatedTeam team = {ranks, used_, {}, {}};
  team.faults.resize(ranks.size());
  used_ += layout.bytes;
  for (const int rank : ranks) {
    std::byte* const base = segment(rank) + team.offset;
    auto* state = reinterpret_cast<LaneState*>(base);
    state->calls = std::uint64_t{options_.first_step} << 32;
    std::copy(ranks.begin(), ranks.end(), state->ranks);
    auto* blocks = reinterpret_cast<LaneBlock*>(base + sizeof(LaneState));
    for (int block = 0; block < layout.max_blocks; ++block) {
      blocks[block].counter = options_.first_counter;
      std::ranges::fill(blocks[block].flags, options_.first_counter);
    }
    team.status.push_back(std::make_unique<LaneStatus>());
  }
  teams_.push_back(std::move(team));
  return static_cast<int>(teams_.size()) - 1;
}

int Simulation::place(const SimulatedTeam& team, int rank) const {
  return static_cast<int>(std::find(team.ranks.begin(), team.ranks.end(), rank) -
                          team.ranks.begin());
}

Lane Simulation::lane(int rank, int team_index, std::string_view operation) const {
  const SimulatedTeam& team = teams_[static_cast<std::size_t>(team_index)];
  const int mine = place(team, rank);
  return make_lane(lay_out_lane(static_cast<int>(team.ranks.size()), options_.lane),
                   {.ranks = team.ranks,
                    .place = mine,
                    .base = segment(rank) + team.offset,
                    .stride = stride_,
                    .status = team.status[static_cast<std::size_t>(mine)].get(),
                    .timeout_ns = options_.timeout_turns * 1000,
                    .link = options_.link,
                    .call_id = ++calls_},
                   operation);
}

void Simulation::queue(int rank, int stream, int blocks, const detail::KernelEntry& entry,
                       std::vector<std::byte> kernel) {
  auto launch = std::make_unique<Launch>();
  launch->kernel = std::move(kernel);
  launch->grid.entry = &entry;
  launch->grid.kernel = launch->kernel.data();
  launch->grid.blocks = blocks;
  launch->grid.rank = rank;
  streams_[{rank, stream}].push_back(std::move(launch));
}

void Simulation::run() {
  std::exception_ptr failure;
  for (auto& [stream, launches] : streams_)
    if (!launches.empty()) scheduler_.add(launches.front()->grid);
  bool more = true;
  while (more) {
    turns_.set(turns_.get() + 1);
    more = scheduler_.turn();
    let_hosts_look();
    for (auto& [stream, launches] : streams_) {
      if (launches.empty() || !launches.front()->grid.done()) continue;
      if (launches.front()->grid.failure && !failure) failure = launches.front()->grid.failure;
      launches.pop_front();
      if (launches.empty()) continue;
      scheduler_.add(launches.front()->grid);
      more = true;
    }
  }
  if (failure) std::rethrow_exception(failure);
}

std::optional<FaultRecord> Simulation::fault(int rank, int team_index) const {
  const SimulatedTeam& team = teams_[static_cast<std::size_t>(team_index)];
  return team.faults[static_cast<std::size_t>(place(team, rank))];
}

void Simulation::let_hosts_look() {
  for (SimulatedTeam& team : teams_)
    for (std::size_t i = 0; i < team.ranks.size(); ++i) {
      LaneStatus& status = *team.status[i];
      if (!team.faults[i] && std::atomic_ref(status.failed).load(std::memory_order_acquire) != 0)
        team.faults[i] = status.fault;
    }
}

void Simulation::abort(int rank, int team_index) {
  SimulatedTeam& team = teams_[static_cast<std::size_t>(team_index)];
  team.status[static_cast<std::size_t>(place(team, rank))]->abort = 1;
}

void Simulation::leave(int rank, int team_index) {
  SimulatedTeam& team = teams_[static_cast<std::size_t>(team_index)];
  for (const auto& status : team.status) status->left |= std::uint64_t{1} << place(team, rank);
}

std::uint64_t Simulation::nanoseconds() {
  return turns_.get() * 1000;
}

// ThreadSanitizer takes fibers for threads, and would take this bookkeeping for their race.
void Simulation::loaded(const RunningGrid& grid, const void* address, Scope scope) {
  if (under_thread_sanitizer) return;
  const auto last = last_stores_.find(address);
  if (last == last_stores_.end() || last->second.rank == grid.rank) return;
  for (const Scope used : {scope, last->second.scope})
    if (used != Scope::system)
      throw std::logic_error(fmt::format("rank {} reads at {} scope what rank {} wrote at {} scope",
                                         grid.rank, name(scope), last->second.rank,
                                         name(last->second.scope)));
}

bool Simulation::is_remote(const RunningGrid& grid, const void* address) const {
  const auto offset = static_cast<const std::byte*>(address) - segment(grid.rank);
  const bool mine = offset >= 0 && static_cast<std::size_t>(offset) < stride_;
  const auto in_window = static_cast<const std::byte*>(address) - window_.get();
  const bool somebodys = in_window >= 0 && static_cast<std::size_t>(in_window) <
                                               stride_ * static_cast<std::size_t>(options_.ranks);
  return somebodys && !mine;
}

void Simulation::stored(const RunningGrid& grid, const void* address, Scope scope) {
  if (under_thread_sanitizer) return;
  if (is_remote(grid, address) && scope != Scope::system)
    throw std::logic_error(
        fmt::format("rank {} writes to another rank's memory at {} scope", grid.rank, name(scope)));
  last_stores_[address] = {grid.rank, scope};
}

void Simulation::updated(const RunningGrid& grid, const void* address, Scope scope) {
  stored(grid, address, scope);
  if (is_remote(grid, address) && !has_native_atomics(options_.link))
    throw std::logic_error(
        fmt::format("rank {} updates another rank's memory atomically over the link {}", grid.rank,
                    name(options_.link)));
}

}  // namespace iridium::test

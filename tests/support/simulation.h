// All ranks of a job in one thread, with every turn drawn from a seed: the same seed, the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/host/block_scheduler.h"
#include "iridium/iridium.h"
#include "runtime/lane_layout.h"

namespace iridium::test {

struct SimulationOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  bool split = false;
  TeamOptions lane = {.max_blocks = 8, .scratch_bytes = 4096, .packet_bytes = 8192, .name = {}};
  std::size_t data_bytes = 1u << 16;      ///< per rank
  std::uint64_t timeout_turns = 300'000;  ///< of every wait
  std::uint32_t first_step = 0;           ///< where the lanes' steps begin
  std::uint32_t first_counter = 0;        ///< where the lanes' barrier counters begin
  Link link = Link::shared;
};

/// Lanes, memory and kernels of ranks that exist only in this object. Kernels are the real ones, on
/// the host target; what is missing is processes, sockets and threads.
class Simulation final : private BlockObserver {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation() override;

  /// Another team, with a lane of its own; team 0 is all ranks in order.
  int make_team(const std::vector<int>& ranks);
  /// The lane of a team as `rank` holds it, for one launch.
  Lane lane(int rank, int team = 0, std::string_view operation = "test") const;
  /// Symmetric memory of `data_bytes` bytes, zero at first.
  std::uint32_t* data(int rank) const;

  /// Queues a kernel on one of the rank's streams.
  template <class Kernel>
  void launch(int rank, int blocks, const Kernel& kernel, int stream = 0) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&kernel);
    queue(rank, stream, blocks, detail::kernel_entry<Kernel, detail::ThisCompiler>(),
          std::vector<std::byte>(bytes, bytes + sizeof kernel));
  }

  /// Runs everything queued to its end; throws what a block threw.
  void run();

  /// What the rank's host has found; it looks after every turn.
  std::optional<FaultRecord> fault(int rank, int team = 0) const;
  /// What the rank's host tells kernels; see `LaneStatus::abort`.
  void abort(int rank, int team = 0);
  /// Every host tells its kernels that `rank` is gone in peace; see `LaneStatus::left`.
  void leave(int rank, int team = 0);
  std::uint64_t turns() const { return turns_.get(); }

 private:
  struct Launch {
    RunningGrid grid;
    std::vector<std::byte> kernel;
  };
  struct SimulatedTeam {
    std::vector<int> ranks;
    std::size_t offset = 0;                           ///< of the lane in every segment
    std::vector<std::unique_ptr<LaneStatus>> status;  ///< by place
    std::vector<std::optional<FaultRecord>> faults;   ///< by place
  };
  struct LastStore {
    int rank = 0;
    Scope scope = Scope::system;
  };

  void queue(int rank, int stream, int blocks, const detail::KernelEntry& entry,
             std::vector<std::byte> kernel);
  std::byte* segment(int rank) const;
  int place(const SimulatedTeam& team, int rank) const;
  void let_hosts_look();

  std::uint64_t nanoseconds() override;
  void loaded(const RunningGrid& grid, const void* address, Scope scope) override;
  void stored(const RunningGrid& grid, const void* address, Scope scope) override;
  void updated(const RunningGrid& grid, const void* address, Scope scope) override;
  /// Whether the address is in another rank's segment.
  bool is_remote(const RunningGrid& grid, const void* address) const;

  const SimulationOptions options_;
  std::size_t stride_ = 0;
  std::size_t used_ = 0;
  std::shared_ptr<std::byte> window_;
  std::vector<SimulatedTeam> teams_;
  std::map<std::pair<int, int>, std::deque<std::unique_ptr<Launch>>> streams_;
  std::map<const void*, LastStore> last_stores_;
  mutable std::uint32_t calls_ = 0;
  TurnNumber turns_;
  BlockScheduler scheduler_;
};

}  // namespace iridium::test

// Runs the blocks of kernels on one thread, as fibers that take turns.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "backend/host/fiber.h"
#include "backend/host/turn_number.h"
#include "iridium/device/kernel.h"
#include "iridium/device/seat.h"

namespace iridium {

/// How blocks take turns.
struct Schedule {
  /// A block is four fibers with a real block barrier, so that a missing one shows.
  bool split = false;
  /// Turns are drawn: who runs next, for how long, who stalls at waits, signals and tile accesses,
  /// and when copies to block memory arrive. The same seed draws the same turns. Without one, in
  /// order of arrival.
  std::optional<std::uint64_t> seed = {};
};

/// A kernel whose blocks are being run.
struct RunningGrid {
  const detail::KernelEntry* entry = nullptr;
  const void* kernel = nullptr;  ///< outlives the run
  int blocks = 0;
  int rank = 0;  ///< for observers

  int started = 0;                  ///< blocks
  int finished = 0;                 ///< blocks
  TurnNumber stalled_turns;         ///< the whole grid loses them
  std::exception_ptr failure = {};  ///< what the first block threw
  bool done() const { return finished == blocks; }
};

/// Watches what blocks do, and keeps their time. For tests.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual std::uint64_t nanoseconds() = 0;
  virtual void loaded(const RunningGrid& grid, const void* address, Scope scope) = 0;
  virtual void stored(const RunningGrid& grid, const void* address, Scope scope) = 0;
  virtual void updated(const RunningGrid& grid, const void* address, Scope scope) = 0;
};

/// Belongs to one thread. Fibers are kept for the next kernel.
class BlockScheduler {
 public:
  explicit BlockScheduler(const Schedule& schedule, BlockObserver* observer = nullptr);
  ~BlockScheduler();
  BlockScheduler(const BlockScheduler&) = delete;
  BlockScheduler& operator=(const BlockScheduler&) = delete;

  /// Runs `blocks` blocks of a kernel to their end; throws what one of them threw.
  void run(const detail::KernelEntry& entry, const void* kernel, int blocks);

  // In pieces, for several grids at a time.
  /// The grid takes part in the turns from now on; it outlives its run.
  void add(RunningGrid& grid);
  /// Lets one fiber run until it pauses or ends; false when no grid has work left.
  bool turn();

 private:
  class Occupant;
  struct SharedBlock;

  bool has_unstarted() const { return !grids_.empty(); }
  void count_contenders() { contenders_.set(ready_.size() + grids_.size()); }
  void start_block();
  /// Sees to that many free fibers and one free block; throws when there is no room.
  void make_free(std::size_t fibers);
  Occupant& choose();
  void let_run(Occupant& occupant);
  void retire(Occupant& occupant);
  void yield_core();
  /// A number below `limit`.
  std::uint64_t draw(std::uint64_t limit);

  const Schedule schedule_;
  BlockObserver* const observer_;
  TurnNumber random_;
  std::vector<RunningGrid*> grids_;                   ///< with blocks not started yet
  std::vector<std::unique_ptr<Occupant>> occupants_;  ///< all
  std::vector<Occupant*> free_;
  std::vector<Occupant*> ready_;  ///< started and not finished
  std::vector<std::unique_ptr<SharedBlock>> free_blocks_;
  std::size_t next_ = 0;  ///< in `ready_`
  TurnNumber idle_turns_;
  TurnNumber naps_;        ///< to be taken instead of yields
  TurnNumber nap_count_;   ///< how many followed the last yield
  TurnNumber contenders_;  ///< fibers ready, and grids with blocks to start
};

}  // namespace iridium

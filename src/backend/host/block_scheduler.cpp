#include "backend/host/block_scheduler.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/host/block_memory.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr int threads_of_split_block = 4;
/// Rounds without progress that are spent spinning, for peers that run on other cores.
constexpr std::uint64_t spin_rounds = 16;
/// A yield that took so long gave the core to something that computes, for a whole slice of the
/// system's: beside it sleeping costs less, since who wakes up gets a core soon. For how many
/// turns, doubled while yields stay slow.
constexpr std::chrono::microseconds crowded_yield{1000};
constexpr std::uint64_t least_naps = 16;
constexpr std::uint64_t most_naps = 1024;
/// Turns without progress after which a worker sleeps once per round: it has waited for
/// milliseconds, and workers that only yield keep the system from other processes. So a wait takes
/// longer by a small part of itself at most: barriers of 4 and 8 ranks on two cores take as long
/// without these sleeps, within the noise.
constexpr std::uint64_t awake_turns = 4000;
constexpr std::chrono::microseconds nap{20};
constexpr std::chrono::microseconds long_nap{50};
/// How many points a block that waits may come by between two pauses; more of them are progress.
constexpr int points_of_a_poll = 8;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

/// What the fibers of one block share.
struct BlockScheduler::SharedBlock {
  int running = 0;
  std::atomic<int> arrived = 0;
  std::atomic<std::uint32_t> generation = 0;
  std::atomic<bool> ended = false;  ///< for one of its fibers
  std::atomic<bool> any[2] = {};    ///< by generation
  std::atomic<std::uint64_t> word[2] = {};
  HostBlockMemory memory;
};

/// A fiber and the seat it holds.
class BlockScheduler::Occupant final : public Seat {
 public:
  explicit Occupant(BlockScheduler& scheduler) : scheduler_(scheduler) {
    watched = scheduler.schedule_.seed.has_value();
  }

  void sit_down(RunningGrid& grid, SharedBlock& shared, int block_index, int thread_index,
                int thread_count) {
    grid_ = &grid;
    shared_ = &shared;
    block = block_index;
    blocks = grid.blocks;
    thread = thread_index;
    threads = thread_count;
    stalled_turns.set(0);
    fetches_.forget();
    fiber.start(
        [](void* self) {
          auto& occupant = *static_cast<Occupant*>(self);
          occupant.grid_->entry->run_on_host(occupant.grid_->kernel, occupant);
        },
        this);
  }

  void pause(bool again) override {
    points_since_pause_ = 0;
    scheduler_.idle_turns_.set(again ? scheduler_.idle_turns_.get() + 1 : 0);
    if (!watched && scheduler_.contenders_.get() == 1)
      scheduler_.yield_core();
    else
      fiber.suspend();
  }

  bool meet(bool any, std::uint64_t& word, int source) override {
    SharedBlock& shared = *shared_;
    const std::uint32_t generation = shared.generation.load(std::memory_order_relaxed);
    const std::uint32_t side = generation % 2;
    if (any) shared.any[side].store(true, std::memory_order_relaxed);
    if (thread == source) shared.word[side].store(word, std::memory_order_relaxed);
    if (watched) point();
    if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      shared.arrived.store(0, std::memory_order_relaxed);
      shared.any[1 - side].store(false, std::memory_order_relaxed);
      shared.generation.store(generation + 1, std::memory_order_release);
    } else {
      // Ended by the last fiber of the block that gets here.
      for (bool again = false; shared.generation.load(std::memory_order_acquire) == generation;
           again = true) {
        if (shared.ended.load(std::memory_order_relaxed))
          throw Error(Errc::invalid_argument,
                      "a thread of a block returned while others wait for it at a block barrier");
        pause(again);
      }
    }
    word = shared.word[side].load(std::memory_order_relaxed);
    return shared.any[side].load(std::memory_order_relaxed);
  }

  std::uint64_t now() override {
    if (scheduler_.observer_ != nullptr) return scheduler_.observer_->nanoseconds();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  }

  void point() override {
    let_fetches_arrive();
    // Else whoever waits under a drawn schedule would never give its core away.
    if (++points_since_pause_ > points_of_a_poll) scheduler_.idle_turns_.set(0);
    const std::uint64_t fate = scheduler_.draw(64);
    if (fate < 32) return;
    if (fate >= 60) stalled_turns.set(scheduler_.draw(fate == 63 ? 400 : 40));
    if (fate == 60) grid_->stalled_turns.set(scheduler_.draw(200));
    fiber.suspend();
    let_fetches_arrive();
  }

  void note_load(const void* address, Scope scope) override {
    if (scheduler_.observer_ != nullptr) scheduler_.observer_->loaded(*grid_, address, scope);
  }
  void note_store(const void* address, Scope scope) override {
    if (scheduler_.observer_ != nullptr) scheduler_.observer_->stored(*grid_, address, scope);
  }
  void note_update(const void* address, Scope scope) override {
    if (scheduler_.observer_ != nullptr) scheduler_.observer_->updated(*grid_, address, scope);
  }

  std::byte* block_memory(const void* key, std::size_t bytes) override {
    return shared_->memory.find(key, bytes);
  }
  void fetch_vector(std::byte* to, const void* from) override {
    if (!shared_->memory.contains(to, 16))
      throw Error(Errc::invalid_argument, "a vector is fetched to memory that is not the block's");
    fetches_.begin(to, from);
    let_fetches_arrive();
  }
  void end_fetch() override { fetches_.end_group(); }
  void await_fetches(int open) override {
    let_fetches_arrive();
    fetches_.await(static_cast<std::size_t>(open));
  }

  RunningGrid& grid() const { return *grid_; }
  SharedBlock& shared() const { return *shared_; }

  Fiber fiber;
  TurnNumber stalled_turns;

 private:
  /// Under a random schedule: any of them, in any order.
  void let_fetches_arrive() {
    if (!watched) return;
    while (fetches_.count() > 0 && scheduler_.draw(4) == 0)
      fetches_.land(scheduler_.draw(fetches_.count()));
  }

  BlockScheduler& scheduler_;
  VectorFetches fetches_;
  RunningGrid* grid_ = nullptr;
  SharedBlock* shared_ = nullptr;
  int points_since_pause_ = 0;
};

BlockScheduler::BlockScheduler(const Schedule& schedule, BlockObserver* observer)
    : schedule_(schedule), observer_(observer), random_(schedule.seed.value_or(0)) {}

BlockScheduler::~BlockScheduler() = default;

void BlockScheduler::run(const detail::KernelEntry& entry, const void* kernel, int blocks) {
  RunningGrid grid;
  grid.entry = &entry;
  grid.kernel = kernel;
  grid.blocks = blocks;
  add(grid);
  while (turn()) {
    if (idle_turns_.get() >= contenders_.get()) yield_core();
  }
  if (grid.failure) std::rethrow_exception(grid.failure);
}

void BlockScheduler::add(RunningGrid& grid) {
  if (grid.blocks == 0) return;
  grids_.push_back(&grid);
  count_contenders();
}

bool BlockScheduler::turn() {
  if (schedule_.seed) {
    if (has_unstarted() && draw(ready_.size() + 1) == 0) {
      start_block();
      return true;
    }
  } else if (has_unstarted()) {
    start_block();
  }
  if (ready_.empty()) return has_unstarted();
  let_run(choose());
  return !ready_.empty() || has_unstarted();
}

void BlockScheduler::start_block() {
  const std::size_t which = schedule_.seed ? draw(grids_.size()) : 0;
  RunningGrid& grid = *grids_[which];
  const int threads = schedule_.split ? threads_of_split_block : 1;
  try {
    make_free(static_cast<std::size_t>(threads));
  } catch (...) {
    // No room for more fibers: the blocks that run end, and then the grid fails.
    if (!grid.failure) grid.failure = std::current_exception();
    grid.blocks = grid.started;
    grids_.erase(grids_.begin() + static_cast<std::ptrdiff_t>(which));
    count_contenders();
    return;
  }
  SharedBlock& shared = *free_blocks_.back().release();
  free_blocks_.pop_back();
  shared.running = threads;
  shared.memory.renew();
  shared.ended.store(false, std::memory_order_relaxed);
  shared.arrived.store(0, std::memory_order_relaxed);
  for (auto& any : shared.any) any.store(false, std::memory_order_relaxed);
  for (int thread = 0; thread < threads; ++thread) {
    Occupant& occupant = *free_.back();
    free_.pop_back();
    occupant.sit_down(grid, shared, grid.started, thread, threads);
    ready_.push_back(&occupant);
  }
  next_ = ready_.size() - static_cast<std::size_t>(threads);
  idle_turns_.set(0);
  if (++grid.started == grid.blocks)
    grids_.erase(grids_.begin() + static_cast<std::ptrdiff_t>(which));
  count_contenders();
}

void BlockScheduler::make_free(std::size_t fibers) {
  while (free_.size() < fibers) {
    occupants_.push_back(std::make_unique<Occupant>(*this));
    free_.push_back(occupants_.back().get());
  }
  if (free_blocks_.empty()) free_blocks_.push_back(std::make_unique<SharedBlock>());
}

BlockScheduler::Occupant& BlockScheduler::choose() {
  if (!schedule_.seed) {
    if (next_ >= ready_.size()) next_ = 0;
    return *ready_[next_];
  }
  while (true) {
    next_ = draw(ready_.size());
    Occupant& occupant = *ready_[next_];
    // A turn that falls to one who stalls is lost.
    TurnNumber& stalled =
        occupant.stalled_turns.get() > 0 ? occupant.stalled_turns : occupant.grid().stalled_turns;
    if (stalled.get() == 0) return occupant;
    stalled.set(stalled.get() - 1);
    // It could go on, so the core is not to be given away.
    idle_turns_.set(0);
  }
}

void BlockScheduler::let_run(Occupant& occupant) {
  try {
    occupant.fiber.resume();
  } catch (...) {
    if (!occupant.grid().failure) occupant.grid().failure = std::current_exception();
  }
  if (occupant.fiber.finished()) {
    retire(occupant);
    ready_[next_] = ready_.back();
    ready_.pop_back();
    count_contenders();
    idle_turns_.set(0);
  } else {
    ++next_;
  }
}

void BlockScheduler::retire(Occupant& occupant) {
  SharedBlock& shared = occupant.shared();
  shared.ended.store(true, std::memory_order_relaxed);
  free_.push_back(&occupant);
  if (--shared.running > 0) return;
  ++occupant.grid().finished;
  free_blocks_.emplace_back(&shared);
}

std::uint64_t BlockScheduler::draw(std::uint64_t limit) {
  // splitmix64
  random_.set(random_.get() + 0x9e3779b97f4a7c15u);
  std::uint64_t mixed = random_.get();
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return (mixed ^ (mixed >> 31)) % limit;
}

void BlockScheduler::yield_core() {
  if (idle_turns_.get() < spin_rounds * contenders_.get()) return relax();
  if (idle_turns_.get() >= awake_turns) {
    if (idle_turns_.get() % contenders_.get() == 0) std::this_thread::sleep_for(long_nap);
    return;
  }
  if (naps_.get() > 0) {
    naps_.set(naps_.get() - 1);
    return std::this_thread::sleep_for(nap);
  }
  const auto before = std::chrono::steady_clock::now();
  ::sched_yield();
  const bool is_crowded = std::chrono::steady_clock::now() - before > crowded_yield;
  nap_count_.set(is_crowded ? std::clamp(2 * nap_count_.get(), least_naps, most_naps) : 0);
  naps_.set(nap_count_.get());
}

}  // namespace iridium

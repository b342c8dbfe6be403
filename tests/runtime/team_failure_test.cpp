// Teams that one rank cannot set up.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "support/ranks.h"

namespace {

/// While it is set, aligned memory, of which the host backend makes what kernels and the host
/// share, cannot be had.
std::atomic<bool> no_aligned_memory = false;

}  // namespace

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto granule = static_cast<std::size_t>(alignment);
  void* memory = no_aligned_memory
                     ? nullptr
                     : std::aligned_alloc(granule, (bytes + granule - 1) / granule * granule);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace iridium::test {
namespace {

IR_SCENARIO(cannot_set_up_a_team) {
  // On GPUs status words are CUDA's memory.
  Context context(job,
                  {.backend = BackendKind::host, .construction_timeout = std::chrono::minutes(1)});
  std::vector<Team> teams;
  no_aligned_memory = job.rank == 1;
  // Status words come in chunks: one of the next teams needs a new one.
  const Error error = require_error(Errc::system, {1}, [&] {
    for (int i = 0; i < 1000; ++i)
      teams.push_back(context.make_team(
          {0, 1}, {.max_blocks = 1, .scratch_bytes = 1024, .packet_bytes = 1024}));
  });
  require(std::string(error.what()).find("rank 1 failed") != std::string::npos, error.what());
  no_aligned_memory = false;

  teams.push_back(context.make_team({2, 1, 0}));
  const std::vector<int> gathered = teams.back().all_gather(job.rank);
  require(gathered == std::vector<int>({2, 1, 0}), "teams can be made again");
  context.allocate<int>(100);
  context.barrier();
}

TEST(MakeTeam, FailsOnAllRanksWhereOneCannotSetItUp) {
  const auto started = std::chrono::steady_clock::now();
  expect_all_ok(run_ranks(RankKind::processes, "cannot_set_up_a_team", 3));
  // Nobody waited out the timeout of a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(50));
}

}  // namespace
}  // namespace iridium::test

// All ranks count into one histogram, and take seats at one table, by atomic updates.
// Run it with: iridium run -n 4 -- build/examples/04_atomics
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

constexpr int bin_count = 10;
constexpr std::size_t count = 20'000;
constexpr iridium::Grid grid = {.blocks = 3, .resident = true};
constexpr std::size_t max_seats = grid.blocks * iridium::max_team_size;

// What only the blocks of one rank touch.
struct Own {
  std::uint32_t bins[bin_count];
  std::uint32_t blocks_done;
};

// What all ranks touch, at rank 0. The others have it too, symmetric memory being what it is, and
// leave it alone.
struct Table {
  std::uint32_t bins[bin_count];
  float sum;
  std::uint32_t seats[max_seats];  // who sits there; 0: free
};

struct Count {
  iridium::Lane lane;
  const std::int32_t* values;
  Own* own;
  Table* table;

  static constexpr int tile_elements = 2048;

  // Adds this rank's histogram to that of all. One block of the rank, thread by thread.
  IR_DEVICE void add_to(Table* all, iridium::Block block) const {
    block.share<bin_count>(bin_count, [&](int bin) {
      // Relaxed: the barrier in `leave` orders these. System scope, the default: ranks share them.
      iridium::atomic_add(block, &all->bins[bin], own->bins[bin], iridium::order::relaxed);
    });
    const float share = 0.1f * static_cast<float>(lane.peers().rank() + 1);
    if (block.is_leader()) iridium::atomic_add(block, &all->sum, share, iridium::order::relaxed);
  }

  IR_DEVICE void operator()(iridium::Block block) const {
    iridium::LaneCall call(lane, block);
    if (!call.enter()) return;  // rank 0 has cleared the table
    Table* const all = lane.peers().at(table, 0);

    // First into memory of this rank, which is near: device scope is enough among its own blocks.
    const std::size_t stride = static_cast<std::size_t>(block.count()) * tile_elements;
    std::size_t first = static_cast<std::size_t>(block.index()) * tile_elements;
    for (; first < count; first += stride) {
      const auto tile = iridium::load<tile_elements>(block, values, first, count);
      iridium::for_each(block, tile, [&](int i, std::int32_t value) {
        if (first + static_cast<std::size_t>(i) >= count) return;
        iridium::atomic_add(block, &own->bins[value % bin_count], 1u, iridium::order::relaxed,
                            iridium::scope::device);
      });
    }

    // A ticket tells the last block of this rank that all have counted: acquire and release, so
    // that it also sees what they counted.
    block.sync();
    bool is_last = false;
    const auto last = static_cast<std::uint32_t>(block.count() - 1);
    if (block.is_leader())
      is_last = iridium::atomic_add(block, &own->blocks_done, 1u, iridium::order::acq_rel,
                                    iridium::scope::device) == last;
    if (block.any(is_last)) add_to(all, block);

    // Every block of every rank takes the first free seat: one of those who try for it gets it.
    if (block.is_leader()) {
      const auto name = static_cast<std::uint32_t>(lane.peers().rank() * 1000 + block.index() + 1);
      for (std::uint32_t& seat : all->seats)
        if (iridium::atomic_compare_exchange(block, &seat, 0u, name) == 0) break;
    }
    call.leave();  // the table is complete
  }
};

std::int32_t input_value(int rank, int round, std::size_t i) {
  const auto mixed = (static_cast<std::uint32_t>(i) + 7919u * static_cast<std::uint32_t>(rank) +
                      104'729u * static_cast<std::uint32_t>(round)) *
                     2'654'435'761u;
  return static_cast<std::int32_t>(mixed >> 12);
}

bool is_right(const Table& table, int size, int round) {
  Table expected = {};
  std::vector<std::uint32_t> names;
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < count; ++i)
      ++expected.bins[input_value(rank, round, i) % bin_count];
    expected.sum += 0.1f * static_cast<float>(rank + 1);
    for (int block = 0; block < grid.blocks; ++block)
      names.push_back(static_cast<std::uint32_t>(rank * 1000 + block + 1));
  }
  // Who sits where is another matter at every run; that each name is there once is not.
  std::vector<std::uint32_t> seated(table.seats, table.seats + names.size());
  std::sort(seated.begin(), seated.end());
  // The floats were added in any order, and each order rounds in its own way.
  const bool is_near = std::abs(table.sum - expected.sum) <= 1e-5f * expected.sum;
  return std::equal(table.bins, table.bins + bin_count, expected.bins) && is_near &&
         seated == names;
}

int run() {
  iridium::Context context;
  context.prepare<Count>();
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();
  if (!iridium::has_native_atomics(team.link())) {
    std::printf("rank %d: updates of peers' memory are not atomic over the link %s\n",
                context.rank(), std::string(iridium::name(team.link())).c_str());
    return 0;
  }
  auto values = context.allocate<std::int32_t>(count);
  auto own = context.allocate<Own>(1);
  auto table = context.allocate<Table>(1);

  bool right = true;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int32_t> input;
    for (std::size_t i = 0; i < count; ++i) input.push_back(input_value(context.rank(), round, i));
    stream.copy(values.data(), input.data(), values.bytes());
    stream.fill(own.data(), 0, own.bytes());
    stream.fill(table.data(), 0, table.bytes());
    context.launch(stream, grid,
                   Count{team.lane("count"), values.data(), own.data(), table.data()});
    Table found = {};
    iridium::get(stream, team, &found, table.data(), table.bytes(), 0);
    // Else rank 0 might clear its table for the next round while another still reads it.
    iridium::device_barrier(stream, team);
    stream.synchronize();
    team.check();
    right = is_right(found, team.size(), round) && right;
  }

  std::printf(
      "rank %d of %d, process %ld, backend %s: %zu values of each rank counted, 3 times: %s\n",
      context.rank(), context.size(), static_cast<long>(::getpid()),
      std::string(iridium::name(context.backend())).c_str(), count, right ? "right" : "WRONG");
  context.barrier();
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

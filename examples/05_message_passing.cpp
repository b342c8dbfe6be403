// Messages go around a ring of ranks: flags tell when one has arrived, and when it has been read.
// Run it with: iridium run -n 4 -- build/examples/05_message_passing
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

constexpr std::size_t count = 5'000;  // of a message
constexpr std::uint32_t rounds = 10;  // of a ring, however many ranks it has
constexpr iridium::Grid grid = {.blocks = 3, .resident = true};

// One message at a time fits in. The flags count messages and are never reset. There is a pair of
// them for each block that sends.
struct Mailbox {
  iridium::SymmetricArray<int> inbox;
  iridium::SymmetricArray<std::uint32_t> full;   // how many messages my inbox has got
  iridium::SymmetricArray<std::uint32_t> empty;  // how many of mine the next rank has read

  Mailbox(iridium::Context& context, iridium::Stream& stream, std::size_t senders)
      : inbox(context.allocate<int>(count)),
        full(context.allocate<std::uint32_t>(senders)),
        empty(context.allocate<std::uint32_t>(senders)) {
    stream.fill(full.data(), 0, full.bytes());
    stream.fill(empty.data(), 0, empty.bytes());
    stream.synchronize();
    context.barrier();  // nobody may signal before all have set their flags to zero
  }
};

// Row 0 of an album is this rank's own page. In every round a rank sends on its latest page, and
// what comes in becomes its next one: row r is of the rank r places back.

// The ring by stream operations. `sent`: how many messages have gone through the mailbox before.
void pass_on_stream(iridium::Stream& stream, const iridium::Team& team, const Mailbox& box,
                    int* album, std::uint32_t sent) {
  const int next = (team.rank() + 1) % team.size();
  const int previous = (team.rank() + team.size() - 1) % team.size();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    int* const page = album + round * count;
    // Has the next rank read what I sent before? Its `signal` below ends this wait.
    iridium::wait(stream, team, box.empty.data(), sent, {.from = next});
    ++sent;
    iridium::put_signal(stream, team, box.inbox.data(), page - count, count * sizeof(int), next,
                        box.full.data(), sent);
    iridium::wait(stream, team, box.full.data(), sent, {.from = previous});
    stream.copy(page, box.inbox.data(), count * sizeof(int));
    iridium::signal(stream, team, box.empty.data(), previous, sent);
  }
}

// The same in one kernel. Each block sends its slice of the message, with its own pair of flags.
struct PassOn {
  iridium::Lane lane;
  int* inbox;
  std::uint32_t* full;
  std::uint32_t* empty;
  int* album;
  std::uint32_t sent;

  IR_DEVICE void operator()(iridium::Block block) const {
    const iridium::Peers& peers = lane.peers();
    const int next = (peers.rank() + 1) % peers.size();
    const int previous = (peers.rank() + peers.size() - 1) % peers.size();
    const iridium::Slice slice = iridium::slice_of<int>(block, count);
    int* const in = inbox + slice.first;
    std::uint32_t* const my_full = full + block.index();
    std::uint32_t* const my_empty = empty + block.index();
    constexpr auto at_least = iridium::Compare::at_least;

    for (std::uint32_t round = 1; round <= rounds; ++round) {
      int* const page = album + round * count + slice.first;
      const std::uint32_t message = sent + round;
      if (!iridium::wait(block, lane, my_empty, message - 1, at_least, next)) return;
      iridium::put_signal(block, peers.at(in, next), page - count, slice.count,
                          peers.at(my_full, next), message);
      if (!iridium::wait(block, lane, my_full, message, at_least, previous)) return;
      iridium::copy(block, page, in, slice.count);
      // Waits for all threads of the block, so that all have read.
      iridium::signal(block, peers.at(my_empty, previous), message);
    }
  }
};

int page_value(int rank, int turn, std::size_t i) {
  return 1'000'000 * turn + 10'000 * rank + static_cast<int>(i);
}

// Sets row 0, lets `pass` send it around, and checks the album; twice.
template <class Pass>
bool is_right(iridium::Context& context, iridium::Stream& stream, const iridium::Team& team,
              Pass pass) {
  auto album = context.allocate<int>((rounds + 1) * count);
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<int> pages(album.size());
    for (std::size_t i = 0; i < count; ++i) pages[i] = page_value(team.rank(), turn, i);
    stream.copy(album.data(), pages.data(), count * sizeof(int));
    pass(album.data(), static_cast<std::uint32_t>(turn) * rounds);
    stream.copy(pages.data(), album.data(), album.bytes());
    stream.synchronize();
    team.check();
    for (std::size_t row = 0; row <= rounds; ++row) {
      const int back = static_cast<int>(row) % team.size();
      const int rank = (team.rank() + team.size() - back) % team.size();
      for (std::size_t i = 0; i < count; ++i)
        right = right && pages[row * count + i] == page_value(rank, turn, i);
    }
  }
  return right;
}

int run() {
  iridium::Context context;
  context.prepare<PassOn>();
  iridium::Stream stream = context.make_stream();
  const iridium::Team team = context.world();

  const Mailbox box(context, stream, 1);
  const bool by_stream = is_right(context, stream, team, [&](int* album, std::uint32_t sent) {
    pass_on_stream(stream, team, box, album, sent);
  });
  const Mailbox boxes(context, stream, grid.blocks);
  const bool by_kernel = is_right(context, stream, team, [&](int* album, std::uint32_t sent) {
    context.launch(stream, grid,
                   PassOn{team.lane("pass_on"), boxes.inbox.data(), boxes.full.data(),
                          boxes.empty.data(), album, sent});
  });

  std::printf(
      "rank %d of %d, process %ld, backend %s: %u rounds by stream operations: %s; "
      "in a kernel: %s\n",
      context.rank(), context.size(), static_cast<long>(::getpid()),
      std::string(iridium::name(context.backend())).c_str(), rounds, by_stream ? "right" : "WRONG",
      by_kernel ? "right" : "WRONG");
  context.barrier();
  return by_stream && by_kernel ? 0 : 1;
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

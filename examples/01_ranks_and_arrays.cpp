// Ranks meet, allocate the same array, write into each other's memory, and say what they are.
// Run it with: iridium run -n 4 -- build/examples/01_ranks_and_arrays
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <sstream>
#include <string>

#include "iridium/iridium.h"

namespace {

// Every rank puts 100 × its rank + the receiver's rank into its own element of everybody's array.
void exchange(iridium::Context& context, iridium::SymmetricArray<int>& array) {
  for (int peer = 0; peer < context.size(); ++peer)
    array.at(peer)[context.rank()] = 100 * context.rank() + peer;
  context.barrier();
}

bool is_right(const iridium::Context& context, const iridium::SymmetricArray<int>& array) {
  for (int peer = 0; peer < context.size(); ++peer)
    if (array[static_cast<std::size_t>(peer)] != 100 * peer + context.rank()) return false;
  return true;
}

std::string elements(const iridium::SymmetricArray<int>& array) {
  std::ostringstream text;
  for (const int value : array.span()) text << ' ' << value;
  return text.str();
}

int run() {
  iridium::Context context;
  auto array = context.allocate<int>(static_cast<std::size_t>(context.size()));
  exchange(context, array);

  // The same work as stream operations: recorded once, run twice.
  auto copy = context.allocate<int>(array.size());
  iridium::Stream stream = context.make_stream();
  stream.begin_capture();
  stream.copy(copy.data(), array.data(), array.bytes());
  const iridium::Graph graph = stream.end_capture();
  stream.launch(graph);
  stream.launch(graph);
  stream.synchronize();

  const bool right = is_right(context, array) && is_right(context, copy);
  const auto processes = context.world().all_gather(static_cast<long>(::getpid()));
  std::printf("rank %d of %d, process %ld, backend %s, heap %zu MiB: my array holds%s: %s\n",
              context.rank(), context.size(), processes[static_cast<std::size_t>(context.rank())],
              std::string(iridium::name(context.backend())).c_str(), context.heap_bytes() >> 20,
              elements(array).c_str(), right ? "right" : "WRONG");
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

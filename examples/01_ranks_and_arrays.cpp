// Ranks meet, allocate the same array, write into each other's memory, and say what they are.
// Run it with: iridium run -n 4 -- build/examples/01_ranks_and_arrays
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace {

// Every rank puts 100 × its rank + the receiver's rank into its own element of everybody's array.
// The memory may be a GPU's, which only streams and kernels can touch: a stream copies.
void exchange(iridium::Context& context, iridium::Stream& stream,
              const iridium::SymmetricArray<int>& array) {
  std::vector<int> values;
  for (int peer = 0; peer < context.size(); ++peer) values.push_back(100 * context.rank() + peer);
  for (int peer = 0; peer < context.size(); ++peer)
    stream.copy(array.at(peer) + context.rank(), &values[static_cast<std::size_t>(peer)],
                sizeof(int));
  stream.synchronize();
  context.barrier();
}

// Copies the array twice, by work that is recorded once: what another rank wrote is what we get.
std::vector<int> replay_copy(iridium::Stream& stream, const iridium::SymmetricArray<int>& array) {
  std::vector<int> values(array.size());
  stream.begin_capture();
  stream.copy(values.data(), array.data(), array.bytes());
  const iridium::Graph graph = stream.end_capture();
  stream.launch(graph);
  stream.launch(graph);
  stream.synchronize();
  return values;
}

bool is_right(const iridium::Context& context, const std::vector<int>& values) {
  for (int peer = 0; peer < context.size(); ++peer)
    if (values[static_cast<std::size_t>(peer)] != 100 * peer + context.rank()) return false;
  return true;
}

int run() {
  iridium::Context context;
  iridium::Stream stream = context.make_stream();
  auto array = context.allocate<int>(static_cast<std::size_t>(context.size()));
  exchange(context, stream, array);
  const std::vector<int> values = replay_copy(stream, array);

  const bool right = is_right(context, values);
  std::string text;
  for (const int value : values) text += ' ' + std::to_string(value);
  std::printf("rank %d of %d, process %ld, backend %s, heap %zu MiB: my array holds%s: %s\n",
              context.rank(), context.size(), static_cast<long>(::getpid()),
              std::string(iridium::name(context.backend())).c_str(), context.heap_bytes() >> 20,
              text.c_str(), right ? "right" : "WRONG");
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

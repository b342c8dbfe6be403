#include "collectives/copy_limits/launch.h"

#include "iridium/device/copy.h"

namespace iridium {
namespace {

struct PlainCopy {
  std::uint32_t* to;
  const std::uint32_t* from;
  std::size_t count;

  IR_DEVICE void operator()(Block block) const { copy(block, to, from, count, By::grid); }
};

}  // namespace

void launch_plain_copy(const Context& context, StreamRef& stream, std::uint32_t* to,
                       const std::uint32_t* from, std::size_t count, int blocks) {
  context.launch(stream, blocks, PlainCopy{to, from, count});
}

}  // namespace iridium

#include "collectives/case_buffers.h"

#include <fmt/format.h>

#include <numeric>

#include "iridium/device_barrier.h"
#include "operations/random_elements.h"

namespace iridium {

std::size_t number_argument(const Arguments& arguments) {
  const std::size_t bytes = count_argument(arguments, message_bytes);
  if (bytes % sizeof(std::uint32_t) != 0)
    throw Error(Errc::invalid_argument, fmt::format("bytes is '{}': expected a multiple of {}",
                                                    bytes, sizeof(std::uint32_t)));
  return bytes / sizeof(std::uint32_t);
}

CaseBuffers::CaseBuffers(Context& context, const Team& team, std::size_t count, int parts)
    : input(context.allocate<std::uint32_t>(count)),
      shared(context.allocate<std::uint32_t>(count)),
      output(context.allocate<std::uint32_t>(count * static_cast<std::size_t>(parts))),
      team_(team),
      stream_(context.make_stream()),
      count_(count) {}

std::vector<std::uint32_t> CaseBuffers::values(std::uint64_t seed, int place) const {
  std::vector<std::uint32_t> numbers(count_);
  for_each_range(count_, team_.size(), [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      numbers[i] = static_cast<std::uint32_t>(random_bits(seed, place, i));
  });
  return numbers;
}

void CaseBuffers::set_inputs(std::uint64_t seed) {
  const auto mine = values(seed, team_.rank());
  stream_.copy(input.data(), mine.data(), bytes());
  stream_.fill(shared.data(), 0xee, bytes());
  stream_.fill(output.data(), 0xff, output.bytes());
  stream_.synchronize();
}

std::string CaseBuffers::check(std::uint64_t seed, const std::vector<int>& places) {
  std::vector<std::uint32_t> found(output.size());
  stream_.copy(found.data(), output.data(), output.bytes());
  stream_.synchronize();
  for (std::size_t part = 0; part < places.size(); ++part) {
    const auto expected = values(seed, places[part]);
    for (std::size_t i = 0; i < count_; ++i)
      if (found[part * count_ + i] != expected[i])
        return fmt::format("output {} of the part of place {} is {:#x}; expected {:#x}", i,
                           places[part], found[part * count_ + i], expected[i]);
  }
  return {};
}

void CaseBuffers::read_shared(StreamRef& stream, const std::function<void()>& read) {
  stream.copy(shared.data(), input.data(), bytes());
  device_barrier(stream, team_);
  read();
  device_barrier(stream, team_);
}

void CaseBuffers::gather_shared(StreamRef& stream) {
  for (int i = 0; i < team_.size(); ++i) {
    const auto place = static_cast<std::size_t>((team_.rank() + i) % team_.size());
    stream.copy(output.data() + place * count_, shared.at(team_.ranks()[place]), bytes());
  }
}

std::string CaseBuffers::check_all(std::uint64_t seed) {
  std::vector<int> everyone(static_cast<std::size_t>(team_.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return check(seed, everyone);
}

}  // namespace iridium

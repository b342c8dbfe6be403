// A collective's call on its way to its kernel. Files with kernels include this.
#pragma once

#include <cstddef>
#include <type_traits>

#include "collectives/packet_words.h"
#include "collectives/shards.h"
#include "iridium/collective_buffers.h"
#include "iridium/tuning.h"
#include "runtime/library_kernels.h"
#include "runtime/team_launch.h"

namespace iridium {

/// Checked, and with every choice made.
struct CollectiveCall {
  StreamRef& stream;
  const Team& team;
  const char* operation;
  const void* in;
  void* out;
  std::size_t count;  ///< what the operation calls so
  DataType type;
  bool symmetric;  ///< peers may touch the buffers
  ReduceOp op;
  Choice choice;

  template <class T>
  const T* input() const {
    return static_cast<const T*>(in);
  }
  template <class T>
  T* output() const {
    return static_cast<T*>(out);
  }
  std::size_t bytes() const { return count * size_of(type); }
};

/// Launches make(lane) with the chosen number of blocks, which wait for each other.
template <class Make>
void launch_call(const CollectiveCall& call, Make make) {
  launch_on_team(call.stream, call.team, call.operation,
                 {.blocks = call.choice.blocks, .resident = true}, make);
}

/// `total` elements, for each of which a member stages `bytes_each` bytes, in rounds that begin at
/// multiples of `granule`. Throws `invalid_argument`, naming the option that makes room, when not
/// even a granule fits.
Rounds cut_into_rounds(const CollectiveCall& call, std::size_t total, std::size_t granule,
                       std::size_t bytes_each);

/// How many words one call can send in packets. Throws `invalid_argument` when there are none.
std::size_t packet_words(const CollectiveCall& call);
/// How blocks share the words of `bytes` bytes.
PacketShare share_packets(const CollectiveCall& call, std::size_t bytes);

/// All at once, for kernels that need no room in the lane.
Rounds one_round(const CollectiveCall& call, std::size_t total, std::size_t granule);

/// The most a member may stage in a round.
std::size_t staged_bytes(const CollectiveCall& call);

/// Rounds in which a member stages `bytes_each` bytes for each of `total` elements of T.
template <class T>
Rounds staged_rounds(const CollectiveCall& call, std::size_t total,
                     std::size_t bytes_each = sizeof(T)) {
  return cut_into_rounds(call, total, vector_elements<T>, bytes_each);
}

/// launch(first, count, share) for pieces of `count` elements of `element_bytes` bytes, each of
/// which fits the lane's packets: a call for each.
template <class Launch>
void for_each_packet_call(const CollectiveCall& call, std::size_t count, std::size_t element_bytes,
                          Launch launch) {
  const std::size_t most = packet_words(call) * (sizeof(Packet) / element_bytes);
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t piece = count - first < most ? count - first : most;
    launch(first, piece, share_packets(call, piece * element_bytes));
  }
}

/// How far apart the shards of `count` elements begin: at multiples of 16 bytes.
template <class T>
std::size_t shard_stride(std::size_t count, std::size_t members) {
  constexpr std::size_t granule = vector_elements<T>;
  const std::size_t even = count / members + (count % members != 0 ? 1 : 0);
  return even / granule * granule + (even % granule != 0 ? granule : 0);
}

/// An array of `count` elements, a shard per member; a member stages `bytes_each` bytes for each
/// element of a shard.
template <class T>
Shards cut_into_shards(const CollectiveCall& call, std::size_t bytes_each) {
  const std::size_t stride =
      shard_stride<T>(call.count, static_cast<std::size_t>(call.team.size()));
  return {call.count, stride, staged_rounds<T>(call, stride, bytes_each)};
}

/// use(std::type_identity<T>()) for the type that `type` names.
template <class Use>
void with_type(DataType type, Use use) {
  switch (type) {
    case DataType::fp16:
      return use(std::type_identity<fp16>());
    case DataType::bf16:
      return use(std::type_identity<bf16>());
    case DataType::fp32:
      return use(std::type_identity<float>());
    case DataType::fp64:
      return use(std::type_identity<double>());
    case DataType::int8:
      return use(std::type_identity<std::int8_t>());
    case DataType::int32:
      return use(std::type_identity<std::int32_t>());
    case DataType::int64:
      return use(std::type_identity<std::int64_t>());
    case DataType::uint8:
      return use(std::type_identity<std::uint8_t>());
    case DataType::uint32:
      return use(std::type_identity<std::uint32_t>());
    case DataType::uint64:
      return use(std::type_identity<std::uint64_t>());
  }
}

/// use(std::integral_constant<int, Vectors>()) for one of the tile shapes there are.
template <class Use>
void with_tile(int vectors, Use use) {
  if (vectors == 1) return use(std::integral_constant<int, 1>());
  if (vectors == 2) return use(std::integral_constant<int, 2>());
  return use(std::integral_constant<int, 4>());
}

template <class Kernel>
const detail::KernelEntry* entry_of() {
  return &detail::kernel_entry<Kernel, detail::ThisCompiler>();
}

/// Every instantiation, to be loaded in advance.
template <template <Number> class Kernel>
KernelList kernels_of_all_types() {
  KernelList list;
  for (const DataType type : data_types())
    with_type(type, [&]<class T>(std::type_identity<T>) { list.push_back(entry_of<Kernel<T>>()); });
  return list;
}
template <template <Number, int> class Kernel>
KernelList kernels_of_all_types_and_tiles() {
  KernelList list;
  for (const DataType type : data_types())
    for (const int vectors : {1, 2, 4})
      with_type(type, [&]<class T>(std::type_identity<T>) {
        with_tile(vectors, [&](auto tile) { list.push_back(entry_of<Kernel<T, tile>>()); });
      });
  return list;
}

}  // namespace iridium

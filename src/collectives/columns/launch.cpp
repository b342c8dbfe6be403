#include "collectives/columns/launch.h"

#include <algorithm>

#include "collectives/columns/kernels.h"

namespace iridium {
namespace {

using Byte = std::uint8_t;

/// The pieces of `row` elements of T per row and member; a scratch has room for those of `sources`
/// members.
template <class T>
RowPieces cut_into_pieces(const ColumnCall& columns, std::size_t row, std::size_t sources) {
  const CollectiveCall& call = columns.call;
  constexpr std::size_t granule = vector_elements<T>;
  // A vector for each of a block's threads, times the tile.
  std::size_t most = static_cast<std::size_t>(call.choice.tile) * Block::gpu_threads * granule;
  const std::size_t room = staged_bytes(call) / sources / sizeof(T);
  if (!call.symmetric) most = std::max(granule, std::min(most, room / granule * granule));
  const std::size_t length = std::min(most, (row + granule - 1) / granule * granule);
  const std::size_t each_row = (row + length - 1) / length;
  const std::size_t total = columns.rows * each_row;
  return {row, length, each_row,
          call.symmetric ? one_round(call, total, 1)
                         : cut_into_rounds(call, total, 1, sources * sizeof(T) * length)};
}

}  // namespace

void launch_column_gather(const ColumnCall& columns, bool pushes) {
  const CollectiveCall& call = columns.call;
  const std::size_t element = size_of(call.type);
  const auto sources = static_cast<std::size_t>(pushes ? call.team.size() : 1);
  const ColumnGather work = {{call.input<Byte>(), columns.in_pitch * element},
                             {call.output<Byte>(), columns.out_pitch * element},
                             cut_into_pieces<Byte>(columns, call.bytes(), sources),
                             pushes};
  if (call.symmetric)
    launch_call(call, [&](const Lane& lane) { return DirectColumnGather{lane, work}; });
  else
    launch_call(call, [&](const Lane& lane) { return StagedColumnGather{lane, work}; });
}

void launch_column_reduce(const ColumnCall& columns) {
  const CollectiveCall& call = columns.call;
  with_type(call.type, [&]<class T>(std::type_identity<T>) {
    const auto sources = static_cast<std::size_t>(call.team.size());
    launch_call(call, [&](const Lane& lane) {
      return ColumnReduce<T>{lane,
                             {call.input<T>(), columns.in_pitch},
                             {call.output<T>(), columns.out_pitch},
                             cut_into_pieces<T>(columns, call.count, sources),
                             call.op,
                             call.symmetric};
    });
  });
}

KernelList column_kernels() {
  KernelList list = kernels_of_all_types<ColumnReduce>();
  list.push_back(entry_of<StagedColumnGather>());
  list.push_back(entry_of<DirectColumnGather>());
  return list;
}

}  // namespace iridium

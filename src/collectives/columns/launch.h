#pragma once

#include "collectives/call.h"

namespace iridium {

/// A call on matrices; its `count` is a member's columns.
struct ColumnCall {
  CollectiveCall call;
  std::size_t rows;
  std::size_t in_pitch;
  std::size_t out_pitch;
};

void launch_column_gather(const ColumnCall& columns, bool pushes);
void launch_column_reduce(const ColumnCall& columns);

KernelList column_kernels();

}  // namespace iridium

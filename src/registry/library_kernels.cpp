#include "runtime/library_kernels.h"

#include "collectives/all_gather/launch.h"
#include "collectives/all_reduce/launch.h"
#include "collectives/all_to_all/launch.h"
#include "collectives/broadcast/launch.h"
#include "collectives/call_check/launch.h"
#include "collectives/columns/launch.h"
#include "collectives/device_barrier/kernels.h"
#include "collectives/reduce_scatter/launch.h"
#include "collectives/shard_reduce/launch.h"
#include "collectives/signals/kernels.h"
#include "fused/all_gather_matmul/launch.h"
#include "matmul/launch.h"

namespace iridium {

const KernelList& library_kernels() {
  static const KernelList kernels = [] {
    KernelList list;
    for (const KernelList& some :
         {call_check_kernels(), device_barrier_kernels(), signal_kernels(),
          packet_all_reduce_kernels(), packet_two_shot_all_reduce_kernels(),
          one_shot_all_reduce_kernels(), ring_all_reduce_kernels(), atomic_all_reduce_kernels(),
          staged_shard_reduce_kernels(), direct_shard_reduce_kernels(), push_shard_reduce_kernels(),
          packet_reduce_scatter_kernels(), all_gather_kernels(), all_to_all_kernels(),
          broadcast_kernels(), column_kernels(), matmul_kernels(), all_gather_matmul_kernels()})
      list.insert(list.end(), some.begin(), some.end());
    return list;
  }();
  return kernels;
}

}  // namespace iridium

#include "runtime/library_kernels.h"

#include "collectives/device_barrier/kernels.h"
#include "collectives/signals/kernels.h"

namespace iridium {

const KernelList& library_kernels() {
  static const KernelList kernels = [] {
    KernelList list;
    for (const KernelList& some : {device_barrier_kernels(), signal_kernels()})
      list.insert(list.end(), some.begin(), some.end());
    return list;
  }();
  return kernels;
}

}  // namespace iridium

#include "iridium/operations.h"

#include <algorithm>

#include "collectives/device_barrier/operation.h"
#include "collectives/remote_memory/operation.h"
#include "collectives/signals/operation.h"

namespace iridium {

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> list = signal_operations();
    for (Operation& operation : remote_memory_operations()) list.push_back(std::move(operation));
    list.push_back(device_barrier_operation());
    std::sort(list.begin(), list.end(),
              [](const Operation& a, const Operation& b) { return a.name < b.name; });
    return list;
  }();
  return all;
}

}  // namespace iridium

#include "iridium/operations.h"

#include <algorithm>

#include "collectives/device_barrier/operation.h"
#include "collectives/host_calls/operation.h"
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

const std::vector<Operation>& host_calls() {
  static const std::vector<Operation> all = host_call_operations();
  return all;
}

std::vector<Arguments> combinations(const Operation& operation) {
  std::vector<Arguments> all = {{}};
  for (const Parameter& parameter : operation.parameters) {
    std::vector<Arguments> longer;
    for (const Arguments& arguments : all)
      for (const std::string& value : parameter.values) {
        longer.push_back(arguments);
        longer.back()[parameter.name] = value;
      }
    all = std::move(longer);
  }
  return all;
}

}  // namespace iridium

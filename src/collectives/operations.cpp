#include "iridium/operations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collectives/all_gather/operation.h"
#include "collectives/all_reduce/operation.h"
#include "collectives/all_to_all/operation.h"
#include "collectives/broadcast/operation.h"
#include "collectives/columns/operation.h"
#include "collectives/copy_limits/operation.h"
#include "collectives/device_barrier/operation.h"
#include "collectives/host_calls/operation.h"
#include "collectives/reduce_scatter/operation.h"
#include "collectives/remote_memory/operation.h"
#include "collectives/signals/operation.h"
#include "matmul/operation.h"

namespace iridium {
namespace {

/// By name; each refuses arguments that are no parameters of it.
std::vector<Operation> registered(std::vector<Operation> list) {
  std::ranges::sort(list, {}, &Operation::name);
  for (Operation& operation : list) {
    std::vector<std::string> known;
    for (const Parameter& parameter : operation.parameters) known.push_back(parameter.name);
    operation.prepare = [name = operation.name, known = std::move(known),
                         prepare = std::move(operation.prepare)](Context& context, const Team& team,
                                                                 const Arguments& arguments) {
      for (const auto& [argument, value] : arguments)
        if (std::ranges::find(known, argument) == known.end())
          throw Error(Errc::invalid_argument, fmt::format("{} has no parameter '{}'; it has: {}",
                                                          name, argument, fmt::join(known, ", ")));
      return prepare(context, team, arguments);
    };
  }
  return list;
}

std::vector<Operation> stream_operations() {
  std::vector<Operation> list = signal_operations();
  for (Operation& operation : remote_memory_operations()) list.push_back(std::move(operation));
  for (Operation operation :
       {device_barrier_operation(), all_gather_operation(), all_reduce_operation(),
        all_to_all_operation(), all_to_all_parts_operation(), broadcast_operation(),
        reduce_scatter_operation(), all_gather_columns_operation(),
        reduce_scatter_columns_operation(), matmul_operation()})
    list.push_back(std::move(operation));
  return list;
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = registered(stream_operations());
  return all;
}

const std::vector<Operation>& copy_limits() {
  static const std::vector<Operation> all = registered(copy_limit_operations());
  return all;
}

const std::vector<Operation>& host_calls() {
  static const std::vector<Operation> all = registered(host_call_operations());
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

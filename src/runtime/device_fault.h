// What a kernel's fault record says, in words.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "iridium/device/lane.h"
#include "runtime/control_message.h"

namespace iridium {

/// `ranks` are the team's, by place. The words are the same on every member.
Fault describe(const FaultRecord& record, const std::vector<int>& ranks, const std::string& team,
               std::chrono::milliseconds timeout);

}  // namespace iridium

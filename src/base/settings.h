// Reading the settings of include/iridium/settings.h. A variable's name stands here once and
// nowhere else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "iridium/settings.h"
#include "iridium/types.h"

namespace iridium {

namespace variables {
inline constexpr const char* backend = "IRIDIUM_BACKEND";
inline constexpr const char* device = "IRIDIUM_DEVICE";
inline constexpr const char* placement = "IRIDIUM_PLACEMENT";
inline constexpr const char* link = "IRIDIUM_LINK";
inline constexpr const char* lanes_at_once = "IRIDIUM_LANES_AT_ONCE";
inline constexpr const char* beside_compute = "IRIDIUM_BESIDE_COMPUTE";
inline constexpr const char* heap_bytes = "IRIDIUM_HEAP_BYTES";
inline constexpr const char* timeout = "IRIDIUM_TIMEOUT";
inline constexpr const char* construction_timeout = "IRIDIUM_CONSTRUCTION_TIMEOUT";
inline constexpr const char* checked = "IRIDIUM_CHECKED";
inline constexpr const char* tuning_table = "IRIDIUM_TUNING_TABLE";
inline constexpr const char* cublas = "IRIDIUM_CUBLAS";
inline constexpr const char* split_blocks = "IRIDIUM_SPLIT_BLOCKS";
inline constexpr const char* schedule_seed = "IRIDIUM_SCHEDULE_SEED";
inline constexpr const char* log = "IRIDIUM_LOG";
inline constexpr const char* runtime_dir = "IRIDIUM_RUNTIME_DIR";
inline constexpr const char* rank = "IRIDIUM_RANK";
inline constexpr const char* size = "IRIDIUM_SIZE";
inline constexpr const char* local_rank = "IRIDIUM_LOCAL_RANK";
inline constexpr const char* job = "IRIDIUM_JOB";
inline constexpr const char* token = "IRIDIUM_TOKEN";
}  // namespace variables

/// Looks a variable up; an empty value counts as absent.
using Environment = std::function<std::optional<std::string>(const char* variable)>;

/// The process's own environment.
std::optional<std::string> process_environment(const char* variable);

inline constexpr int default_lanes_at_once = 1;
inline constexpr int max_lanes_at_once = 64;
inline constexpr std::size_t default_heap_bytes = std::size_t{256} << 20;
/// Patient: a rank that loads weights or compiles kernels may come minutes later, and one that dies
/// is noticed at once.
inline constexpr std::chrono::milliseconds default_timeout{300'000};
inline constexpr std::chrono::milliseconds default_construction_timeout{300'000};

// Each returns the variable's value or the default, and throws `invalid_argument` with variable and
// value.
std::optional<BackendKind> backend_setting(const Environment& environment);
std::optional<int> device_setting(const Environment& environment);
Placement placement_setting(const Environment& environment);
/// None when not set.
std::optional<Link> link_setting(const Environment& environment);
int lanes_at_once_setting(const Environment& environment);
bool beside_compute_setting(const Environment& environment);
std::size_t heap_bytes_setting(const Environment& environment);
std::chrono::milliseconds timeout_setting(const Environment& environment);
std::chrono::milliseconds construction_timeout_setting(const Environment& environment);
bool checked_setting(const Environment& environment);
bool split_blocks_setting(const Environment& environment);
/// None when not set.
std::optional<std::uint64_t> schedule_seed_setting(const Environment& environment);
/// The directory for control sockets; empty when not set.
std::string runtime_dir_setting(const Environment& environment);

}  // namespace iridium

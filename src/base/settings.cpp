#include "base/settings.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::array table = {
    Setting{"ContextOptions::backend", "--backend", variables::backend, "auto",
            "Where ranks run: `host`, `cuda`, `hip`, or `auto` for the best one present."},
    Setting{"ContextOptions::device", "", variables::device,
            "local rank modulo number of usable GPUs",
            "The GPU this rank uses; counts the visible ones from 0."},
    Setting{
        "ContextOptions::placement", "", variables::placement, "device",
        "Memory the segment lies in: `device`, or `host` for host memory mapped for CPU and GPU."},
    Setting{
        "ContextOptions::link", "", variables::link, "as detected",
        "The best link to assume between ranks. With `apart`, ranks that share a GPU fence their "
        "stores for the whole system, as ranks with a GPU each do, and keep the grids and tuning "
        "rows of a shared one. With `nvlink`, `pcie_atomics` or `pcie`, ranks on one device, or on "
        "CPUs, behave as if they had such a link. For tests and benchmarks."},
    Setting{
        "ContextOptions::lanes_at_once", "", variables::lanes_at_once, "1",
        "How many calls of one rank, each on a different team, may be waiting at once for a "
        "kernel that still has to find room on a GPU that ranks share: 1 to 64. Two always have "
        "room to run. The same on every rank."},
    Setting{"ContextOptions::heap_bytes", "", variables::heap_bytes, "256M",
            "Size of each rank's segment of the symmetric heap; K, M, G and T are powers of 1024. "
            "The world "
            "team's lane takes about 25 MiB of it."},
    Setting{"ContextOptions::timeout", "--timeout", variables::timeout, "300",
            "Seconds until a wait for other ranks, on the host or in a kernel, gives up and names "
            "the ranks that were missing. The same on every rank."},
    Setting{"ContextOptions::construction_timeout", "", variables::construction_timeout, "300",
            "The same for every wait while a context or a team is made."},
    Setting{"ContextOptions::checked", "", variables::checked, "0",
            "1: checked mode: kernels check their accesses to peers, and members compare their "
            "collective calls. The same on every rank."},
    Setting{"", "", variables::tuning_table, "none",
            "A file with rows that go before those of the shipped tuning table. The same on every "
            "rank."},
    Setting{"", "", variables::cublas, "libcublas.so.13 or .12, where the loader finds it",
            "The file of cuBLAS, for products by `cublas`."},
    Setting{"ContextOptions::split_blocks", "", variables::split_blocks, "0",
            "1: a CPU block is four fibers with a real block barrier, so that a missing one shows. "
            "For tests."},
    Setting{"ContextOptions::schedule_seed", "", variables::schedule_seed, "none",
            "A number from which the turns and stalls of CPU blocks are drawn. For tests."},
    Setting{"ContextOptions::name", "", "", "default",
            "Tells contexts apart that ranks make at the same time."},
    Setting{"ContextOptions::world", "", "", "see TeamOptions", "Lane sizes of the world team."},
    Setting{"ContextOptions::on_step", "", "", "none",
            "Called when a step of a context's construction begins."},
    Setting{"TeamOptions::max_blocks", "", "", "64",
            "Largest grid of a call; the smallest among all ranks wins."},
    Setting{"TeamOptions::beside_compute", "", variables::beside_compute, "1",
            "0: grids may take the whole GPU, for ranks that share one and compute nothing while "
            "others wait (docs/gpus.md). The same on every rank."},
    Setting{"TeamOptions::exclusive", "", "", "false",
            "Ranks have no other team's calls in flight while they call this one's: it may take "
            "their room, too. The same on every rank."},
    Setting{"TeamOptions::scratch_bytes", "", "", "8M",
            "Staging area of a team's lane, per parity."},
    Setting{"TeamOptions::packet_bytes", "", "", "2M",
            "Payload of small messages in a team's lane, per parity; the members share it."},
    Setting{"TeamOptions::name", "", "", "team N", "What messages call the team."},
    Setting{"", "", variables::log, "warn",
            "Lines on standard error: `off`, `error`, `warn`, `info` or `debug`."},
    Setting{"", "", variables::runtime_dir, "/tmp/iridium-UID",
            "Private directory (mode 0700) in which ranks meet; the same for all ranks of a job."},
    Setting{"Job::size", "-n", variables::size, "1 without a launcher",
            "Number of ranks, 1 to 64; set by `iridium run`, which requires `-n`."},
    Setting{"Job::rank", "", variables::rank, "0", "This rank; set by `iridium run`."},
    Setting{"Job::local_rank", "", variables::local_rank, "none",
            "This rank's number among those on its host, by which it takes a GPU; set by "
            "`iridium run`. Other launchers have variables of their own."},
    Setting{"Job::rendezvous", "", variables::job, "random",
            "Name the ranks of a job meet under; set by `iridium run`."},
    Setting{"Job::token", "", variables::token, "random",
            "Secret of the job; a peer without it is turned away. Set by `iridium run`."},
    Setting{
        "", "--mps", "", "auto",
        "MPS daemon for ranks that share a GPU: `auto` starts one when ranks outnumber GPUs, `on` "
        "always, `off` never."},
    Setting{"", "--grace", "", "5",
            "Seconds between SIGTERM and SIGKILL when `iridium run` ends the other ranks."},
};

Error bad_value(const char* variable, const std::string& value, std::string_view expected) {
  return {Errc::invalid_argument,
          fmt::format("{} is '{}': expected {}", variable, value, expected)};
}

std::chrono::milliseconds seconds_setting(const Environment& environment, const char* variable,
                                          std::chrono::milliseconds default_value) {
  const auto value = environment(variable);
  if (!value) return default_value;
  const auto time = parse_seconds(*value);
  if (!time) throw bad_value(variable, *value, "a positive number of seconds such as 30 or 0.5");
  return *time;
}

bool flag_setting(const Environment& environment, const char* variable,
                  bool default_value = false) {
  const auto value = environment(variable);
  if (!value) return default_value;
  if (*value == "0") return false;
  if (*value == "1") return true;
  throw bad_value(variable, *value, "0 or 1");
}

}  // namespace

std::span<const Setting> settings() {
  return table;
}

std::string settings_markdown() {
  const auto code = [](std::string_view text) {
    return text.empty() ? std::string("–") : fmt::format("`{}`", text);
  };
  std::string text =
      "| in a program | `iridium run` | environment | default | meaning |\n| --- | --- | --- | --- "
      "| --- |\n";
  for (const Setting& row : table)
    text += fmt::format("| {} | {} | {} | {} | {} |\n", code(row.option), code(row.flag),
                        code(row.variable), row.default_value, row.meaning);
  return text;
}

std::optional<std::string> process_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<BackendKind> backend_setting(const Environment& environment) {
  const auto value = environment(variables::backend);
  if (!value || *value == "auto") return std::nullopt;
  try {
    return parse_backend(*value);
  } catch (const Error&) {
    throw bad_value(variables::backend, *value, "auto, host, cuda or hip");
  }
}

std::optional<int> device_setting(const Environment& environment) {
  const auto value = environment(variables::device);
  if (!value) return std::nullopt;
  const auto device = parse_number(*value);
  if (!device || *device > 1'000'000)
    throw bad_value(variables::device, *value, "a device number such as 0");
  return static_cast<int>(*device);
}

Placement placement_setting(const Environment& environment) {
  const auto value = environment(variables::placement);
  if (!value) return Placement::device;
  try {
    return parse_placement(*value);
  } catch (const Error&) {
    throw bad_value(variables::placement, *value, "device or host");
  }
}

std::optional<Link> link_setting(const Environment& environment) {
  const auto value = environment(variables::link);
  if (!value) return std::nullopt;
  for (const Link link : {Link::apart, Link::nvlink, Link::pcie_atomics, Link::pcie})
    if (*value == name(link)) return link;
  throw bad_value(variables::link, *value, "apart, nvlink, pcie_atomics or pcie");
}

int lanes_at_once_setting(const Environment& environment) {
  const auto value = environment(variables::lanes_at_once);
  if (!value) return default_lanes_at_once;
  const auto lanes = parse_number(*value);
  if (!lanes || *lanes < 1 || *lanes > max_lanes_at_once)
    throw bad_value(variables::lanes_at_once, *value,
                    fmt::format("a number from 1 to {}", max_lanes_at_once));
  return static_cast<int>(*lanes);
}

bool beside_compute_setting(const Environment& environment) {
  return flag_setting(environment, variables::beside_compute, true);
}

std::size_t heap_bytes_setting(const Environment& environment) {
  const auto value = environment(variables::heap_bytes);
  if (!value) return default_heap_bytes;
  const auto bytes = parse_bytes(*value);
  if (!bytes || *bytes == 0)
    throw bad_value(variables::heap_bytes, *value,
                    "a positive number of bytes such as 268435456, 256M or 4G");
  return *bytes;
}

std::chrono::milliseconds timeout_setting(const Environment& environment) {
  return seconds_setting(environment, variables::timeout, default_timeout);
}

std::chrono::milliseconds construction_timeout_setting(const Environment& environment) {
  return seconds_setting(environment, variables::construction_timeout,
                         default_construction_timeout);
}

bool checked_setting(const Environment& environment) {
  return flag_setting(environment, variables::checked);
}

bool split_blocks_setting(const Environment& environment) {
  return flag_setting(environment, variables::split_blocks);
}

std::optional<std::uint64_t> schedule_seed_setting(const Environment& environment) {
  const auto value = environment(variables::schedule_seed);
  if (!value) return std::nullopt;
  const auto seed = parse_number(*value);
  if (!seed) throw bad_value(variables::schedule_seed, *value, "a number such as 1");
  return seed;
}

std::string runtime_dir_setting(const Environment& environment) {
  return environment(variables::runtime_dir).value_or("");
}

}  // namespace iridium

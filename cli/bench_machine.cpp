#include "cli/bench_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "iridium/version.h"

namespace iridium::cli {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "";
}

/// Of NVIDIA's kernel module.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0) return word;
  return "";
}

/// "NVIDIA H200" as "h200".
std::string folder_name(const std::string& device) {
  std::string name;
  for (const char letter : device) {
    const auto byte = static_cast<unsigned char>(letter);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return name.starts_with("nvidia-") ? name.substr(7) : name;
}

}  // namespace

BenchMachine this_machine() {
  BenchMachine machine;
  machine.cpu = cpu_model();
  machine.cores = static_cast<int>(std::thread::hardware_concurrency());
  machine.name = fmt::format("cpu-{}-cores", machine.cores);
  return machine;
}

GpuUse use_of_gpus(int ranks, int usable, Link link) {
  // Over the link of one GPU all ranks are on one, however many there are.
  return {link <= Link::apart ? 1 : std::min(ranks, usable), link};
}

std::string machine_name(const std::string& device, const GpuUse& use) {
  return fmt::format("{}x{}-{}", folder_name(device), use.gpus, name(use.link));
}

void describe_device(BenchMachine& machine, const std::string& backend, int ranks, Link link,
                     GpuUse& use) {
  if (backend != "cuda") return;
  for (const BackendInfo& info : describe_backends()) {
    const std::vector<DeviceInfo> devices = info.usable_devices();
    if (info.kind != BackendKind::cuda || devices.empty()) continue;
    machine.device = devices[0].name;
    const GpuUse now = use_of_gpus(ranks, static_cast<int>(devices.size()), link);
    use = {std::max(use.gpus, now.gpus), std::max(use.link, now.link)};
    machine.name = machine_name(machine.device, use);
    machine.driver = driver_version();
  }
}

std::optional<BackendInfo> backend_for(const std::string& backend) {
  const bool is_any = backend.empty() || backend == "auto";
  for (BackendInfo& info : describe_backends())
    if (info.available && !info.usable_devices().empty() && (is_any || backend == name(info.kind)))
      return std::move(info);
  return std::nullopt;
}

std::string machine_text(const BenchMachine& machine) {
  return fmt::format("{} ({}, {} {}{}{})", machine.name, machine.cpu, machine.cores,
                     machine.cores == 1 ? "core" : "cores", machine.device.empty() ? "" : ", ",
                     machine.device);
}

std::size_t memory_for_rank(const std::string& backend, int ranks) {
  const std::optional<BackendInfo> info = backend_for(backend);
  // Making a context says why there is none.
  if (!info) return std::numeric_limits<std::size_t>::max();
  const std::vector<DeviceInfo> devices = info->usable_devices();
  const std::size_t sharing =
      (static_cast<std::size_t>(ranks) + devices.size() - 1) / devices.size();
  return devices[0].memory_bytes / sharing / 2;
}

BenchRun begin_run(const std::string& command) {
  BenchRun run;
  run.version = version();
  run.commit = built_commit;
  run.command = command;
  run.machine = this_machine();
  return run;
}

}  // namespace iridium::cli

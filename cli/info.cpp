#include "cli/info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/bench_axes.h"
#include "cli/command_line.h"
#include "cli/peers.h"
#include "cli/text_table.h"
#include "cli/tune_products.h"
#include "cli/tune_rows.h"
#include "iridium/errors.h"
#include "iridium/tuning.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Raised whenever a field changes its meaning or goes away.
constexpr int schema = 1;

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

std::string memory_text(std::size_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1u << 30));
}

std::string json_text(const Json& json) {
  // Names of devices come from drivers, and need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json document(std::string_view version) {
  return {{"schema", schema}, {"version", version}};
}

Json to_json(const BackendInfo& backend) {
  Json devices = Json::array();
  for (const DeviceInfo& device : backend.devices)
    devices.push_back({{"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"processors", device.processors},
                       {"objection", device.objection}});
  Json capabilities = Json::array();
  for (const Capability& capability : backend.capabilities)
    capabilities.push_back({{"name", capability.name},
                            {"available", capability.available},
                            {"detail", capability.detail}});
  return {{"name", name(backend.kind)},
          {"available", backend.available},
          {"reason", backend.reason},
          {"devices", devices},
          {"capabilities", capabilities}};
}

}  // namespace

Subcommand add_info(CommandLine& line, InfoOptions& options) {
  Subcommand info = line.add("info", "Shows what this build of Iridium and this machine can do.");
  info.add("--format", options.format,
           "How to print it: table, for people, or json, for programs. The default is "
           "table.")
      .one_of({"table", "json"})
      .value_name("FORMAT");
  const SubcommandOption settings =
      info.add_flag("--settings", options.settings,
                    "Shows every setting, its environment variable and its default instead.");
  std::vector<std::string> choices = tuned_operations();
  choices.emplace_back(product_operation);
  const SubcommandOption choose =
      info.add("--choose", options.operation,
               "Shows instead which algorithm and grid a collective gets, or which algorithm a "
               "matrix product, for the case that the options below describe.")
          .one_of(choices)
          .excludes(settings)
          .value_name("OPERATION");
  info.add_flag("--peers", options.peers,
                "Starts -n ranks and shows instead what lies between every two of them: the link, "
                "how long a barrier takes, how fast kernels store to and load from the other's "
                "memory, and whether bytes arrive as sent.")
      .excludes(settings)
      .excludes(choose);
  // For the ranks that the command starts itself.
  info.add("--rows", options.rows).hidden();
  info.add("--backend", options.backend,
           "The backend of the case, or of the ranks. The default is the best one on this machine; "
           "for ranks IRIDIUM_BACKEND decides where it is set.")
      .one_of({"cuda", "host"})
      .value_name("NAME");
  info.add("--device", options.device,
           "The device's name of the case, such as 'NVIDIA H200'. The default is the "
           "backend's first one on this machine.")
      .needs(choose)
      .value_name("NAME");
  info.add("--memory", options.memory, "The memory of the case: plain, the default, or symmetric.")
      .one_of({"plain", "symmetric"})
      .needs(choose)
      .value_name("KIND");
  info.add("--link", options.link,
           "The worst link between two ranks in the case: shared, the default, nvlink or pcie.")
      .one_of({"shared", "nvlink", "pcie"})
      .needs(choose)
      .value_name("LINK");
  info.add("-n", options.ranks, "The team's size in the case, or how many ranks. The default is 2.")
      .within(1, 64)
      .value_name("N");
  info.add("--bytes", options.bytes,
           "Bytes of one rank's largest buffer in the case, such as 64K. The default is 1M.")
      .needs(choose)
      .value_name("SIZE");
  info.add("--shape", options.shape, "M, N and K of the product, such as 4096x3584x8192.")
      .needs(choose)
      .value_name("MxNxK");
  info.add("--dtype", options.dtype,
           "The type of the product's elements: bf16, the default, fp16, fp32, tf32 or e4m3.")
      .needs(choose)
      .value_name("TYPE");
  info.add("--layout", options.layout, "How the product's B is stored: nk, the default, or kn.")
      .one_of({"nk", "kn"})
      .needs(choose)
      .value_name("LAYOUT");
  return info;
}

std::string backends_as_table(std::string_view version, std::span<const BackendInfo> backends) {
  TextTable summary({"backend", "available", "why not"});
  TextTable devices({"backend", "device", "name", "memory", "processors", "why not"});
  TextTable capabilities({"backend", "capability", "available", "detail"});
  for (const BackendInfo& backend : backends) {
    const std::string kind(name(backend.kind));
    summary.add_row({kind, yes_or_no(backend.available), backend.reason});
    for (std::size_t i = 0; i < backend.devices.size(); ++i) {
      const DeviceInfo& device = backend.devices[i];
      devices.add_row({kind, std::to_string(i), device.name, memory_text(device.memory_bytes),
                       std::to_string(device.processors), device.objection});
    }
    for (const Capability& capability : backend.capabilities)
      capabilities.add_row(
          {kind, capability.name, yes_or_no(capability.available), capability.detail});
  }
  std::string text = fmt::format("iridium {}\n", version);
  for (const TextTable* table : {&summary, &devices, &capabilities})
    if (!table->is_empty()) text += "\n" + table->render();
  return text;
}

std::string backends_as_json(std::string_view version, std::span<const BackendInfo> backends) {
  Json json = document(version);
  json["backends"] = Json::array();
  for (const BackendInfo& backend : backends) json["backends"].push_back(to_json(backend));
  return json_text(json);
}

std::string settings_as_json(std::string_view version, std::span<const Setting> settings) {
  Json json = document(version);
  json["settings"] = Json::array();
  for (const Setting& setting : settings)
    json["settings"].push_back({{"option", setting.option},
                                {"flag", setting.flag},
                                {"variable", setting.variable},
                                {"default", setting.default_value},
                                {"meaning", setting.meaning}});
  return json_text(json);
}

namespace {

constexpr const char* unmeasured =
    "no row of the shipped table for links other than shared was ever measured; iridium tune "
    "measures this machine's";

int ranks_of(const InfoOptions& options) {
  return options.ranks == 0 ? 2 : options.ranks;
}

}  // namespace

BackendInfo backend_of(const std::string& asked) {
  for (const BackendInfo& each : describe_backends())
    if (asked.empty() ? each.available : name(each.kind) == asked) return each;
  throw Error(Errc::invalid_argument, fmt::format("there is no backend '{}'", asked));
}

std::string choice_text(const InfoOptions& options) {
  const std::vector<std::size_t> sizes = parse_sizes("--bytes", options.bytes);
  if (sizes.size() != 1)
    throw Error(Errc::invalid_argument,
                fmt::format("--bytes is '{}': expected one size", options.bytes));
  const BackendInfo info = backend_of(options.backend);
  const std::string backend(name(info.kind));
  const std::vector<DeviceInfo> devices = info.usable_devices();
  const std::string device = !options.device.empty() ? options.device
                             : devices.empty()       ? ""
                                                     : devices.front().name;
  const std::string device_word = tuning_device(device);
  const int ranks = ranks_of(options);
  const Choice choice = tuning_table().choose({.operation = options.operation,
                                               .symmetric = options.memory == "symmetric",
                                               .backend = backend,
                                               .device = device_word,
                                               .members = ranks,
                                               .bytes = sizes.front(),
                                               .link = parse_link(options.link)});
  if (options.format == "json") {
    Json json = document(version());
    json["choice"] = {{"operation", options.operation},
                      {"backend", backend},
                      {"device", device},
                      {"link", options.link},
                      {"memory", options.memory},
                      {"ranks", ranks},
                      {"bytes", sizes.front()},
                      {"algorithm", choice.algorithm},
                      {"blocks", choice.blocks},
                      {"tile", choice.tile},
                      {"round_bytes", choice.round_bytes}};
    if (options.link != "shared") json["choice"]["note"] = unmeasured;
    return json_text(json);
  }
  TextTable table({"operation", "backend", "link", "memory", "ranks", "bytes", "algorithm",
                   "blocks", "tile", "round"});
  table.add_row({options.operation, backend, options.link, options.memory, std::to_string(ranks),
                 size_text(sizes.front()), choice.algorithm, fmt::format("up to {}", choice.blocks),
                 std::to_string(choice.tile),
                 choice.round_bytes == 0 ? "the lane's" : size_text(choice.round_bytes)});
  return table.render() + (options.link != "shared" ? fmt::format("note: {}\n", unmeasured) : "");
}

int info(const InfoOptions& options) {
  const bool json = options.format == "json";
  if (!options.rows.empty()) return peers_as_rank(options.rows);
  if (options.peers)
    return show_peers({.job = {.ranks = ranks_of(options), .backend = options.backend},
                       .format = options.format});
  if (!options.operation.empty()) {
    print(options.operation == product_operation ? product_choice_text(options)
                                                 : choice_text(options));
    return 0;
  }
  if (options.ranks != 0 || !options.backend.empty())
    throw Error(Errc::invalid_argument, "-n and --backend say nothing without --choose or --peers");
  if (options.settings) {
    print(json ? settings_as_json(version(), settings()) : settings_markdown());
    return 0;
  }
  const std::vector<BackendInfo> backends = describe_backends();
  print(json ? backends_as_json(version(), backends) : backends_as_table(version(), backends));
  return 0;
}

}  // namespace iridium::cli

// `iridium info --choose matmul`: what a product gets on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/info.h"
#include "cli/text_table.h"
#include "iridium/context.h"
#include "iridium/errors.h"
#include "iridium/matmul_choice.h"
#include "iridium/tuning.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

/// The number of the device with this name among the backend's; of the first usable one without.
std::size_t device_number(const BackendInfo& backend, const std::string& asked) {
  const auto is_it = [&](const DeviceInfo& device) {
    return device.objection.empty() && (asked.empty() || device.name == asked);
  };
  const auto found = std::ranges::find_if(backend.devices, is_it);
  if (found == backend.devices.end())
    throw Error(Errc::invalid_argument,
                fmt::format("backend {} has no device '{}' here that ranks can use; what a product "
                            "gets depends on more than the device's name",
                            name(backend.kind), asked));
  return static_cast<std::size_t>(found - backend.devices.begin());
}

/// A rank of its own, whose stream knows the device.
MatmulChoice choose(const InfoOptions& options, const MatmulShape& shape,
                    const BackendInfo& backend, std::size_t device) {
  ContextOptions own = {.backend = backend.kind, .heap_bytes = std::size_t{64} << 20};
  if (backend.kind != BackendKind::host) own.device = static_cast<int>(device);
  Context context(own);
  Stream stream = context.make_stream();
  return choose_matmul(stream, shape, options.dtype, parse_matmul_layout(options.layout));
}

}  // namespace

std::string product_choice_text(const InfoOptions& options) {
  if (options.shape.empty())
    throw Error(Errc::invalid_argument,
                "--choose matmul needs a shape: --shape 4096x3584x8192 (M, N and K)");
  const MatmulShape shape = parse_matmul_shape(options.shape);
  const BackendInfo backend = backend_of(options.backend);
  const std::size_t number = device_number(backend, options.device);
  const std::string& device = backend.devices[number].name;
  const MatmulChoice choice = choose(options, shape, backend, number);
  const std::string by = choice.by_row ? "a row of the tuning table" : "the estimate";
  if (options.format == "json") {
    const nlohmann::ordered_json json = {{"schema", 1},
                                         {"version", version()},
                                         {"choice",
                                          {{"operation", options.operation},
                                           {"backend", name(backend.kind)},
                                           {"device", device},
                                           {"m", shape.rows},
                                           {"n", shape.columns},
                                           {"k", shape.depth},
                                           {"dtype", options.dtype},
                                           {"layout", options.layout},
                                           {"algorithm", name(choice.algorithm)},
                                           {"by", choice.by_row ? "row" : "estimate"}}}};
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  TextTable table({"operation", "backend", "device", "M x N x K", "dtype", "layout", "algorithm",
                   "decided by"});
  table.add_row({options.operation, std::string(name(backend.kind)), device, name(shape),
                 options.dtype, options.layout, std::string(name(choice.algorithm)), by});
  return table.render();
}

}  // namespace iridium::cli

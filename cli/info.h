// `iridium info`: what this build and this machine can do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "iridium/info.h"
#include "iridium/settings.h"

namespace iridium::cli {

/// What `iridium info` is asked to print.
struct InfoOptions {
  std::string format = "table";  ///< "table" or "json"
  bool settings = false;         ///< the settings instead of the backends
  bool peers = false;            ///< what lies between ranks instead
  std::string rows = {};         ///< set on a rank: the file to which rank 0 writes what it finds
  std::string operation = {};    ///< what the tuning table chooses for this one instead
  // The case to choose for; of ranks that are to be measured, the first two.
  std::string backend = {};  ///< empty: the best one here
  int ranks = 0;             ///< 0: 2
  std::string device = {};   ///< empty: the backend's first one here, if there is one
  std::string memory = "plain";
  std::string link = "shared";
  std::string bytes = "1M";
  // Of a product.
  std::string shape = {};
  std::string dtype = "bf16";
  std::string layout = "nk";
};

/// Adds the subcommand to `line`; the parser fills `options`.
Subcommand add_info(CommandLine& line, InfoOptions& options);

/// The backends for people.
std::string backends_as_table(std::string_view version, std::span<const BackendInfo> backends);
/// The backends for programs: an object with the fields "schema", "version" and "backends".
std::string backends_as_json(std::string_view version, std::span<const BackendInfo> backends);
/// The settings for programs: an object with the fields "schema", "version" and "settings".
std::string settings_as_json(std::string_view version, std::span<const Setting> settings);

/// What the tuning table chooses for a collective, for people or for programs. Throws
/// `invalid_argument` for bytes that are no size.
std::string choice_text(const InfoOptions& options);
/// What `automatic` is for a product on a device of this machine. Throws `invalid_argument` for
/// what is no shape, type or device.
std::string product_choice_text(const InfoOptions& options);

/// The backend called so, or without a name the best one that is available; the host's is.
BackendInfo backend_of(const std::string& asked);

/// Prints what is asked for, and returns the status to exit with.
int info(const InfoOptions& options);

}  // namespace iridium::cli

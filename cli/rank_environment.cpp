#include "cli/rank_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "cli/descriptor.h"

namespace iridium::cli {
namespace {

std::string random_hexadecimal() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t{bytes.size()})
    throw_system_error("cannot get random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

/// Variables with their new values; one without a value is taken out.
std::map<std::string, std::optional<std::string>, std::less<>> changes(const RunOptions& options,
                                                                       const JobIdentity& identity,
                                                                       int rank) {
  std::map<std::string, std::optional<std::string>, std::less<>> changed = {
      {"IRIDIUM_RANK", std::to_string(rank)},
      {"IRIDIUM_SIZE", std::to_string(options.ranks)},
      {"IRIDIUM_JOB", identity.job},
      {"IRIDIUM_TOKEN", identity.token},
  };
  if (options.backend == "auto") {
    changed["IRIDIUM_BACKEND"] = std::nullopt;
  } else if (!options.backend.empty()) {
    changed["IRIDIUM_BACKEND"] = options.backend;
  }
  if (options.timeout) changed["IRIDIUM_TIMEOUT"] = fmt::format("{}", *options.timeout);
  return changed;
}

}  // namespace

JobIdentity make_job_identity() {
  return {.job = random_hexadecimal(), .token = random_hexadecimal()};
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

std::vector<std::string> rank_environment(const std::vector<std::string>& environment,
                                          const RunOptions& options, const JobIdentity& identity,
                                          int rank) {
  const auto changed = changes(options, identity, rank);
  std::vector<std::string> entries;
  for (const std::string& entry : environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!changed.contains(name)) entries.push_back(entry);
  }
  for (const auto& [name, value] : changed)
    if (value) entries.push_back(name + "=" + *value);
  return entries;
}

}  // namespace iridium::cli

#include "cli/rank_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
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

EnvironmentChanges rank_changes(const RunOptions& options, const JobIdentity& identity, int rank) {
  EnvironmentChanges changes = {
      {"IRIDIUM_RANK", std::to_string(rank)},
      {"IRIDIUM_SIZE", std::to_string(options.ranks)},
      {"IRIDIUM_LOCAL_RANK", std::to_string(rank)},
      {"IRIDIUM_JOB", identity.job},
      {"IRIDIUM_TOKEN", identity.token},
  };
  if (options.backend == "auto") {
    changes["IRIDIUM_BACKEND"] = std::nullopt;
  } else if (!options.backend.empty()) {
    changes["IRIDIUM_BACKEND"] = options.backend;
  }
  if (options.timeout) changes["IRIDIUM_TIMEOUT"] = fmt::format("{}", *options.timeout);
  return changes;
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

std::vector<std::string> changed_environment(const std::vector<std::string>& environment,
                                             const EnvironmentChanges& changes) {
  std::vector<std::string> entries;
  for (const std::string& entry : environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (!changes.contains(name)) entries.push_back(entry);
  }
  for (const auto& [name, value] : changes)
    if (value) entries.push_back(name + "=" + *value);
  return entries;
}

std::vector<std::string> rank_environment(const std::vector<std::string>& environment,
                                          const RunOptions& options, const JobIdentity& identity,
                                          int rank) {
  return changed_environment(environment, rank_changes(options, identity, rank));
}

std::string backend_of_ranks(const RunOptions& options) {
  const char* inherited = std::getenv("IRIDIUM_BACKEND");
  return options.backend.empty() && inherited != nullptr ? inherited : options.backend;
}

}  // namespace iridium::cli

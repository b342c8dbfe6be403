#include "iridium/tuning.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/settings.h"
#include "base/system_error.h"
#include "base/text.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

constexpr std::string_view shipped_table =
#include "runtime/tuning_table.inc"
    ;

constexpr int max_blocks = 1024;
constexpr std::string_view matmul = "matmul";
constexpr std::string_view automatic = "automatic";

Error bad_row(int line, std::string_view what, const std::string& word) {
  return {Errc::invalid_argument,
          fmt::format("tuning table, line {}: {} is '{}'", line, what, word)};
}

/// The words of a line before its comment.
std::vector<std::string> words_of(std::string line) {
  line.resize(std::min(line.find('#'), line.size()));
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::size_t limit(int line, std::string_view what, const std::string& word, std::size_t largest) {
  if (word == "*") return largest;
  const auto bytes = parse_bytes(word);
  if (!bytes || *bytes > largest) throw bad_row(line, what, word);
  return *bytes;
}

int number(int line, std::string_view what, const std::string& word, int smallest, int largest) {
  const auto value = parse_number(word);
  if (!value || *value < static_cast<std::uint64_t>(smallest) ||
      *value > static_cast<std::uint64_t>(largest))
    throw bad_row(line, what, word);
  return static_cast<int>(*value);
}

bool fits(const std::string& pattern, std::string_view word) {
  return pattern == "*" || pattern == word;
}

bool is_link(const std::string& word) {
  return word == "*" || word == "shared" || word == "nvlink" || word == "pcie";
}

/// Throws, naming the file, for text that is no table.
void check_file(const std::string& path, const std::string& text) {
  try {
    static_cast<void>(TuningTable(text));
  } catch (const Error& error) {
    // `Error` puts the code's name before the message, and will again.
    const std::size_t prefix = name(error.code()).size() + std::string_view(": ").size();
    throw Error(error.code(), fmt::format("{} ({}): {}", path, variables::tuning_table,
                                          std::string_view(error.what()).substr(prefix)));
  }
}

}  // namespace

TuningTable::TuningTable(std::string_view text) : hash_(hash_text(text)) {
  std::istringstream lines{std::string(text)};
  int line = 0;
  for (std::string content; std::getline(lines, content);) {
    ++line;
    std::vector<std::string> words = words_of(content);
    if (words.empty()) continue;
    if (words[0] == matmul)
      add_matmul_row(line, words);
    else
      add_row(line, std::move(words));
  }
}

void TuningTable::add_row(int line, std::vector<std::string> words) {
  if (words.size() != 9 && words.size() != 10)
    throw Error(Errc::invalid_argument,
                fmt::format("tuning table, line {}: {} words; expected 9, or 10 with a link", line,
                            words.size()));
  if (words.size() == 9) words.insert(words.begin() + 3, "*");
  if (words[1] != "*" && words[1] != "plain" && words[1] != "symmetric")
    throw bad_row(line, "memory", words[1]);
  if (!is_link(words[3]))
    throw bad_row(line, "link (expected *, shared, nvlink or pcie)", words[3]);
  const int tile = number(line, "tile", words[8], 1, 4);
  if (tile == 3) throw bad_row(line, "tile", words[8]);
  rows_.push_back({.operation = words[0],
                   .memory = words[1],
                   .device = words[2],
                   .link = words[3],
                   .members = static_cast<int>(
                       limit(line, "members", words[4], std::numeric_limits<int>::max())),
                   .bytes = limit(line, "bytes", words[5], std::numeric_limits<std::size_t>::max()),
                   .choice = {.algorithm = words[6],
                              .blocks = number(line, "blocks", words[7], 1, max_blocks),
                              .tile = tile,
                              .round_bytes = limit(line, "round", words[9],
                                                   std::numeric_limits<std::size_t>::max())}});
}

void TuningTable::add_matmul_row(int line, const std::vector<std::string>& words) {
  if (words.size() != 8)
    throw Error(Errc::invalid_argument,
                fmt::format("tuning table, line {}: {} words; expected 8 for {}", line,
                            words.size(), matmul));
  if (words[2] != "*" && words[2] != "kn" && words[2] != "nk")
    throw bad_row(line, "layout (expected *, kn or nk)", words[2]);
  const auto most = [&](std::string_view what, std::size_t at) {
    return limit(line, what, words[at], std::numeric_limits<std::size_t>::max());
  };
  matmul_rows_.push_back({.dtype = words[1],
                          .layout = words[2],
                          .device = words[3],
                          .most = {most("M", 4), most("N", 5), most("K", 6)},
                          .algorithm = words[7]});
}

Choice TuningTable::choose(const TuningCase& what) const {
  for (const Row& row : rows_)
    if (fits(row.operation, what.operation) &&
        fits(row.memory, what.symmetric ? "symmetric" : "plain") &&
        (fits(row.device, what.backend) || fits(row.device, what.device)) &&
        fits(row.link, tuning_link(what.link)) && what.members <= row.members &&
        what.bytes <= row.bytes)
      return row.choice;
  throw Error(
      Errc::unsupported,
      fmt::format("the tuning table has no row for {} on {} (link {}) with {} members and "
                  "{} bytes",
                  what.operation, what.backend, tuning_link(what.link), what.members, what.bytes));
}

std::string_view TuningTable::choose(
    const MatmulTuningCase& what,
    const std::function<bool(std::string_view algorithm)>& can) const {
  for (const MatmulRow& row : matmul_rows_)
    if (fits(row.dtype, what.dtype) && fits(row.layout, what.layout) &&
        (fits(row.device, what.backend) || fits(row.device, what.device)) &&
        what.shape.rows <= row.most.rows && what.shape.columns <= row.most.columns &&
        what.shape.depth <= row.most.depth && (row.algorithm == automatic || can(row.algorithm)))
      return row.algorithm;
  return automatic;
}

std::string tuning_device(std::string_view name) {
  std::string word(name);
  // A blank would end the word, and a # the row.
  for (char& letter : word)
    if (letter == '#' || static_cast<unsigned char>(letter) <= ' ') letter = '_';
  return word;
}

std::string_view tuning_link(Link link) {
  if (link == Link::apart) return name(Link::shared);
  return link == Link::pcie_atomics ? name(Link::pcie) : name(link);
}

std::string_view shipped_tuning_table() {
  return shipped_table;
}

const TuningTable& tuning_table() {
  static const TuningTable table = [] {
    const auto path = process_environment(variables::tuning_table);
    if (!path) return TuningTable(shipped_table);
    // Others may never end.
    std::error_code problem;
    if (std::filesystem::exists(*path, problem) &&
        !std::filesystem::is_regular_file(*path, problem))
      throw Error(Errc::invalid_argument,
                  fmt::format("{} is '{}', which is no file", variables::tuning_table, *path));
    std::ostringstream text;
    errno = 0;
    std::ifstream file(*path);
    // Inserting nothing would count as a failure.
    if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
    if (file.fail() || text.fail())
      throw Error(Errc::invalid_argument,
                  fmt::format("{} is '{}', which cannot be read: {}", variables::tuning_table,
                              *path, system_reason(errno != 0 ? errno : EIO)));
    check_file(*path, text.str());
    // What the file does not decide, the shipped table does.
    return TuningTable(fmt::format("{}\n{}", text.str(), shipped_table));
  }();
  return table;
}

}  // namespace iridium

#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <utility>

#include "cli/command_line.h"
#include "iridium/version.h"

namespace iridium::cli {
namespace {

std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app->remaining();
  const bool has_command = !app->get_subcommands().empty();
  const std::string reason = !has_command && !unknown.empty()
                                 ? "there is no subcommand '" + unknown[0] + "'"
                                 : error.what();
  return "iridium: " + reason + "\nRun with --help for more information.\n";
}

}  // namespace

SubcommandOption& SubcommandOption::value_name(const std::string& name) {
  option_->option_text(name);
  return *this;
}
SubcommandOption& SubcommandOption::required() {
  option_->required();
  return *this;
}
SubcommandOption& SubcommandOption::hidden() {
  option_->group("");
  return *this;
}
SubcommandOption& SubcommandOption::last_counts() {
  option_->take_last();
  return *this;
}
SubcommandOption& SubcommandOption::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}
SubcommandOption& SubcommandOption::value_count(int count) {
  option_->expected(count);
  return *this;
}
SubcommandOption& SubcommandOption::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}
SubcommandOption& SubcommandOption::within(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
SubcommandOption& SubcommandOption::within(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
SubcommandOption& SubcommandOption::check(
    std::function<std::string(const std::string&)> complaint) {
  option_->check(CLI::Validator(std::move(complaint), ""));
  return *this;
}
SubcommandOption& SubcommandOption::excludes(const SubcommandOption& other) {
  option_->excludes(other.option_);
  return *this;
}
SubcommandOption& SubcommandOption::needs(const SubcommandOption& other) {
  option_->needs(other.option_);
  return *this;
}

template <class Value>
SubcommandOption Subcommand::add(const std::string& name, Value& value, const std::string& text) {
  return SubcommandOption(*app_->add_option(name, value, text));
}
template SubcommandOption Subcommand::add(const std::string&, std::string&, const std::string&);
template SubcommandOption Subcommand::add(const std::string&, std::vector<std::string>&,
                                          const std::string&);
template SubcommandOption Subcommand::add(const std::string&, int&, const std::string&);
template SubcommandOption Subcommand::add(const std::string&, std::size_t&, const std::string&);
template SubcommandOption Subcommand::add(const std::string&, double&, const std::string&);
template SubcommandOption Subcommand::add(const std::string&, std::optional<double>&,
                                          const std::string&);

SubcommandOption Subcommand::add_function(const std::string& name,
                                          const std::function<void(const std::string&)>& take,
                                          const std::string& text) {
  return SubcommandOption(*app_->add_option_function<std::string>(name, take, text));
}
SubcommandOption Subcommand::add_function(
    const std::string& name, const std::function<void(const std::vector<std::string>&)>& take,
    const std::string& text) {
  return SubcommandOption(*app_->add_option_function<std::vector<std::string>>(name, take, text));
}
SubcommandOption Subcommand::add_flag(const std::string& name, bool& is_given,
                                      const std::string& text) {
  return SubcommandOption(*app_->add_flag(name, is_given, text));
}
SubcommandOption Subcommand::add_flag(const std::string& name,
                                      const std::function<void()>& when_given,
                                      const std::string& text) {
  return SubcommandOption(*app_->add_flag_callback(name, when_given, text));
}
void Subcommand::footer(const std::string& text) {
  app_->footer(text);
}

bool Subcommand::is_given() const {
  return app_->parsed();
}
bool Subcommand::takes_value(const std::string& option) const {
  const CLI::Option* found = app_->get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_max() > 0;
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>(
          "Iridium: GPU kernels that read and write each other's memory.", "iridium")) {
  app_->set_version_flag("--version", std::string("iridium ") + version(),
                         "Prints the version and exits.");
  app_->set_help_flag("-h,--help", "Prints this help and exits.");
  app_->require_subcommand(1);
  app_->failure_message(usage_message);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add(const std::string& name, const std::string& text) {
  return Subcommand(*app_->add_subcommand(name, text));
}

std::optional<int> CommandLine::parse(std::vector<std::string> arguments) {
  try {
    // The parser takes them from the end.
    std::ranges::reverse(arguments);
    app_->parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : usage_error_status;
  }
}

}  // namespace iridium::cli

// The command line's subcommands and their options. The parser's own header takes seconds to
// compile, so only options.cpp includes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace iridium::cli {

/// An option of a subcommand. A handle, which lives no longer than its command line.
class SubcommandOption {
 public:
  explicit SubcommandOption(CLI::Option& option) : option_(&option) {}

  /// What stands for the value in the help: "NAME".
  SubcommandOption& value_name(const std::string& name);
  SubcommandOption& required();
  /// Left out of the help.
  SubcommandOption& hidden();
  /// Given several times, the last value counts.
  SubcommandOption& last_counts();
  /// Given several times, takes one value each time.
  SubcommandOption& one_value_each();
  SubcommandOption& value_count(int count);

  // What values are refused.
  SubcommandOption& one_of(const std::vector<std::string>& values);
  SubcommandOption& within(int least, int most);
  SubcommandOption& within(double least, double most);
  /// complaint(value) is what is wrong with it, or empty.
  SubcommandOption& check(std::function<std::string(const std::string& value)> complaint);

  SubcommandOption& excludes(const SubcommandOption& other);
  SubcommandOption& needs(const SubcommandOption& other);

 private:
  CLI::Option* option_;
};

/// A subcommand, such as `iridium run`. A handle, which lives no longer than its command line.
class Subcommand {
 public:
  explicit Subcommand(CLI::App& app) : app_(&app) {}

  /// An option, "--bytes" or "-n", or by a name without dashes what stands without an option.
  /// Values go to `value`: text, a list of it, or a number.
  template <class Value>
  SubcommandOption add(const std::string& name, Value& value, const std::string& text = {});
  /// An option whose value, or values, go to a function.
  SubcommandOption add_function(const std::string& name,
                                const std::function<void(const std::string&)>& take,
                                const std::string& text);
  SubcommandOption add_function(const std::string& name,
                                const std::function<void(const std::vector<std::string>&)>& take,
                                const std::string& text);
  /// An option without a value.
  SubcommandOption add_flag(const std::string& name, bool& is_given, const std::string& text);
  SubcommandOption add_flag(const std::string& name, const std::function<void()>& when_given,
                            const std::string& text);
  /// What the help ends with.
  void footer(const std::string& text);

  /// Whether this is the subcommand that was given.
  bool is_given() const;
  /// Whether the word is an option that takes a value.
  bool takes_value(const std::string& option) const;

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  Subcommand add(const std::string& name, const std::string& text);
  /// Fills what the options were told to. Returns the status to exit with where the help or the
  /// version was asked for, 0, or the arguments are wrong; it has printed what there is to say
  /// then.
  std::optional<int> parse(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace iridium::cli

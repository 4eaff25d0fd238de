// Arguments of sub-commands. A thin face of the argument parser, whose header takes a quarter of a
// minute to compile and is included in command_line.cc alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace emplace::cli {

// What is said of an argument beside its name and help.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  // What stands for its value in the help.
  Option& type(const std::string& name);
  // The help shows the value that it has now.
  Option& shown();
  Option& needs(const Option& other);
  // Parsed, but not in the help.
  Option& hidden(bool hide = true);
  Option& one_of(const std::vector<std::string>& choices);
  // What shells offer for it; others are taken too.
  Option& suggest(std::vector<std::string> values);

 private:
  CLI::Option* option_;
};

// `names` are "-o,--output", or a word for an argument by its place. The variables outlive the
// parsing.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Option text(const std::string& names, std::string& value, const std::string& help);
  // May be given several times.
  Option texts(const std::string& names, std::vector<std::string>& values, const std::string& help);
  // Several of them at once: by their place, or after the option.
  Option list(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option integer(const std::string& names, int& value, int low, int high, const std::string& help);
  Option integer(const std::string& names, std::int64_t& value, std::int64_t low, std::int64_t high,
                 const std::string& help);
  Option count(const std::string& names, std::optional<std::int64_t>& value,
               const std::string& help);
  Option seed(const std::string& names, std::uint64_t& value, const std::string& help);
  Option real(const std::string& names, double& value, double low, double high,
              const std::string& help);
  // "0.4,0.8".
  Option reals(const std::string& names, std::vector<double>& values, double low, double high,
               const std::string& help);
  // "--flag", or "--flag,!--no-flag".
  Option flag(const std::string& names, bool& value, const std::string& help);

  Command command(const std::string& name, const std::string& help);
  void require_command();
  // Examples, after the help.
  void footer(const std::string& text);
  // What to do when the command was chosen.
  void run(std::function<void()> action);

 private:
  CLI::App* app_;
};

// A command with all that is in it, for manual pages and shells.
struct OptionOutline {
  std::vector<std::string> names;  // "-o", "--output"; none: by its place
  std::string value;               // what stands for its value; empty: it takes none
  std::string help;
  bool required = false;
  bool repeats = false;
  std::vector<std::string> choices = {};  // to offer for the value
};
struct CommandOutline {
  std::string name;
  std::string summary;
  std::string footer;
  std::vector<OptionOutline> options = {};  // those in the help
  std::vector<CommandOutline> commands = {};
};

// The whole of it.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version);
  ~CommandLine();

  Command& root() { return root_; }
  CommandOutline outline() const;
  // Runs the chosen command, whose exceptions leave. Nothing when all went well; else the exit code
  // of what was printed (help, or what is wrong with the arguments).
  std::optional<int> parse(int argc, char** argv, int exit_bad_input);

 private:
  std::unique_ptr<CLI::App> app_;
  Command root_;
};

}  // namespace emplace::cli

#include "cli/command_line.h"

#include <CLI/CLI.hpp>

namespace emplace::cli {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::shown() {
  option_->capture_default_str();
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& choices) {
  option_->check(CLI::IsMember(choices));
  return *this;
}

Option Command::text(const std::string& names, std::string& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::texts(const std::string& names, std::vector<std::string>& values,
                      const std::string& help) {
  return Option(app_->add_option(names, values, help)->allow_extra_args(false));
}

Option Command::list(const std::string& names, std::vector<std::string>& values,
                     const std::string& help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::integer(const std::string& names, int& value, int low, int high,
                        const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(CLI::Range(low, high)));
}

Option Command::integer(const std::string& names, std::int64_t& value, std::int64_t low,
                        std::int64_t high, const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(CLI::Range(low, high)));
}

Option Command::count(const std::string& names, std::optional<std::int64_t>& value,
                      const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(CLI::NonNegativeNumber));
}

Option Command::seed(const std::string& names, std::uint64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(CLI::NonNegativeNumber));
}

Option Command::real(const std::string& names, double& value, double low, double high,
                     const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(CLI::Range(low, high)));
}

Option Command::reals(const std::string& names, std::vector<double>& values, double low,
                      double high, const std::string& help) {
  return Option(
      app_->add_option(names, values, help)->delimiter(',')->check(CLI::Range(low, high)));
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

Command Command::command(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}

void Command::require_command() {
  app_->require_subcommand(1);
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}

void Command::run(std::function<void()> action) {
  app_->callback(std::move(action));
}

CommandLine::CommandLine(const std::string& name, const std::string& summary,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)), root_(app_.get()) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

std::optional<int> CommandLine::parse(int argc, char** argv, int exit_bad_input) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : exit_bad_input;
  }
  return std::nullopt;
}

}  // namespace emplace::cli

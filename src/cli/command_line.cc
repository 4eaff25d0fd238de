#include "cli/command_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/options.h"

#include "cli/messages.h"
#include "report/text_style.h"

namespace emplace::cli {
namespace {

// Descriptions broken into lines, beside the names.
class WrappingFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    constexpr std::size_t kNames = 28;
    std::string text = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    const std::string description = make_option_desc(option);
    if (description.empty()) return text + "\n";
    const std::string indent(kNames + 2, ' ');
    text += text.size() < kNames + 1 ? indent.substr(text.size()) : "\n" + indent;
    const std::size_t width = std::min(text_width(), kUsualWidth) - indent.size();
    std::size_t column = 0;
    for (const std::string& word : CLI::detail::split(description, ' ')) {
      if (column > 0) {
        const bool full = column + 1 + word.size() > width;
        text += full ? "\n" + indent : " ";
        column = full ? 0 : column + 1;
      }
      text += word;
      column += word.size();
    }
    return text + "\n";
  }
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The command that was chosen, with the word for it: "emplace zoo export".
std::pair<const CLI::App*, std::string> chosen(const CLI::App& root) {
  const CLI::App* app = &root;
  std::string words = root.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    words += " " + app->get_name();
  }
  return {app, words};
}

// Of words that no option or argument takes: the parser lists them backwards.
std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return "an argument was not expected";
  const std::string name = words[0].substr(0, words[0].find('='));
  return fmt::format("'{}' was not expected{}", fmt::join(words, " "),
                     name.starts_with("--") ? suggestion(name, option_names(app)) : "");
}

std::string missing_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = command_names(app);
  const std::string expected = fmt::format("expected one of: {}", fmt::join(names, ", "));
  if (word.empty()) return "the command is missing: " + expected;
  return fmt::format("unknown command '{}'{}; {}", word, suggestion(word, names), expected);
}

std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const bool needs_command = app.get_require_subcommand_min() > 0;
  const std::vector<std::string> words = app.remaining(true);
  if (needs_command && app.get_subcommands().empty()) {
    return missing_command(app, words.empty() ? "" : words[0]);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unexpected(app);
  return error.what();
}

// By option, as the parser has no place for them; options live as long as the program.
std::map<const CLI::Option*, std::vector<std::string>>& suggested() {
  static std::map<const CLI::Option*, std::vector<std::string>> values;
  return values;
}

OptionOutline outline_of(const CLI::Option& option) {
  OptionOutline outline{.names = {},
                        .value = {},
                        .help = option.get_description(),
                        .required = option.get_required(),
                        .repeats = option.get_expected_max() > 1};
  for (const std::string& name : option.get_snames()) outline.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) outline.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0 && option.get_type_size() > 0) {
    // "TEXT:{a,b}" where only these are taken.
    const std::string type = option.get_type_name();
    outline.value = type.substr(0, type.find(':'));
    if (outline.value.empty()) outline.value = "VALUE";
  }
  const auto values = suggested().find(&option);
  if (values != suggested().end()) outline.choices = values->second;
  return outline;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline outline{
      .name = app.get_name(), .summary = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) outline.options.push_back(outline_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) outline.commands.push_back(outline_of(*command));
  }
  return outline;
}

// The parser by itself takes the nearest number that there is for one that is too large. Empty
// where nothing is wrong.
template <class Number>
std::string whole_number(const std::string& text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end && number >= 0) return {};
  return fmt::format("'{}': expected a whole number from 0 to {}", text,
                     std::numeric_limits<Number>::max());
}

// CLI11 takes what is no number for one within any range.
std::string a_number(const std::string& text) {
  double number = 0;
  if (CLI::detail::lexical_cast(text, number) && std::isnan(number)) {
    return fmt::format("'{}' is not a number", text);
  }
  return {};
}

}  // namespace

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

Option& Option::hidden(bool hide) {
  if (hide) option_->group("");
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& choices) {
  const auto check = [choices](std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
    return fmt::format("unknown value '{}'{}; expected one of: {}", text, suggestion(text, choices),
                       fmt::join(choices, ", "));
  };
  option_->check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(choices, ","))));
  return suggest(choices);
}

Option& Option::suggest(std::vector<std::string> values) {
  suggested()[option_] = std::move(values);
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
  return Option(app_->add_option(names, value, help)->check(whole_number<std::int64_t>));
}

Option Command::seed(const std::string& names, std::uint64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help)->check(whole_number<std::uint64_t>));
}

Option Command::real(const std::string& names, double& value, double low, double high,
                     const std::string& help) {
  return Option(
      app_->add_option(names, value, help)->check(CLI::Range(low, high))->check(a_number));
}

Option Command::reals(const std::string& names, std::vector<double>& values, double low,
                      double high, const std::string& help) {
  return Option(app_->add_option(names, values, help)
                    ->delimiter(',')
                    ->check(CLI::Range(low, high))
                    ->check(a_number));
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
  app_->formatter(std::make_shared<WrappingFormatter>());
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

CommandOutline CommandLine::outline() const {
  return outline_of(*app_);
}

std::optional<int> CommandLine::parse(int argc, char** argv, int exit_bad_input) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);
    const auto [command, words] = chosen(*app_);
    say(fmt::format("emplace: {}\nRun {} --help for more.\n", message_of(*command, error), words));
    return exit_bad_input;
  }
  return std::nullopt;
}

}  // namespace emplace::cli

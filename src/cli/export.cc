// emplace export: a placement, or its model, in the forms that other programs take.
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "io/exporters.h"
#include "io/file.h"

namespace emplace::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  std::string format;
  std::string output;
  bool json = false;
};

std::string exported(const Arguments& arguments) {
  const Exporter& exporter = find_exporter(arguments.format);
  if (exporter.needs_placement == arguments.saved.path.empty()) {
    fail_option("--format {} {} placement file", exporter.name,
                exporter.needs_placement ? "needs a" : "is of the model alone and takes no");
  }
  const ProblemRequest request = arguments.problem.make();
  if (!exporter.needs_placement) {
    return exporter.write({.graph = *load_model(request).graph});
  }
  const auto problem = load_problem(request);
  return exporter.write(
      {.graph = problem->graph(), .problem = problem, .placed = arguments.saved.load(*problem)});
}

std::string format_help() {
  std::vector<std::string> formats;
  for (const Exporter& exporter : exporters()) {
    formats.push_back(fmt::format("{} ({}{})", exporter.name, exporter.summary,
                                  exporter.needs_placement ? "" : "; needs no placement"));
  }
  return fmt::format("{}", fmt::join(formats, ", "));
}

void print_written(const Arguments& arguments, std::size_t bytes) {
  const Json json{{"exported", arguments.format}, {"output", arguments.output}, {"bytes", bytes}};
  fmt::print("{}",
             with_header({.format = "emplace.export/1", .model = arguments.problem.request.model},
                         json.dump()));
}

void run(const Arguments& arguments) {
  if (arguments.json && (arguments.output.empty() || arguments.output == "-")) {
    fail_option("--json says what was written to a file: expected --output too");
  }
  const std::string text = exported(arguments);
  if (arguments.output.empty() || arguments.output == "-") {
    fmt::print("{}", text);
  } else {
    write_file(arguments.output, text);
    say(fmt::format("wrote {}\n", arguments.output));
    if (arguments.json) print_written(arguments, text.size());
  }
}

}  // namespace

void add_export(Command& root, Session&) {
  auto arguments = std::make_shared<Arguments>();
  Command command =
      root.command("export", "Write a placement or its model in a form that other programs take");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  command.text("-f,--format", arguments->format, format_help()).required().type("FORMAT");
  add_file(command, "-o,--output", arguments->output, "File to write; standard output if absent");
  command.flag("--json", arguments->json, "Print what was written as JSON on standard output");
  command.footer(
      "Example: emplace export model.json.gz placement.json --cluster 4xp100 --format trace -o "
      "trace.json");
  command.run([arguments] { run(*arguments); });
}

}  // namespace emplace::cli

// emplace export: a placement in the forms that other programs take.
#include <fmt/core.h>

#include "base/error.h"

#include "cli/command.h"
#include "cli/report.h"
#include "cli/saved_placement.h"
#include "io/file.h"
#include "io/writers.h"

namespace emplace::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  std::string format;
  std::string output;
};

std::string exported(const Arguments& arguments, const std::shared_ptr<const Problem>& problem) {
  PlacementFile file = arguments.saved.load(*problem);
  if (arguments.format == "dot") return write_dot(*problem, file.placement);
  const Assessor assessor(std::make_shared<const Simulator>(problem), {});
  const Outcome outcome = assessor.assess(file.placement, file.schedule);
  if (arguments.format == "trace")
    return write_trace_json(*problem, file.placement, outcome.timeline);
  file.graph = problem->graph().name();
  file.cluster = problem->cluster().name();
  file.predicted =
      PlacementFile::Predicted{outcome.timeline.step, outcome.fits(), outcome.bound.step};
  return write_placement_json(*problem, file);
}

void run(const Arguments& arguments) {
  const std::string text = exported(arguments, arguments.problem.load().problem);
  if (arguments.output.empty() || arguments.output == "-") {
    fmt::print("{}", text);
  } else {
    write_file(arguments.output, text);
    fmt::print(stderr, "wrote {}\n", arguments.output);
  }
}

}  // namespace

void add_export(Command& root, Session&) {
  auto arguments = std::make_shared<Arguments>();
  Command command =
      root.command("export", "Write a placement as a timeline, a picture or a placement file");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  command
      .add_option(
          "-f,--format", arguments->format,
          "trace (timeline for Perfetto or chrome://tracing), dot (graph coloured by device, for "
          "Graphviz), placement (with what is predicted for this cluster)")
      ->required()
      ->check(CLI::IsMember({"trace", "dot", "placement"}));
  command.add_option("-o,--output", arguments->output, "File to write; standard output if absent")
      ->type_name("FILE");
  command.footer(
      "Example: emplace export model.json.gz placement.json --cluster 4xp100 --format trace -o "
      "trace.json");
  command.run([arguments] { run(*arguments); });
}

}  // namespace emplace::cli

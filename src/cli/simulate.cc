// emplace simulate: the exact step time of a given placement.
#include <fmt/core.h>

#include "base/error.h"

#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/report.h"
#include "cli/saved_placement.h"

namespace emplace::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  ObjectiveArguments objective;
  std::string trace;
  bool json = false;
};

void simulate(const Arguments& arguments) {
  const auto problem = arguments.problem.load().problem;
  PlacementFile file = arguments.saved.load(*problem);
  const Assessor assessor(std::make_shared<const Simulator>(problem), arguments.objective);
  const Outcome outcome = assessor.assess(std::move(file.placement), std::move(file.schedule));
  if (!arguments.trace.empty()) write_trace(arguments.trace, outcome);
  const Explanation explanation = explain(outcome, arguments.objective, arguments.problem);
  if (arguments.json) {
    fmt::print("{}", to_json(outcome, nullptr, &explanation));
  } else {
    fmt::print("{}\n{}{}", describe_problem(*problem), to_text(outcome),
               to_text(explanation, outcome));
  }
}

}  // namespace

void add_simulate(CLI::App& app, Session&) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("simulate", "Simulate a placement exactly");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  arguments->objective.add_to(command);
  command
      .add_option("--trace", arguments->trace,
                  "Write the timeline here, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  command.add_flag("--json", arguments->json, "Print the result as JSON on standard output");
  command.footer(
      "A placement that does not fit is simulated all the same; the result says so.\n"
      "Example: emplace simulate model.json.gz placement.json --cluster 4xp100 --json");
  command.callback([arguments] { simulate(*arguments); });
}

}  // namespace emplace::cli

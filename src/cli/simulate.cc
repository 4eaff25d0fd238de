// emplace simulate: the exact step time of a given placement.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/messages.h"
#include "io/file.h"
#include "report/assessment_report.h"
#include "report/explanation.h"
#include "report/prose.h"

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
  const ProblemRequest request = arguments.problem.make();
  const auto problem = load_problem(request);
  PlacementFile file = arguments.saved.load(*problem);
  const Assessor assessor(std::make_shared<const Simulator>(problem), arguments.objective.make());
  const Assessment assessment =
      assessor.assess(std::move(file.placement), std::move(file.schedule));
  if (!arguments.trace.empty()) write_file(arguments.trace, trace_json(assessment));
  const Explanation explanation = explain(assessment, {}, request.could_recompute());
  if (arguments.json) {
    fmt::print("{}", to_json(assessment, nullptr, &explanation));
  } else {
    fmt::print("{}", fitted(fmt::format("{}\n{}{}", describe_problem(*problem), to_text(assessment),
                                        to_text(explanation, assessment))));
  }
}

}  // namespace

void add_simulate(Command& root, Session&) {
  auto arguments = std::make_shared<Arguments>();
  Command command = root.command("simulate", "Simulate a placement exactly");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  arguments->objective.add_to(command);
  add_file(command, "--trace", arguments->trace,
           "Write the timeline here, for Perfetto or chrome://tracing");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "A placement that does not fit is simulated all the same; the result says so.\n"
      "Example: emplace simulate model.json.gz placement.json --cluster 4xp100 --json");
  command.run([arguments] { simulate(*arguments); });
}

}  // namespace emplace::cli

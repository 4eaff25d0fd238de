#include "cli/place_as_placeto.h"

#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "sim/placeto.h"

#include "placers/all.h"

#include "cli/messages.h"
#include "cli/output.h"
#include "io/placement_file.h"
#include "report/assessment_report.h"
#include "report/placeto_report.h"
#include "report/prose.h"
#include "run/placeto_rules.h"

namespace emplace::cli {
namespace {

void require_own_order_and_learning(const std::vector<PlacerRun>& runs) {
  for (const PlacerRun& run : runs) {
    if (run.scheduler != kOwnSchedule && run.scheduler != "fifo") {
      fail_option(
          "--rules placeto: ops run in the order in which they become ready; leave "
          "--scheduler out");
    }
    if (all_placers().info(run.placer.key).family == "learned") continue;
    fail_option(
        "--rules placeto: {} looks into the program's own simulator; expected a placer that learns",
        run.placer.key);
  }
}

}  // namespace

void place_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                      Session& session) {
  require_own_order_and_learning(wanted.runs);
  if (!(arguments.objective.make() == Objective(StepTime{}))) {
    fail_option("--rules placeto: its simulator has steps alone; expected --objective latency");
  }
  if (!arguments.trace.empty() || !arguments.report.empty()) {
    fail_option("--rules placeto has no timeline: leave --trace and --report out");
  }
  const ProblemRequest request = arguments.problem.make();
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.insert(inputs.end(), arguments.subsets.starts.begin(), arguments.subsets.starts.end());
  for (const PlacerRun& run : wanted.runs) {
    const std::vector<std::string> policies = inputs_of_specs(run.placer.to_string());
    inputs.insert(inputs.end(), policies.begin(), policies.end());
  }
  const Outputs outputs(session, {arguments.output}, arguments.json, inputs,
                        arguments.learning.outputs());
  const std::shared_ptr<const Problem> problem = placeto_problem(*load_noted(request).problem);
  const SubsetProblems problems = arguments.subsets.make(problem, StepTime{});
  if (problems.why_nothing_fits()) {
    fail_option("--rules placeto: nothing fits by the program's own rules, which count weights: {}",
                *problems.why_nothing_fits());
  }
  wanted.measure = measured_as_placeto(problems.whole());
  const PortfolioResult found = run_portfolio(problems, std::move(wanted));
  const RunResult& best = found.best();
  for (const std::string& text : best.result.notes) note(text);
  if (session.cancelled) note_interrupted();
  if (!best.evaluation.fits()) session.exit_code = kExitNothingFits;
  if (!arguments.output.empty()) {
    PlacementFile file{.graph = problem->graph().name(),
                       .cluster = problem->cluster().name(),
                       .placer = best.run.placer.to_string(),
                       .seed = best.run.seed,
                       .placement = best.result.placement,
                       .schedule = {},
                       .predicted = std::nullopt};
    file.made_with = request.made_with();
    outputs.write(arguments.output, write_placement_json(*problem, file));
  }
  const PlacetoReport report = simulate_as_placeto(*problem, best.result.placement);
  if (arguments.json) {
    const JsonHeader header{.format = "emplace.placeto/1",
                            .model = request.model,
                            .made_with = request.made_with(),
                            .problem = problem.get(),
                            .objective = StepTime{}};
    fmt::print("{}", with_header(header, to_json(report)));
    return;
  }
  outputs.print("{}", fitted(fmt::format("{}\nplaced by {}\n{}", describe_problem(*problem),
                                         best.run.placer.to_string(), to_text(report))));
  for (const std::string& path : outputs.files()) outputs.print("\nwrote {}\n", path);
}

}  // namespace emplace::cli

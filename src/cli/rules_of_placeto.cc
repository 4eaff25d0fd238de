#include "cli/rules_of_placeto.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "sim/placeto.h"

#include "placers/all.h"

#include "cli/messages.h"
#include "cli/output.h"
#include "report/assessment_report.h"
#include "report/comparison.h"
#include "report/placeto_report.h"
#include "report/prose.h"
#include "run/placeto_rules.h"

namespace emplace::cli {
namespace {

// What these placers ask for the value of is valued by the rules; the others have searches of their
// own.
bool can_follow(const PlacerRun& run) {
  constexpr std::array<std::string_view, 3> kFamilies{"learned", "heuristic", "partition"};
  const std::string& family = all_placers().info(run.placer.key).family;
  return std::find(kFamilies.begin(), kFamilies.end(), family) != kFamilies.end();
}

void require_rules(const QuestionArguments& arguments, const PortfolioRequest& wanted) {
  for (const PlacerRun& run : wanted.runs) {
    if (run.scheduler != kOwnSchedule && run.scheduler != "fifo") {
      fail_option(
          "--rules placeto: ops run in the order in which they become ready; leave "
          "--scheduler out");
    }
    if (can_follow(run)) continue;
    fail_option(
        "--rules placeto: {} looks into the program's own simulator; expected a placer that "
        "learns, or one of the families heuristic and partition",
        run.placer.key);
  }
  if (!(arguments.objective.make() == Objective(StepTime{}))) {
    fail_option("--rules placeto: its simulator has steps alone; expected --objective latency");
  }
  if (!arguments.trace.empty() || !arguments.report.empty()) {
    fail_option("--rules placeto has no timeline: leave --trace and --report out");
  }
  if (arguments.problem.what_if.range()) {
    fail_option("--rules placeto is of one problem: leave ranges of batches out");
  }
}

std::vector<std::string> inputs_as_placeto(const QuestionArguments& arguments,
                                           const PortfolioRequest& wanted) {
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.insert(inputs.end(), arguments.subsets.starts.begin(), arguments.subsets.starts.end());
  for (const PlacerRun& run : wanted.runs) {
    const std::vector<std::string> policies = inputs_of_specs(run.placer.to_string());
    inputs.insert(inputs.end(), policies.begin(), policies.end());
  }
  return inputs;
}

// The problem as these rules have it, and what the placers make of it.
class PlacetoQuestion {
 public:
  PlacetoQuestion(const QuestionArguments& arguments, PortfolioRequest wanted)
      : request_(arguments.problem.make()),
        problem_(placeto_problem(*load_noted(request_).problem)),
        problems_(arguments.subsets.make(problem_, StepTime{})),
        wanted_(std::move(wanted)) {
    problems_.forget_proofs();  // which count weights
    if (const auto& why = problems_.why_nothing_fits()) {
      fail_option("--rules placeto: no such set of devices holds the weights, too: {}", *why);
    }
    wanted_.measure = measured_as_placeto(problems_.whole());
    wanted_.ranks_measure = true;
  }

  const Problem& problem() const { return *problem_; }
  const Simulator& simulator() const { return *problems_.whole(); }

  void help(dist::Member& member) { Portfolio(problems_, wanted_).serve(member); }
  PortfolioResult answer(Session& session) const {
    PortfolioResult found = run_portfolio(problems_, wanted_);
    if (session.cancelled) note_interrupted();
    if (!found.best().evaluation.fits()) session.exit_code = kExitNothingFits;
    return found;
  }

  JsonHeader header(const char* format, const Budget& budget, const Session& session) const {
    return {.format = format,
            .model = request_.model,
            .made_with = request_.made_with(),
            .problem = problem_.get(),
            .objective = StepTime{},
            .budget = &budget,
            .ranks = session.crew != nullptr ? session.crew->size() : 1,
            .lost_ranks = session.crew != nullptr ? session.crew->lost() : 0};
  }
  std::string placement_of(const RunResult& result) const {
    PlacementFile file{.graph = problem_->graph().name(),
                       .cluster = problem_->cluster().name(),
                       .placer = result.run.placer.to_string(),
                       .seed = result.run.seed,
                       .placement = result.result.placement,
                       .schedule = {},
                       .predicted = std::nullopt};
    file.made_with = request_.made_with();
    return write_placement_json(*problem_, file);
  }

 private:
  ProblemRequest request_;
  std::shared_ptr<const Problem> problem_;
  SubsetProblems problems_;
  PortfolioRequest wanted_;
};

std::string headline_as_placeto(const std::vector<ComparisonRow>& rows) {
  const ComparisonRow& best = rows.front();
  const std::string makespan =
      fmt::format("a makespan of {} by Placeto's simulator", format_time(best.time));
  if (best.fits) return fmt::format("Best: {}, {}.\n", best.placer, makespan);
  return fmt::format("None fits in memory; {} is nearest, with {}.\n", best.placer, makespan);
}

}  // namespace

void place_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                      Session& session) {
  require_rules(arguments, wanted);
  if (session.member != nullptr) {
    return PlacetoQuestion(arguments, std::move(wanted)).help(*session.member);
  }
  const Outputs outputs(session, {arguments.output}, arguments.json,
                        inputs_as_placeto(arguments, wanted), arguments.learning.outputs());
  const Budget budget = wanted.budget.or_default();
  const PlacetoQuestion question(arguments, std::move(wanted));
  const RunResult best = question.answer(session).best();
  // Those of the others are about peaks by the program's own rules.
  if (all_placers().info(best.run.placer.key).family == "learned") {
    for (const std::string& text : best.result.notes) note(text);
  }
  if (!arguments.output.empty()) outputs.write(arguments.output, question.placement_of(best));
  const PlacetoReport report = simulate_as_placeto(question.problem(), best.result.placement);
  if (arguments.json) {
    fmt::print("{}",
               with_header(question.header("emplace.placeto/1", budget, session), to_json(report)));
    return;
  }
  outputs.print("{}",
                fitted(fmt::format("{}\nplaced by {}\n{}", describe_problem(question.problem()),
                                   best.run.placer.to_string(), to_text(report))));
  for (const std::string& path : outputs.files()) outputs.print("\nwrote {}\n", path);
}

void compare_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                        const ComparisonOutputs& shown, Session& session) {
  require_rules(arguments, wanted);
  if (session.member != nullptr) {
    return PlacetoQuestion(arguments, std::move(wanted)).help(*session.member);
  }
  const Outputs outputs(session, {arguments.output, shown.csv}, arguments.json,
                        inputs_as_placeto(arguments, wanted), arguments.learning.outputs());
  const Budget budget = wanted.budget.or_default();
  const std::size_t asked = wanted.runs.size();
  const PlacetoQuestion question(arguments, std::move(wanted));
  const PortfolioResult found = question.answer(session);
  const std::vector<ComparisonRow> rows = rows_as_placeto(question.simulator(), found.results);
  const JsonHeader header = question.header("emplace.placeto-comparison/1", budget, session);
  if (!arguments.output.empty()) {
    outputs.write(arguments.output, question.placement_of(found.best()));
  }
  if (!shown.csv.empty()) {
    outputs.write(shown.csv, to_csv(rows, kPlacetoTimes, header_columns(header)));
  }
  if (arguments.json) {
    fmt::print("{}", with_header(header, comparison_json_as_placeto(rows)));
    return;
  }
  std::string text =
      fmt::format("{}\n{}\n", describe_problem(question.problem()), headline_as_placeto(rows));
  text += shown.over_seeds ? summary_table(rows, kPlacetoTimes)
                           : to_table(rows, kPlacetoTimes, /*with_seeds=*/false);
  if (shown.over_seeds && shown.each_seed) text += "\n" + to_table(rows, kPlacetoTimes, true);
  outputs.print("{}", fitted(text));
  if (rows.size() < asked) {
    outputs.print("\n{}{} of {} runs gave a result.\n", session.cancelled ? "Interrupted: " : "",
                  rows.size(), asked);
  }
  for (const std::string& path : outputs.files()) {
    outputs.print("\nwrote {} to {}\n",
                  path == shown.csv ? "a row for each run" : "the best placement", path);
  }
}

}  // namespace emplace::cli

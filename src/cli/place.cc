// emplace place: a model and a cluster in, a placement out.
#include <cstdio>
#include <utility>

#include <fmt/core.h>

#include "base/units.h"

#include "cli/command.h"
#include "cli/measuring.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/page_commands.h"
#include "cli/progress.h"
#include "cli/question.h"
#include "cli/ranks.h"
#include "cli/rules_of_placeto.h"
#include "report/assessment_report.h"
#include "report/explanation.h"
#include "report/measured_report.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/prose.h"
#include "run/islands.h"

namespace emplace::cli {
namespace {

constexpr const char* kDefaultPlacer = "auto";

struct PlaceArguments : QuestionArguments {
  std::string placer = kDefaultPlacer;
  std::string scheduler;
  MeasuringArguments measuring;
  bool sensitivity = false;
  RankArguments ranks;
  int islands = 0;
  std::string rules = "own";
};

// Of the time for the answer: to see whether one more batch fits, or what one change brings.
constexpr double kShareOfTime = 0.25;
// Seconds that nobody minds.
constexpr double kQuick = 2;

Budget share_of(Budget budget) {
  budget = budget.or_default();
  if (budget.seconds) *budget.seconds *= kShareOfTime;
  if (budget.evaluations) *budget.evaluations = 1 + *budget.evaluations / 4;
  return budget.restarted();
}

// For the page, which has it unasked.
Budget quick(Budget budget) {
  budget.seconds = std::min(budget.seconds.value_or(kQuick), kQuick);
  return budget;
}

void print_notes(const RunResult& result, const SubsetProblems& problems) {
  for (const std::string& text : result.result.notes) note(text);
  if (!problems.starts().empty() && problems.starts().front().value < result.evaluation) {
    note(fmt::format("{}, which was to begin from, is better: {}", problems.starts().front().origin,
                     format_time(problems.starts().front().value.step)));
  }
}

void print_written(const PlaceArguments& arguments, const Outputs& outputs) {
  std::string blank = "\n";
  for (const std::string& path : outputs.files()) {
    outputs.print("{}wrote {}{}\n", std::exchange(blank, ""), path,
                  path == arguments.trace    ? " (open it at ui.perfetto.dev)"
                  : path == arguments.report ? " (open it in a browser)"
                                             : "");
  }
}

// A search over placers also looks for the best order of ops, unless one was asked for.
std::vector<PlacerRun> runs_of(const PlaceArguments& arguments) {
  const bool portfolio = arguments.placer == "all";
  std::string scheduler = arguments.scheduler;
  if (scheduler.empty()) scheduler = portfolio ? kBestSchedule : kOwnSchedule;
  if (scheduler == "all") scheduler = kBestSchedule;
  return make_runs(arguments.placer, scheduler, arguments.seed);
}

// The largest batch of the range that fits.
BatchSearch search_batches(const PlaceArguments& arguments, ProblemRequest request,
                           const BatchRange& range, const Session& session) {
  std::atomic<std::int64_t> now{range.low};
  const Progress progress(
      [&] { return fmt::format("trying whether a batch of {} fits", now.load()); });
  const Budget budget = share_of(arguments.budget.make(session));
  const std::vector<PlacerRun> runs = runs_of(arguments);
  const bool any_placer =
      arguments.placer == kDefaultPlacer && common_scheduler(runs) == kOwnSchedule;
  return find_largest_batch(range, [&](std::int64_t batch) -> BatchProbe {
    now = batch;
    if (session.cancelled) return {batch, false, "interrupted"};
    request.batch = batch;
    return probe_batch(batch,
                       arguments.subsets.make(load_problem(request), arguments.objective.make(), {},
                                              CpuUse::kNever),
                       budget, any_placer ? std::vector<PlacerRun>{} : runs);
  });
}

// What else could be done than to place it: divide tensors, or change the hardware. A glance at the
// former takes no longer than the placers did (`searched` seconds), or is quick.
void look_further(const PlaceArguments& arguments, const std::shared_ptr<const Problem>& problem,
                  const Assessment& answer, double searched, const Session& session,
                  Explanation& explanation) {
  if (session.cancelled) return;
  const Budget share = share_of(arguments.budget.make(session));
  const bool step = answer.objective == Objective(StepTime{});
  if (step && answer.most_devices == 0) {
    Budget budget = arguments.budget.make(session);
    budget.seconds = std::max(searched, arguments.placer == kDefaultPlacer ? kQuick : 0);
    explanation.in_parts = quick_partition(problem, budget);
  }
  if (arguments.sensitivity || !arguments.report.empty()) {
    const Progress progress([] { return std::string("trying other hardware"); });
    explanation.sensitivities = sensitivities(answer, arguments.sensitivity ? share : quick(share),
                                              common_scheduler(runs_of(arguments)));
  }
}

// An answer of one device says more beside what splitting would bring.
Explanation explain_answer(const Assessment& answer, const SubsetProblems& problems,
                           const std::vector<RunResult>& tried, const std::string& scheduler,
                           bool could_recompute) {
  Explanation explanation = explain(answer, tried, could_recompute);
  if (explanation.best_split || explanation.used.size() > 1 || answer.most_devices > 0) {
    return explanation;
  }
  return explain(answer,
                 quick_splits(problems.list().front().simulator, answer.objective, scheduler),
                 could_recompute);
}

std::string kept_whole(const Explanation& explanation) {
  if (!explanation.whole_modules) return "";
  return fmt::format(", {}s kept whole: {} parts",
                     granularity_name(explanation.whole_modules->granularity),
                     format_count(explanation.whole_modules->parts));
}

// What is asked of the placers, of which other ranks need to know the same.
PortfolioRequest portfolio_request(const PlaceArguments& arguments, const Budget& budget,
                                   const Session& session) {
  if (arguments.islands > 0 && !arguments.budget.evaluations) {
    fail_option("--islands {} is for searches under --evaluations; under --time every rank is one",
                arguments.islands);
  }
  return {.runs = runs_of(arguments),
          .budget = budget,
          .time_for = TimeFor::kAllRuns,
          .learning = arguments.learning.make(session),
          .keep_courses = !arguments.report.empty(),
          .crew = session.crew,
          .islands = static_cast<std::size_t>(arguments.islands)};
}

// On a rank that is not the first.
void help_to_place(const PlaceArguments& arguments, Session& session) {
  const Question question(arguments, arguments.problem.make(), "", session);
  if (question.problems().why_nothing_fits()) return session.member->wait();
  PortfolioRequest wanted = portfolio_request(arguments, question.given(), session);
  Measuring measuring(arguments.measuring, question.problems(), wanted.runs, session);
  measuring.prepare(wanted);
  Portfolio(question.problems(), std::move(wanted)).serve(*session.member);
}

void place_by_rules_of_placeto(const PlaceArguments& arguments, Session& session) {
  const MeasuringArguments& measuring = arguments.measuring;
  if (measuring.measure > 0 || measuring.measures_costs() || arguments.sensitivity) {
    fail_option(
        "--rules placeto is of simulated steps of one problem: leave --measure, --environment and "
        "--sensitivity out");
  }
  place_as_placeto(arguments, portfolio_request(arguments, arguments.budget.make(session), session),
                   session);
}

void place(const PlaceArguments& arguments, Session& session) {
  require_file(session, arguments.problem.request.model);
  if (arguments.rules == "placeto") return place_by_rules_of_placeto(arguments, session);
  const bool several = session.crew != nullptr || session.member != nullptr;
  if (several && arguments.problem.what_if.range()) {
    fail_option("the largest batch is looked for by one process: leave --ranks out");
  }
  if (session.member != nullptr) return help_to_place(arguments, session);
  ProblemRequest request = arguments.problem.make();
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.insert(inputs.end(), arguments.subsets.starts.begin(), arguments.subsets.starts.end());
  const std::vector<std::string> policies = inputs_of_specs(arguments.placer);
  inputs.insert(inputs.end(), policies.begin(), policies.end());
  const Outputs outputs(session, {arguments.output, arguments.trace, arguments.report},
                        arguments.json, inputs, arguments.learning.outputs());
  std::optional<BatchSearch> batches;
  std::vector<Solution> starts;
  if (const auto range = arguments.problem.what_if.range()) {
    batches = search_batches(arguments, request, *range, session);
    const BatchProbe* fitting = batches->best();
    if (fitting != nullptr) {
      starts.push_back({fitting->placement, fitting->schedule, {}, "the batch search's placement"});
    }
    request.batch = fitting != nullptr ? fitting->batch : range->low;
  }
  const Question question(arguments, std::move(request), "emplace.answer/1", session,
                          std::move(starts));
  if (question.refuse_hopeless(session)) return;
  const SubsetProblems& problems = question.problems();
  const bool whole = question.op_by_op() != nullptr;
  const Budget& given = question.given();
  const SharedBudget shared = whole ? share_with_ops(given) : SharedBudget{given, given};
  PortfolioRequest wanted = portfolio_request(arguments, shared.whole, session);
  Measuring measuring(arguments.measuring, problems, wanted.runs, session);
  measuring.prepare(wanted);
  PortfolioResult found = run_portfolio(problems, std::move(wanted));
  const double searched = question.budget().elapsed_seconds();
  const std::size_t tries = found.results.size();
  measuring.choose(found);
  const RunResult& best = found.best();
  const Assessment answer = assess(assessor_of(problems, found), problems, best);
  print_notes(best, problems);
  if (session.cancelled) note_interrupted();
  if (!answer.fits()) session.exit_code = kExitNothingFits;
  if (!arguments.output.empty()) {
    outputs.write(arguments.output, placement_json(answer, best, question.request().made_with()));
  }
  if (!arguments.trace.empty()) outputs.write(arguments.trace, trace_json(answer));
  Explanation explanation =
      explain_answer(answer, problems, found.results, common_scheduler(runs_of(arguments)),
                     question.request().could_recompute());
  if (whole) explanation.whole_modules = question.compare_with_ops(answer, best, shared.op_by_op);
  explanation.batches = std::move(batches);
  look_further(arguments, whole ? question.op_by_op() : question.problem(), answer, searched,
               session, explanation);
  const std::string json =
      arguments.json || !arguments.report.empty()
          ? with_header(question.header(),
                        with_measured(to_json(answer, &best, &explanation), measuring.tried()))
          : "";
  if (!arguments.report.empty()) {
    const PageSource source{
        session.command_line, "place", json, question.request().scale,
        divide_command(arguments.problem, question.request(), arguments.budget, arguments.seed)};
    outputs.write(arguments.report,
                  page_html({page_of_answer(source, answer, explanation, found.courses)}));
  }
  if (arguments.json) {
    fmt::print("{}", json);
    return;
  }
  const std::string text = fmt::format(
      "{}\nplaced by {} with {} order{}{}{}\n{}{}", describe_problem(*question.problem()),
      best.run.placer.to_string(), best.run.scheduler,
      tries > 1 ? fmt::format(", the best of {} tries", tries) : "", measuring.choice(best),
      kept_whole(explanation), to_text(answer), to_text(explanation, answer));
  outputs.print("{}", fitted(text));
  if (!measuring.tried().empty()) {
    outputs.print("\n{}", fitted(to_text(measuring.tried())));
  }
  if (answer.leaves_cpus_out) {
    outputs.print("\nCPUs take ops only where memory is short; --use-cpu lets them take any.\n");
  }
  print_written(arguments, outputs);
}

}  // namespace

void add_place(Command& root, Session& session) {
  auto arguments = std::make_shared<PlaceArguments>();
  Command command = root.command("place", "Find a placement of a model on a cluster");
  arguments->problem.what_if.takes_ranges = true;
  arguments->problem.add_to(command);
  command
      .text("-p,--placer,--placers", arguments->placer,
            "Placer and its options, e.g. \"heft(insertion=false)\"; all: the best of every one")
      .shown()
      .type("SPEC")
      .suggest(placer_names());
  command
      .text("--scheduler,--schedulers", arguments->scheduler,
            "Order of ready ops: own (the placer's), or fifo, pct, msr, which then holds while it "
            "searches; all: of the answer's own order and these, the best")
      .type("KEY");
  arguments->objective.add_to(command);
  arguments->subsets.add_to(command);
  arguments->budget.add_to(command, "shared by all placers that run");
  command.flag("--sensitivity", arguments->sensitivity,
               "Also say what twice the compute, memory or bandwidth, or one more device, would "
               "bring; takes a quarter of the time for each");
  arguments->measuring.add_to(command);
  arguments->ranks.add_to(command);
  command
      .integer(
          "--islands", arguments->islands, 1, static_cast<std::int64_t>(kMostIslands),
          "Divide a search under --evaluations into so many that meet between rounds: with the "
          "same seed, any number of ranks gives the same answer. Default: the ranks, or fewer "
          "where each would be too short")
      .type("N");
  arguments->learning.add_to(command, /*several_runs=*/false);
  command
      .text("--rules", arguments->rules,
            "own, or placeto: minimise, and report, what the simulator on which Placeto was "
            "trained says (docs/simulator.md)")
      .one_of({"own", "placeto"});
  add_seed(command, arguments->seed);
  add_file(command, "-o,--output", arguments->output,
           "Write the placement here; - for standard output, and the report to standard error");
  add_file(command, "--trace", arguments->trace,
           "Write the timeline here, for Perfetto or chrome://tracing");
  add_report_option(command, arguments->report, "all that is known about the answer");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends a search, and the best placement found so far is the answer.\n"
      "Example: emplace place model.onnx --cluster 4xp100 --dim batch=32 --pin \"head=gpu0\" -o "
      "placement.json");
  command.run([arguments, &session] {
    run_on_ranks(arguments->ranks, session, [&] { place(*arguments, session); });
  });
}

}  // namespace emplace::cli

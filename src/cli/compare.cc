// emplace compare: several placers and seeds on one problem, as a table, the best first; or one
// model on several clusters.
#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/page_commands.h"
#include "cli/progress.h"
#include "cli/question.h"
#include "cli/ranks.h"
#include "cli/rules_of_placeto.h"
#include "report/assessment_report.h"
#include "report/cluster_comparison.h"
#include "report/comparison.h"
#include "report/explanation.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/prose.h"
#include "report/whole_modules.h"

namespace emplace::cli {
namespace {

struct Arguments : QuestionArguments {
  std::string placers;  // empty: all, or auto on each of several clusters
  std::string schedulers = "own";
  int seeds = 1;
  std::string csv;
  bool each_seed = false;
  RankArguments ranks;
  std::string rules = "own";

  std::vector<PlacerRun> runs(const char* usual) const {
    return make_runs(placers.empty() ? usual : placers, schedulers, seed, seeds);
  }
  std::vector<std::string> inputs() const {
    std::vector<std::string> files = problem.inputs();
    files.insert(files.end(), subsets.starts.begin(), subsets.starts.end());
    const std::vector<std::string> policies = inputs_of_specs(placers);
    files.insert(files.end(), policies.begin(), policies.end());
    return files;
  }
};

// What is best on a cluster, and all of it for the page, where one was asked for.
struct ClusterAnswer {
  ClusterRow row;
  std::string page;
};

// What other hardware would bring the answer, looked at quickly.
void try_other_hardware(const Assessment& answer, const RunResult& winner, Budget each,
                        const Session& session, Explanation& explanation) {
  constexpr double kQuickSeconds = 2;
  if (session.cancelled) return;
  const Progress progress([] { return std::string("trying other hardware"); });
  each.seconds = std::min(each.seconds.value_or(kQuickSeconds), kQuickSeconds);
  const std::string& order = winner.run.scheduler;
  explanation.sensitivities =
      sensitivities(answer, each, order == kBestSchedule ? std::string(kOwnSchedule) : order);
}

// The best of the placers on the request's cluster.
ClusterAnswer best_on_cluster(const Arguments& arguments, const ProblemRequest& request,
                              const Session& session) {
  const bool page = !arguments.report.empty();
  const std::shared_ptr<const Problem> problem = load_problem(request);
  const Objective objective = arguments.objective.make();
  const StepTerms terms = terms_of(request, *problem);
  SubsetProblems problems = arguments.subsets.make(problem, objective);
  problems.set_terms(terms);
  problems.set_granularity(request.granularity);
  if (const auto& why = problems.why_nothing_fits()) {
    const PageSource source{session.command_line, "compare", ""};
    return {make_hopeless_row(problem->cluster(), *why),
            page ? page_of_nothing(source, *problem, *why) : ""};
  }
  const PortfolioResult found = run_portfolio(problems, {.runs = arguments.runs("auto"),
                                                         .budget = arguments.budget.make(session),
                                                         .time_for = TimeFor::kEachRun,
                                                         .learning = arguments.learning.make(),
                                                         .keep_courses = page});
  const RunResult best = found.best();
  const Assessment answer = assess(assessor_of(problems, found), problems, best);
  std::optional<WayToRun> in_parts;
  if (objective == Objective(StepTime{}) && problems.most_devices() == 0) {
    // Were it as short as the search may be, large clusters alone would go without.
    Budget glance = arguments.budget.make(session);
    glance.seconds = std::max(glance.seconds.value_or(0), Budget::kDefaultSeconds);
    in_parts = quick_partition(problem, glance);
  }
  ClusterAnswer result{make_row(answer, best, in_parts, terms), ""};
  if (!page) return result;
  Explanation explanation = explain(answer, found.results, request.could_recompute());
  explanation.in_parts = in_parts;
  const Budget budget = arguments.budget.make(session).or_default();
  try_other_hardware(answer, best, budget, session, explanation);
  const std::string json = with_header({.format = "emplace.answer/1",
                                        .model = request.model,
                                        .made_with = request.made_with(),
                                        .problem = problem.get(),
                                        .objective = objective,
                                        .budget = &budget},
                                       to_json(answer, &best, &explanation));
  result.page =
      page_of_answer({session.command_line, "compare", json, request.scale,
                      divide_command(arguments.problem, request, arguments.budget, arguments.seed)},
                     answer, explanation, found.courses);
  return result;
}

void compare_clusters(const Arguments& arguments, Session& session) {
  if (arguments.rules == "placeto") {
    fail_option("--rules placeto is of one cluster, whose buses it has; expected one --cluster");
  }
  if (!arguments.output.empty() || !arguments.trace.empty()) {
    fail_option("with several clusters there is no one placement to write");
  }
  if (!arguments.csv.empty() || arguments.each_seed) {
    fail_option("with several clusters there is a row for each: --csv and --each-seed are of one");
  }
  const Outputs outputs(session, {arguments.report}, arguments.json, arguments.inputs(),
                        arguments.learning.outputs());
  ProblemRequest request = arguments.problem.make();
  for (const std::string& cluster : arguments.problem.clusters) {
    request.prices.require_complete(*read_cluster(cluster));
  }
  std::vector<ClusterRow> rows;
  std::vector<std::string> pages;
  for (const std::string& cluster : arguments.problem.clusters) {
    if (session.cancelled) break;
    request.cluster = cluster;
    ClusterAnswer found = best_on_cluster(arguments, request, session);
    rows.push_back(std::move(found.row));
    rows.back().cluster = cluster;
    pages.push_back(std::move(found.page));
  }
  const bool any = std::any_of(rows.begin(), rows.end(), [](const ClusterRow& row) {
    return row.fits || (row.in_parts && row.in_parts->fits);
  });
  if (!any) session.exit_code = kExitNothingFits;
  const Objective objective = arguments.objective.make();
  if (!arguments.report.empty()) outputs.write(arguments.report, page_html(pages));
  if (!arguments.json) {
    outputs.print("{}", to_text(rows, objective));
    for (const std::string& path : outputs.files()) {
      outputs.print("\nwrote the comparison to {} (open it in a browser)\n", path);
    }
    return;
  }
  const Budget budget = arguments.budget.make(session).or_default();
  fmt::print("{}", with_header({.format = "emplace.cluster-comparison/1",
                                .model = request.model,
                                .made_with = request.made_with(),
                                .objective = objective,
                                .budget = &budget},
                               to_json(rows, objective)));
}

// The page of all runs, and of the best one everything.
std::string page_of(const Comparison& comparison, const RunResult& winner,
                    const std::vector<SearchCourse>& courses, const Question& question,
                    const Session& session) {
  const bool recomputes = question.request().could_recompute();
  Explanation explanation = explain(comparison.best, {winner}, recomputes);
  try_other_hardware(comparison.best, winner, question.budget(), session, explanation);
  JsonHeader header = question.header();
  const std::string runs = with_header(header, to_json(comparison));
  header.format = "emplace.answer/1";
  const std::string best = with_header(header, to_json(comparison.best, &winner, &explanation));
  return page_html(
      {page_of_comparison({session.command_line, "compare", runs, question.request().scale},
                          comparison, best, explanation, courses)});
}

// What is asked of the placers, of which other ranks need to know the same.
PortfolioRequest portfolio_request(const Arguments& arguments, const char* usual,
                                   const Budget& budget, const Session& session) {
  return {.runs = arguments.runs(usual),
          .budget = budget,
          .time_for = TimeFor::kEachRun,
          .learning = arguments.learning.make(session),
          .keep_courses = !arguments.report.empty(),
          .crew = session.crew};
}

// On a rank that is not the first.
void help_to_compare(const Arguments& arguments, Session& session) {
  const Question question(arguments, arguments.problem.make(), "", session);
  if (question.problems().why_nothing_fits()) return session.member->wait();
  Portfolio portfolio(question.problems(),
                      portfolio_request(arguments, "all", question.given(), session));
  portfolio.serve(*session.member);
}

void compare_by_rules_of_placeto(const Arguments& arguments, Session& session) {
  compare_as_placeto(
      arguments,
      portfolio_request(arguments, kPlacersForPlaceto, arguments.budget.make(session), session),
      {.csv = arguments.csv, .over_seeds = arguments.seeds > 1, .each_seed = arguments.each_seed},
      session);
}

void compare_placers(const Arguments& arguments, Session& session) {
  require_file(session, arguments.problem.request.model);
  if (arguments.rules == "placeto") return compare_by_rules_of_placeto(arguments, session);
  if (session.member != nullptr) return help_to_compare(arguments, session);
  const Outputs outputs(session,
                        {arguments.output, arguments.trace, arguments.csv, arguments.report},
                        arguments.json, arguments.inputs(), arguments.learning.outputs());
  const Question question(arguments, arguments.problem.make(), "emplace.comparison/1", session);
  if (question.refuse_hopeless(session)) return;
  PortfolioRequest wanted = portfolio_request(arguments, "all", question.given(), session);
  const std::size_t asked = wanted.runs.size();
  PortfolioResult found = run_portfolio(question.problems(), std::move(wanted));
  const RunResult winner = found.best();
  const std::vector<SearchCourse> courses = std::move(found.courses);
  Comparison comparison = compare(question.problems(), std::move(found), asked);
  if (question.op_by_op() != nullptr) {
    comparison.whole_modules = question.compare_with_ops(comparison.best, winner, question.given());
  }
  const TimeNames names = names_of(comparison.best.objective);
  if (!comparison.best.fits()) session.exit_code = kExitNothingFits;
  if (session.cancelled) note_interrupted();
  if (!arguments.output.empty()) {
    outputs.write(arguments.output,
                  placement_json(comparison.best, winner, question.request().made_with()));
  }
  outputs.write(arguments.trace, arguments.trace.empty() ? "" : trace_json(comparison.best));
  outputs.write(arguments.csv, arguments.csv.empty() ? ""
                                                     : to_csv(comparison.rows, names,
                                                              header_columns(question.header())));
  if (!arguments.report.empty()) {
    outputs.write(arguments.report, page_of(comparison, winner, courses, question, session));
  }
  if (arguments.json) {
    fmt::print("{}", with_header(question.header(), to_json(comparison)));
    return;
  }
  std::string text =
      fmt::format("{}\n{}\n", describe_problem(*question.problem()), headline(comparison));
  const bool over_seeds = arguments.seeds > 1;
  text += over_seeds ? summary_table(comparison.rows, names)
                     : to_table(comparison.rows, names, /*with_seeds=*/false);
  if (over_seeds && arguments.each_seed) text += "\n" + to_table(comparison.rows, names, true);
  outputs.print("{}", fitted(text));
  if (comparison.whole_modules) {
    outputs.print("\n{}", wrapped("For the best: " + describe(*comparison.whole_modules) + "."));
  }
  if (comparison.done < asked) {
    outputs.print("\n{}{} of {} runs gave a result.\n", session.cancelled ? "Interrupted: " : "",
                  comparison.done, asked);
  }
  for (const std::string& path : outputs.files()) {
    const bool trace = path == arguments.trace;
    const bool page = path == arguments.report;
    const char* what = trace                   ? "its timeline"
                       : path == arguments.csv ? "a row for each run"
                       : page                  ? "the comparison"
                                               : "the best placement";
    outputs.print("\nwrote {} to {}{}\n", what, path,
                  trace  ? " (open it at ui.perfetto.dev)"
                  : page ? " (open it in a browser)"
                         : "");
  }
}

[[noreturn]] void refuse_ranks_of_clusters() {
  fail_option(
      "several clusters are compared by one process: leave --ranks out, and mpirun or srun");
}

}  // namespace

void add_compare(Command& root, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  Command command = root.command(
      "compare", "Compare placers on one model and cluster, or the best of several clusters");
  arguments->problem.several_clusters = true;
  arguments->problem.add_to(command);
  command
      .text("-p,--placers,--placer", arguments->placers,
            "all, families (heuristic, partition, search, exact, learned), or placers, e.g. "
            "heuristic,auto,\"metis(imbalance=1.1)\". Default: all but external ones; of several "
            "clusters, auto")
      .type("SPECS")
      .suggest(placer_names());
  command
      .text("--schedulers,--scheduler", arguments->schedulers,
            "A list of own, fifo, pct, msr, which each search and are compared; all of these; or "
            "best: "
            "own, and of the answer's own order and the others the best")
      .shown()
      .type("KEYS");
  add_seed(command, arguments->seed, "First seed");
  command
      .integer("--seeds", arguments->seeds, 1, 1000,
               "How many seeds the randomised placers run with; the table then has each placer's "
               "mean, its 95 % interval by Student's t, best and worst")
      .shown();
  command.flag("--each-seed", arguments->each_seed, "With --seeds: also a row for each run");
  arguments->objective.add_to(command);
  arguments->subsets.add_to(command);
  arguments->budget.add_to(command, "each placer has all of it");
  arguments->learning.add_to(command, /*several_runs=*/true);
  command
      .text("--rules", arguments->rules,
            "own, or placeto: all placers are valued by what the simulator on which Placeto was "
            "trained says (docs/simulator.md); those that search by themselves are refused")
      .one_of({"own", "placeto"});
  add_file(
      command, "-o,--output", arguments->output,
      "Write the best placement here; - for standard output, and the report to standard error");
  add_file(command, "--trace", arguments->trace, "Write the best one's timeline here");
  add_report_option(command, arguments->report, "the comparison, and all of the best answer,");
  add_file(command, "--csv", arguments->csv, "Write a row for each run here, as CSV");
  arguments->ranks.add_to(command);
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends the comparison with the runs done so far; heuristics go first.\n"
      "Example: emplace compare model.json.gz --cluster 4xp100 --placers heft,metis,auto "
      "--schedulers all\n"
      "Example: emplace compare zoo:bert-large -c 4xa100-nvlink -c 8xl4 --price a100=2.5,l4=0.7");
  command.run([arguments, &session] {
    const bool several = arguments->problem.clusters.size() > 1;
    if (several && arguments->ranks.ranks > 1) refuse_ranks_of_clusters();
    run_on_ranks(arguments->ranks, session, [&] {
      if (!several) return compare_placers(*arguments, session);
      if (session.crew != nullptr || session.member != nullptr) refuse_ranks_of_clusters();
      compare_clusters(*arguments, session);
    });
  });
}

}  // namespace emplace::cli

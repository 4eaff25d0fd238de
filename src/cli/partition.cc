// emplace partition: how every tensor and operator is cut up.
#include <mutex>

#include <fmt/format.h>

#include "base/error.h"

#include "tensor/methods/all.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/threads_option.h"
#include "io/graph_json_writer.h"
#include "io/trace_json.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/partition_report.h"
#include "report/plan_picture.h"
#include "run/islands.h"
#include "run/partition_ranks.h"

namespace emplace::cli {
namespace {

struct PartitionArguments {
  ProblemArguments problem;
  BudgetArguments budget;
  PartitionOptions options;
  std::string output;
  std::string graph;
  std::string placement;
  std::string trace;
  std::string picture;
  std::string report;
  bool json = false;
  RankArguments ranks;
};

std::string simulated_trace(const PlanOutcome& outcome) {
  const Simulator simulator(outcome.problem);
  return write_trace_json(*outcome.problem, outcome.placement,
                          simulator.run(outcome.placement, {}));
}

void write(const PartitionArguments& arguments, const Outputs& outputs,
           const PartitionAnswer& answer) {
  if (!arguments.output.empty()) outputs.write(arguments.output, plan_json(answer));
  if (!arguments.graph.empty()) {
    outputs.write(arguments.graph, write_graph_json(answer.outcome.problem->graph()));
  }
  if (!arguments.placement.empty()) {
    outputs.write(arguments.placement, divided_placement_json(answer));
  }
  if (!arguments.trace.empty()) outputs.write(arguments.trace, simulated_trace(answer.outcome));
  if (!arguments.picture.empty()) {
    outputs.write(arguments.picture,
                  plan_picture(*answer.graph, answer.input->descriptions, answer.plan));
  }
}

PartitionAnswer find_with_progress(const std::shared_ptr<const Problem>& problem,
                                   const PartitionOptions& options, dist::Crew* crew) {
  std::mutex mutex;
  std::string phase;
  const Progress progress([&] {
    const std::lock_guard lock(mutex);
    return phase;
  });
  const auto on_phase = [&](const std::string& now) {
    const std::lock_guard lock(mutex);
    phase = now;
  };
  return crew != nullptr ? find_partition_on_ranks(problem, options, on_phase, *crew)
                         : find_partition(problem, options, on_phase);
}

void partition_model(const PartitionArguments& arguments, Session& session) {
  require_file(session, arguments.problem.request.model);
  const ProblemRequest request = arguments.problem.make();
  if (request.granularity != Granularity::kOp) {
    fail_option("modules are kept whole by placements; a partition gives every device a part");
  }
  if (arguments.options.islands > 0 && !arguments.budget.evaluations) {
    fail_option("--islands {} is for searches under --evaluations; under --time every rank is one",
                arguments.options.islands);
  }
  if (session.member != nullptr) {
    PartitionOptions options = arguments.options;
    options.budget = arguments.budget.make(session);
    return serve_partition(load_problem(request), options, *session.member);
  }
  std::vector<std::string> inputs = arguments.problem.inputs();
  if (!arguments.options.collectives.empty()) inputs.push_back(arguments.options.collectives);
  const Outputs outputs(session,
                        {arguments.output, arguments.graph, arguments.placement, arguments.trace,
                         arguments.picture, arguments.report},
                        arguments.json, inputs);
  const std::shared_ptr<const Problem> problem = load_noted(request).problem;
  PartitionOptions options = arguments.options;
  options.budget = arguments.budget.make(session);
  const StepTerms terms = terms_of(request, *problem);
  PartitionAnswer answer = find_with_progress(problem, options, session.crew);
  answer.terms = terms;
  write(arguments, outputs, answer);
  if (!answer.chosen.fits) session.exit_code = kExitNothingFits;
  if (session.cancelled) note_interrupted();
  options.budget = options.budget.or_default(kPartitionSeconds);
  JsonHeader header{.format = "emplace.partition-answer/1",
                    .model = request.model,
                    .made_with = request.made_with(),
                    .problem = problem.get(),
                    .budget = &options.budget,
                    .ranks = session.crew != nullptr ? session.crew->size() : 1,
                    .lost_ranks = session.crew != nullptr ? session.crew->lost() : 0};
  if (options.overlap_slowdown > 1) {
    const PlanOutcome& outcome = answer.outcome;
    header.slow_overlap = {options.overlap_slowdown, answer.chosen.step,
                           Simulator(outcome.problem).run(outcome.placement, {}).step};
  }
  const std::string json = with_header(header, to_json(answer));
  if (!arguments.report.empty()) {
    outputs.write(
        arguments.report,
        page_html({page_of_partition({session.command_line, "partition", json}, answer)}));
  }
  if (arguments.json) {
    fmt::print("{}", json);
    return;
  }
  outputs.print("{}", to_text(answer));
  if (header.slow_overlap) {
    outputs.print(
        "\nAll step times include computing {} times as slowly while a device sends or receives; "
        "at "
        "full speed this plan takes {}.\n",
        options.overlap_slowdown, format_time(*header.slow_overlap->at_full_speed));
  }
  for (const std::string& path : outputs.files()) {
    outputs.print("\nwrote {}{}", path, path == arguments.report ? " (open it in a browser)" : "");
  }
  outputs.print("\n");
}

}  // namespace

void add_partition(Command& root, Session& session) {
  auto arguments = std::make_shared<PartitionArguments>();
  Command command =
      root.command("partition", "Divide every tensor and operator of a model among the devices");
  arguments->problem.add_to(command, /*hides_rules=*/true);
  std::vector<std::string> methods;
  for (const MethodInfo* method : all_partition_methods().list()) methods.push_back(method->key);
  command
      .text("--method", arguments->options.method,
            fmt::format("How to look for the partition, with its options: {}",
                        fmt::join(methods, ", ")))
      .shown()
      .type("SPEC");
  command
      .integer(
          "--workers", arguments->options.workers, 2, 1024,
          "How many of the devices share the work: the fastest, near each other. Default: all but "
          "CPUs")
      .type("N");
  add_file(command, "--collectives", arguments->options.collectives,
           "How long collectives were measured to take, a line for each: "
           "op,devices,bytes,microseconds");
  add_file(command, "--graph", arguments->graph,
           "Write the divided graph here, for emplace simulate and runtimes");
  add_file(command, "--placement", arguments->placement,
           "Write which of the divided graph's ops is on which device here");
  add_file(command, "--trace", arguments->trace,
           "Write the timeline here, for Perfetto or chrome://tracing");
  add_file(command, "--picture", arguments->picture,
           "Draw along which dimensions every layer's tensors are cut here, as SVG");
  add_overlap_slowdown(
      command, arguments->options.overlap_slowdown,
      "Search for the plan that is best if a device computes this many times as slowly while it "
      "sends or receives; all step times include this");
  add_report_option(command, arguments->report, "all that is known about the partition");
  command
      .text("--time", arguments->budget.time,
            fmt::format(
                "How long everything may take once the model is read, e.g. 30s or 5m; one plan is "
                "always made. Default: {:.0f}s",
                kPartitionSeconds))
      .type("DURATION");
  command
      .count("--evaluations", arguments->budget.evaluations,
             "Stop searching after this many simulated plans: the same seed gives the same plan, "
             "which --time does not promise")
      .type("N");
  add_threads(command, arguments->budget.threads);
  add_seed(command, arguments->options.seed);
  arguments->ranks.add_to(command);
  command
      .integer("--islands", arguments->options.islands, 1, static_cast<std::int64_t>(kMostIslands),
               "Divide a search under --evaluations into so many: with the same seed, any number "
               "of ranks gives the same plan. Default: the ranks")
      .type("N");
  add_file(command, "-o,--output", arguments->output,
           "Write the plan here; - for standard output, and the report to standard error");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends the search, and the best found so far is the answer.\n"
      "Example: emplace partition zoo:stacked-rnn --cluster 8xv100-nvlink -o plan.json");
  command.run([arguments, &session] {
    run_on_ranks(arguments->ranks, session, [&] { partition_model(*arguments, session); });
  });
}

}  // namespace emplace::cli

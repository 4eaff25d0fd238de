// emplace run: executes a placement on this machine and compares it with its prediction.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

#include "placer/evaluator.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/measuring.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "io/trace_json.h"
#include "report/assessment_report.h"
#include "report/execution_report.h"
#include "report/explanation.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/prose.h"
#include "run/execution.h"
#include "run/sensitivity.h"

namespace emplace::cli {
namespace {

struct RunArguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  MeasureSettings settings;
  std::string order = "priorities";
  std::string launch = "graphs";
  std::string numbers = "float32";
  std::string deadline;
  std::string trace;
  std::string report;
  bool limit_memory = false;
  bool json = false;
  RankArguments ranks;
};

// Without a file, everything on one device.
PlacementFile placement_of(const RunArguments& arguments,
                           const std::shared_ptr<const Problem>& problem) {
  if (!arguments.saved.path.empty()) return arguments.saved.load(*problem);
  if (!arguments.saved.scheduler.empty()) {
    fail_option("--scheduler {}: orders the ops of a placement, and none is given",
                arguments.saved.scheduler);
  }
  PlacementFile file;
  file.placement = on_one_device(problem);
  return file;
}

// The devices, if there is more than one, that an answer of our own uses.
void note_devices(const std::shared_ptr<const Problem>& shared, const Placement& placement) {
  const Problem& problem = *shared;
  if (problem.num_devices() == 1) return;
  std::vector<std::string> used;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    if (std::find(placement.begin(), placement.end(), device) != placement.end()) {
      used.push_back(problem.cluster().device(device).name);
    }
  }
  const bool fits = Evaluator(shared).evaluate_uncounted(placement).fits();
  note(used.size() == 1
           ? fmt::format("no placement was given: all on {}, {}", used[0],
                         fits ? "the fastest device, as predicted, that has room"
                              : "though no device has room for all")
           : fmt::format("no placement was given: on {}, as not all may be on one device",
                         fmt::join(used, " and ")));
}

// Memory that runs out is an answer, the rest is not.
int exit_code_of(const exec::Failure& failure) {
  if (failure.kind == exec::Failure::Kind::kCancelled) {
    fail(ErrorKind::kSystem, "interrupted before a step was timed");
  }
  return failure.kind == exec::Failure::Kind::kMemory ? kExitNothingFits : kExitBadInput;
}

void print_messages(const Execution& execution) {
  if (execution.problem->cost_origin(kAnalyticCosts).ops > 0) {
    note("predicted from estimated op times: emplace profile measures them");
  }
  for (const std::string& warning : execution.warnings) warn(warning);
  if (execution.measurement.interrupted) {
    note(fmt::format("interrupted: {} of {} steps were timed", execution.measurement.steps.size(),
                     execution.settings.steps));
  }
}

std::string execution_page(const Execution& execution, const Schedule& schedule,
                           const ProblemRequest& request, const std::string& json,
                           const Session& session) {
  const Assessor assessor(std::make_shared<const Simulator>(execution.problem), {}, {},
                          terms_of(request, *execution.problem));
  const Assessment predicted = assessor.assess(execution.placement, schedule);
  Explanation explanation = explain(predicted, {}, request.could_recompute());
  explanation.sensitivities = sensitivities_of_placement(predicted);
  return page_html(
      {page_of_execution({session.command_line, "run", json}, execution, predicted, explanation)});
}

// `others`: the ranks that execute the rest of the devices; nullptr: none. What is printed and
// written comes from rank 0.
void run_placement(RunArguments arguments, Session& session, RankPeers* others) {
  const bool first = others == nullptr || others->rank() == 0;
  if (!first) arguments.trace = arguments.report = "";
  const ProblemRequest request = arguments.problem.make();
  if (request.fuse) fail_option("--fuse: fused kernels can only be simulated");
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.push_back(arguments.saved.path);
  if (others != nullptr) {
    for (const std::string& input : inputs) refuse_standard_input(input);
  }
  const Outputs outputs(session, {arguments.trace, arguments.report}, arguments.json, inputs);
  const auto problem = load_noted(request).problem;
  PlacementFile file = placement_of(arguments, problem);
  if (first && arguments.saved.path.empty()) note_devices(problem, file.placement);
  MeasureSettings settings = arguments.settings;
  settings.fixed_order = arguments.order == "simulated";
  settings.numbers = *numbers_named(arguments.numbers);
  settings.deadline = deadline_of(arguments.deadline);
  if (others != nullptr && settings.deadline > 0) {
    fail_option("--deadline: steps of several ranks have none; leave it out");
  }
  if (arguments.launch == "each") settings.gpu_launch = exec::GpuLaunch::kEach;

  session.can_be_cancelled = true;
  std::atomic<int> done{0};
  const int total = settings.warm_up + settings.steps;
  const Execution execution = [&] {
    const Progress progress([&] { return fmt::format("step {} of {}", done.load(), total); });
    Laboratory laboratory(
        std::shared_ptr<const Cluster>(problem, &problem->cluster()),
        {.cancelled = &session.cancelled, .limit_memory = arguments.limit_memory, .peers = others},
        [&] { ++done; });
    return execute(laboratory, problem, file.placement, file.schedule, settings);
  }();
  if (others != nullptr) others->close();
  if (!first) return;
  if (execution.failed()) session.exit_code = exit_code_of(*execution.measurement.failure);
  print_messages(execution);
  if (!execution.failed()) {
    outputs.write(arguments.trace,
                  write_trace_json(*problem, execution.placement, {"measured", execution.measured},
                                   {"predicted", execution.predicted}));
  }
  const JsonHeader header{
      .format = "emplace.execution/1", .model = request.model, .problem = problem.get()};
  const std::string json = with_header(header, to_json(execution));
  if (!execution.failed() && !arguments.report.empty()) {
    outputs.write(arguments.report,
                  execution_page(execution, file.schedule, request, json, session));
  }
  if (arguments.json) {
    fmt::print("{}", json);
    return;
  }
  outputs.print("{}",
                fitted(fmt::format("{}\n{}", describe_problem(*problem), to_text(execution))));
  if (execution.failed()) return;
  for (const std::string& path : outputs.files()) {
    outputs.print("\nwrote {} (open it {})\n", path,
                  path == arguments.trace ? "at ui.perfetto.dev" : "in a browser");
  }
}

}  // namespace

void add_run(Command& root, Session& session) {
  auto arguments = std::make_shared<RunArguments>();
  Command command =
      root.command("run", "Execute a placement on this machine, beside what was predicted");
  arguments->problem.add_to(command, /*hides_rules=*/true);
  arguments->saved.add_to(command);
  command.integer("--steps", arguments->settings.steps, 1, 1'000'000, "Steps that are timed")
      .shown()
      .type("N");
  command
      .integer("--warm-up", arguments->settings.warm_up, 0, 1'000'000,
               "Steps before these, which do not count")
      .shown()
      .type("N");
  command
      .text("--order", arguments->order,
            "Which ready op a device takes: by the schedule's priorities, or exactly the simulated "
            "sequence. Default: priorities")
      .one_of({"priorities", "simulated"});
  command
      .text("--launch", arguments->launch,
            "GPUs' ops: in graphs, as many at once as can go together, or each by itself")
      .one_of({"graphs", "each"});
  add_numbers(command, arguments->numbers);
  command.flag("--limit-memory", arguments->limit_memory,
               "Fail where a device needs more memory than the cluster says it has");
  add_deadline(command, arguments->deadline, "none");
  add_seed(command, arguments->settings.seed, "Seed of parameters, inputs and dropout");
  add_file(command, "--trace", arguments->trace,
           "Write the measured timeline here, above the predicted one, for Perfetto or "
           "chrome://tracing");
  add_report_option(command, arguments->report, "what was measured beside what was predicted");
  add_json(command, arguments->json);
  add_quiet(command);
  arguments->ranks.add_to(command, "end");
  command.footer(
      "The cluster's devices say where they are: emplace cluster local writes such a file.\n"
      "Parameters and inputs are random: times are real, results are not a trained model's.\n"
      "Ctrl-C or SIGTERM ends it with what was timed until then.\n"
      "Example: emplace run zoo:resnet-50:batch=4 placement.json -c local.yaml");
  command.run([arguments, &session] {
    run_together(arguments->ranks, session,
                 [&](RankPeers* others) { run_placement(*arguments, session, others); });
  });
}

}  // namespace emplace::cli

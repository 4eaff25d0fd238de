// emplace simulate: the exact step time of a given placement, or of many.
#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"

#include "sim/overlap_slowdown.h"

#include "placers/external/support/protocol.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/simulate_many.h"
#include "report/assessment_report.h"
#include "report/explanation.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/placeto_report.h"
#include "report/prose.h"

namespace emplace::cli {
namespace {

struct SimulateArguments {
  ProblemArguments problem;
  SavedPlacementArguments saved;
  ObjectiveArguments objective;
  std::string trace;
  std::string report;
  std::string told;  // where the problem goes
  std::string rules = "own";
  double overlap_slowdown = 1;
  int threads = 0;  // 0: as many as there are
  bool json = false;
};

void simulate(const SimulateArguments& arguments, Session& session) {
  const ProblemRequest request = arguments.problem.make();
  const bool many = is_many(arguments.saved.path);
  if (many && !arguments.trace.empty()) fail_option("--trace is of one placement");
  if (many && !arguments.report.empty()) fail_option("--report is of one placement");
  if (request.model == "-" && arguments.saved.path == "-") {
    fail_option("standard input is one thing: expected a file for the model or the placements");
  }
  const bool as_placeto = arguments.rules == "placeto";
  if (as_placeto && (many || !arguments.trace.empty() || !arguments.report.empty())) {
    fail_option("--rules placeto is of one placement, and has no timeline");
  }
  const bool slows = arguments.overlap_slowdown > 1;
  if (slows && (many || as_placeto)) {
    fail_option("--overlap-slowdown is of one placement under the program's own rules");
  }
  std::vector<std::string> inputs = arguments.problem.inputs();
  inputs.push_back(arguments.saved.path);
  const Outputs outputs(session, {arguments.trace, arguments.told, arguments.report},
                        arguments.json || many, inputs);
  const auto problem = load_noted(request).problem;
  if (!arguments.told.empty()) {
    outputs.write(arguments.told, problem_line(PlaceContext(problem), {}, 0) + "\n");
  }
  JsonHeader header{.format = many         ? "emplace.simulations/1"
                              : as_placeto ? "emplace.placeto/1"
                                           : "emplace.answer/1",
                    .model = request.model,
                    .made_with = request.made_with(),
                    .problem = problem.get(),
                    .objective = arguments.objective.make()};
  if (many) {
    simulate_many(arguments.saved.path, problem, header, arguments.saved.scheduler,
                  arguments.threads > 0 ? arguments.threads : hardware_threads(), session);
    return;
  }
  PlacementFile file = arguments.saved.load(*problem);
  if (as_placeto) {
    const PlacetoReport report = simulate_as_placeto(*problem, file.placement);
    fmt::print("{}", arguments.json ? with_header(header, to_json(report)) : to_text(report));
    return;
  }
  if (slows) {
    header.slow_overlap = {
        arguments.overlap_slowdown,
        with_slow_overlap(problem, file.placement, file.schedule, arguments.overlap_slowdown).step};
  }
  const Assessor assessor(std::make_shared<const Simulator>(problem), arguments.objective.make(),
                          {}, terms_of(request, *problem));
  Assessment assessment = assessor.assess(std::move(file.placement), std::move(file.schedule));
  assessment.granularity = request.granularity;
  if (!arguments.trace.empty()) outputs.write(arguments.trace, trace_json(assessment));
  const Explanation explanation = explain(assessment, {}, request.could_recompute());
  if (!arguments.report.empty()) {
    Explanation more = explanation;
    more.sensitivities = sensitivities_of_placement(assessment);
    const std::string json = with_header(header, to_json(assessment, nullptr, &more));
    outputs.write(arguments.report,
                  page_html({page_of_answer({session.command_line, "simulate", json, request.scale},
                                            assessment, more)}));
  }
  if (arguments.json) {
    fmt::print("{}", with_header(header, to_json(assessment, nullptr, &explanation)));
  } else {
    outputs.print("{}", fitted(fmt::format("{}\n{}{}", describe_problem(*problem),
                                           to_text(assessment), to_text(explanation, assessment))));
    if (slows) {
      outputs.print("\n{}", slow_overlap_line(arguments.overlap_slowdown, header.slow_overlap->step,
                                              assessment.timeline.step));
    }
    for (const std::string& path : outputs.files()) {
      if (path != arguments.report) continue;
      outputs.print("\nwrote {} (open it in a browser)\n", path);
    }
  }
}

}  // namespace

void add_simulate(Command& root, Session& session) {
  auto arguments = std::make_shared<SimulateArguments>();
  Command command = root.command("simulate", "Simulate a placement, or many, exactly");
  arguments->problem.add_to(command);
  arguments->saved.add_to(command);
  arguments->objective.add_to(command);
  add_file(command, "--trace", arguments->trace,
           "Write the timeline here, for Perfetto or chrome://tracing");
  add_report_option(command, arguments->report, "all that is known about the placement");
  add_file(command, "--problem", arguments->told,
           "Write the problem here, as JSON: groups of ops that share a device, ops' times on each "
           "device, links (docs/external.md)");
  command
      .integer("--threads", arguments->threads, 1, 1024,
               "How many threads many placements may use. Default: all")
      .type("N");
  command
      .text("--rules", arguments->rules,
            "own, or placeto: what the simulator on which Placeto was trained reports "
            "(docs/simulator.md)")
      .one_of({"own", "placeto"});
  add_overlap_slowdown(
      command, arguments->overlap_slowdown,
      "Say what the step is, too, if a device computes this many times as slowly while it sends or "
      "receives");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "A placement that does not fit is simulated all the same; the result says so.\n"
      "PLACEMENT may be many: a folder of files, a file of JSON lines (.jsonl), or - for lines on\n"
      "standard input. Each is answered with a line of JSON, in order; docs/formats.md describes "
      "both.\n"
      "Example: emplace simulate model.json.gz placement.json --cluster 4xp100 --json");
  command.run([arguments, &session] { simulate(*arguments, session); });
}

}  // namespace emplace::cli

// emplace profile: measures a model's ops and the links on this machine.
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/measuring.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "io/cluster_yaml_writer.h"
#include "io/file.h"
#include "io/graph_json_writer.h"
#include "report/assessment_report.h"
#include "report/profile_report.h"
#include "report/prose.h"

namespace emplace::cli {
namespace {

struct ProfileArguments {
  ProblemArguments problem;
  ProfileSettings settings;
  bool no_busy = false;
  bool resume = false;
  std::string numbers = "float32";
  std::string output;
  std::string cluster_output;
  bool json = false;
};

// profiled.json.gz -> profiled.yaml
std::string beside(const std::string& graph) {
  std::string stem = graph;
  for (const char* ending : {".gz", ".json"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - std::char_traits<char>::length(ending));
  }
  return stem + ".yaml";
}

// What an earlier run has measured, and where this one adds to it. There is no file before the
// first phase.
class PhaseFile {
 public:
  PhaseFile(std::string path, std::string header, const Profiler& profiler, bool resume)
      : path_(std::move(path)), header_(std::move(header)) {
    if (!resume || !std::filesystem::exists(path_)) return;
    with_context(path_, [&] {
      phases_ = parse_phases(read_file(path_), header_);
      profiler.check(phases_);
    });
  }

  const std::vector<ProfilePhase>& phases() const { return phases_; }
  void add(ProfilePhase phase) {
    phases_.push_back(std::move(phase));
    write();
  }
  void remove() const { std::filesystem::remove(path_); }
  // Of a run that ends before it has all.
  [[noreturn]] void fail_interrupted(int wanted) const {
    if (phases_.empty()) fail(ErrorKind::kSystem, "interrupted before a phase was done");
    const auto done = static_cast<int>(phases_.size());
    fail(ErrorKind::kSystem,
         "interrupted: {} done and kept in {}; the same command with --resume goes on",
         done < wanted ? fmt::format("{} of {} phases are", done, wanted) : "all phases are",
         path_);
  }

 private:
  void write() const {
    std::string content = header_;
    for (const ProfilePhase& phase : phases_) content += phase_line(phase);
    write_file(path_, content);
  }

  std::string path_;
  std::string header_;
  std::vector<ProfilePhase> phases_;
};

void profile(const ProfileArguments& arguments, Session& session) {
  const ProblemRequest request = arguments.problem.make();
  if (request.fuse) fail_option("--fuse: fused kernels can only be simulated");
  if (arguments.output == "-") fail_option("--output: expected a file, as a second goes beside it");
  ProfileSettings settings = arguments.settings;
  settings.busy = !arguments.no_busy;
  settings.measure.numbers = *numbers_named(arguments.numbers);
  const std::string cluster_output =
      arguments.cluster_output.empty() ? beside(arguments.output) : arguments.cluster_output;
  const Outputs outputs(session, {arguments.output, cluster_output}, arguments.json,
                        arguments.problem.inputs());
  const auto problem = load_noted(request).problem;
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  const auto cluster = std::shared_ptr<const Cluster>(problem, &problem->cluster());
  for (const std::string& warning : number_warnings(*graph, settings.measure.numbers)) {
    warn(warning);
  }
  const Profiler profiler(graph, cluster, settings);

  PhaseFile file(arguments.output + ".phases", phases_header(*graph, *cluster, settings), profiler,
                 arguments.resume);
  session.can_be_cancelled = true;
  ProfileProgress at;
  at.begin_phase(static_cast<int>(file.phases().size()));
  std::vector<std::string> warnings;
  Profile found;
  {
    const Progress progress([&] { return profiler.describe(at); });
    Laboratory laboratory(cluster, {.cancelled = &session.cancelled}, [&] { ++at.steps; });
    warnings = laboratory.warnings();
    try {
      while (at.phase < settings.phases) {
        file.add(profiler.measure(laboratory, at.phase));
        at.begin_phase(at.phase + 1);
      }
      found = profiler.combine(file.phases());
      profiler.learn_transfers(laboratory, found, [&](int number) { at.begin_proposal(number); });
    } catch (const Error&) {
      if (session.cancelled) file.fail_interrupted(settings.phases);
      throw;
    }
  }
  for (const std::string& warning : warnings) warn(warning);
  outputs.write(arguments.output, write_graph_json(*found.graph));
  outputs.write(cluster_output, write_cluster_yaml(found.cluster));
  if (!session.output_failed) file.remove();
  if (arguments.json) {
    const JsonHeader header{
        .format = "emplace.profile/1", .model = request.model, .problem = problem.get()};
    fmt::print("{}", with_header(header, to_json(found)));
    return;
  }
  fmt::print("{}\n", fitted(fmt::format("{}\n{}", describe_problem(*problem), to_text(found))));
  for (const std::string& path : outputs.files()) fmt::print("wrote {}\n", path);
}

}  // namespace

void add_profile(Command& root, Session& session) {
  auto arguments = std::make_shared<ProfileArguments>();
  Command command = root.command("profile", "Measure a model's ops and the links of this machine");
  arguments->problem.add_to(command, /*hides_rules=*/true);
  command.text("-o,--output", arguments->output, "Write the graph with measured times here")
      .required()
      .type("FILE");
  add_file(command, "--cluster-output", arguments->cluster_output,
           "Write the cluster with measured links here. Default: beside the graph, as .yaml");
  command
      .integer("--phases", arguments->settings.phases, 1, 1000,
               "How often everything is measured; the more, the less one slow moment matters")
      .shown()
      .type("N");
  command
      .integer("--steps", arguments->settings.measure.steps, 1, 100'000,
               "Steps that are timed, of each kind of device in each phase")
      .shown()
      .type("N");
  command
      .integer("--warm-up", arguments->settings.measure.warm_up, 0, 100'000,
               "Steps before these, which do not count")
      .shown()
      .type("N");
  command
      .integer("--proposals", arguments->settings.proposals, 0, 100,
               "How many placements that a search proposes are executed at most, to learn what "
               "transfers cost beside the link; fewer where they take as long as predicted")
      .shown()
      .type("N");
  add_numbers(command, arguments->numbers);
  command.flag("--no-busy", arguments->no_busy,
               "Do not measure ops while all devices are busy, which needs memory for a model on "
               "each");
  command.flag("--resume", arguments->resume,
               "Go on with the phases that a run which was stopped has left in FILE.phases");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Use both files instead of the model and the cluster: everything else then goes by "
      "measured times.\n"
      "Example: emplace profile zoo:resnet-50:batch=4 -c local.yaml -o profiled.json.gz\n"
      "         emplace place profiled.json.gz -c profiled.yaml -o placement.json\n"
      "         emplace run profiled.json.gz placement.json -c profiled.yaml");
  command.run([arguments, &session] { profile(*arguments, session); });
}

}  // namespace emplace::cli

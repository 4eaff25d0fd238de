#include "cli/command.h"

#include <algorithm>

#include <emplace/cluster.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/units.h"

#include "graph/in_place.h"
#include "graph/precision.h"

#include "sim/overlap_slowdown.h"

#include "placers/all.h"

#include "cli/live_view.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "cli/threads_option.h"
#include "run/least_time.h"
#include "search/method_spec.h"
#include "zoo/registry.h"

namespace emplace::cli {
namespace {

double seconds_of(const std::string& option, const std::string& text) {
  const auto seconds = parse_seconds(text);
  if (!seconds) fail_option("{} {}: expected a duration such as 30s, 5m or 1h", option, text);
  return *seconds;
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const zoo::ModelInfo& model : zoo::models()) names.push_back("zoo:" + model.name);
  return names;
}

std::vector<std::string> cluster_names() {
  std::vector<std::string> names = example_presets();
  std::erase_if(names, [](const std::string& name) { return name.find('(') != name.npos; });
  names.emplace_back("local");
  return names;
}

void add_model(Command command, std::string& model) {
  command
      .text("model", model,
            "Model file: graph JSON, ONNX, dnn-partitioning or PipeDream, also gzipped; - for "
            "standard input; or zoo:NAME[:key=value,...] (see: emplace zoo list)")
      .required()
      .type("MODEL")
      .suggest(zoo_names());
}

void add_dims(Command command, std::vector<std::string>& dims) {
  command.list("--dim", dims, "Value of a symbolic ONNX dimension, e.g. --dim batch=32")
      .type("NAME=N");
}

}  // namespace

std::vector<std::string> placer_names() {
  std::vector<std::string> names{"all"};
  for (const MethodInfo* placer : all_placers().list()) names.push_back(placer->key);
  return names;
}

void add_training_options(Command command, TrainingRequest& request, bool with_training) {
  if (with_training) {
    command.flag("--training", request.training,
                 "Turn a forward model into its training step: forward, backward and update");
  }
  command
      .text("--optimizer", request.optimizer,
            fmt::format("Optimizer of the training step: {}", fmt::join(optimizer_names(), ", ")))
      .type("NAME");
  command
      .text("--precision", request.precision,
            fmt::format(
                "Precision of the model's floating-point tensors: {}; a training step in 16 bits "
                "keeps float32 master weights, and casts as autocast does",
                fmt::join(precision_names(), ", ")))
      .type("NAME");
  command.flag("--colocate-gradients", request.colocate_gradients,
               "Keep gradient ops on the device of their forward op");
  command
      .texts("--recompute", request.recompute,
             "Recompute this module's activations in the backward pass instead of keeping "
             "them, e.g. --recompute \"encoder.layer.*\"; may be given several times")
      .type("MODULE");
}

void ProblemArguments::add_to(Command command, bool hides_rules) {
  add_model(command, request.model);
  const std::string help =
      "Cluster file, a preset such as 4xp100 (see: emplace cluster list), or local: this machine";
  const Option cluster =
      several_clusters ? command.texts("-c,--cluster", clusters,
                                       help + "; give several to compare what is best on each")
                       : command.text("-c,--cluster", request.cluster, help);
  Option(cluster).type("CLUSTER").suggest(cluster_names());
  add_file(command, "--kinds", request.kinds,
           "Cluster file whose device kinds replace those of the same names, e.g. what "
           "emplace profile-fit wrote");
  command
      .text("--cost", cost,
            "Op times: measured, analytic, or auto (measured where there is a time)")
      .shown()
      .type("MODE");
  command
      .flag("--fuse", request.fuse,
            "Fuse each chain of elementwise ops into one kernel, on one device")
      .hidden(hides_rules);
  command
      .text("--in-place", in_place,
            "Which ops write over an input that nobody else reads: none, sums (of gradients and of "
            "partial results) or all (elementwise ops too)")
      .shown()
      .type("MODE")
      .one_of({"none", "sums", "all"});
  add_dims(command, dims);
  what_if.add_batch(command);
  command
      .texts("--pin", pins,
             "Keep these ops or modules on these devices, e.g. --pin \"encoder.*=gpu0\" or "
             "\"head=gpu0,gpu1\"; may be given several times")
      .type("OPS=DEVICES")
      .hidden(hides_rules);
  command
      .texts("--forbid", forbidden,
             "Keep these ops or modules off these devices, e.g. --forbid \"embed*=cpu\"; may "
             "be given several times")
      .type("OPS=DEVICES")
      .hidden(hides_rules);
  command
      .text("--modules", modules,
            "whole: the ops of a module, with their backward passes and updates, share a device")
      .one_of({"whole", "cut"})
      .hidden(hides_rules);
  command
      .text("--granularity", granularity,
            "What is placed as one: op, module (as --modules whole), or layer (encoder.layer.3 "
            "with all that is in it). Default: op")
      .one_of({"op", "module", "layer"})
      .hidden(hides_rules);
  add_training_options(command, request.training);
  what_if.add_hardware(command);
}

void add_overlap_slowdown(Command command, double& factor, const std::string& what) {
  command
      .real("--overlap-slowdown", factor, 1, kMostOverlapSlowdown,
            what + "; 1.13 was measured on GPUs. Default: 1, at full speed")
      .type("FACTOR");
}

std::string slow_overlap_line(double factor, Nanoseconds slow, Nanoseconds step) {
  return fmt::format(
      "If computing is {} times as slow while a device sends or receives, the step takes {} "
      "({:+.1f} %).\n",
      factor, format_time(slow),
      100 * (static_cast<double>(slow) / static_cast<double>(std::max<Nanoseconds>(1, step)) - 1));
}

void ModelArguments::add_to(Command command) {
  add_model(command, problem.request.model);
  add_dims(command, problem.dims);
  problem.what_if.add_batch(command);
  add_training_options(command, problem.request.training);
}

ProblemRequest ProblemArguments::make() const {
  ProblemRequest made = request;
  if (!clusters.empty()) made.cluster = clusters.front();
  what_if.apply(made);
  for (const std::string& dim : dims) {
    const std::size_t equals = dim.find('=');
    if (equals == std::string::npos || equals == 0) fail_option("--dim {}: expected NAME=N", dim);
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    made.dims[dim.substr(0, equals)] =
        read_integer("--dim " + dim.substr(0, equals), dim.substr(equals + 1), 1, kLargest);
  }
  const auto mode = parse_cost_mode(cost);
  if (!mode) fail_option("--cost {}: expected measured, analytic or auto", cost);
  made.cost = *mode;
  made.in_place = parse_in_place(in_place).value();  // one of those that are offered
  for (const std::string& rule : pins) {
    made.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kPin, rule));
  }
  for (const std::string& rule : forbidden) {
    made.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kForbid, rule));
  }
  if (!granularity.empty()) made.granularity = parse_granularity(granularity);
  if (modules == "whole" && granularity.empty()) made.granularity = Granularity::kModule;
  if (!modules.empty() && (modules == "whole") == (made.granularity == Granularity::kOp)) {
    fail_option("--modules {} and --granularity {}: expected one of them, or two that agree",
                modules, granularity);
  }
  return made;
}

std::vector<std::string> ProblemArguments::inputs() const {
  std::vector<std::string> names = clusters;
  names.insert(names.end(), {request.model, request.cluster, request.kinds});
  return names;
}

LoadedProblem load_noted(const ProblemRequest& request) {
  std::vector<std::string> notes;
  LoadedProblem loaded = load_problem_and_ops(request, &notes);
  for (const std::string& text : notes) note(text);
  return loaded;
}

void SavedPlacementArguments::add_to(Command command) {
  command.text("placement", path, "Placement file").type("PLACEMENT");
  command.text("--placement", path, "Placement file").type("PLACEMENT").hidden(true);
  command
      .text("--scheduler,--schedule", scheduler,
            "Order of ready ops: given (the file's priorities), fifo, pct, msr; default: given "
            "where the file has priorities, else fifo")
      .type("KEY");
}

PlacementFile SavedPlacementArguments::load(const Problem& problem) const {
  if (path.empty()) fail_option("the placement is missing: expected a placement file");
  PlacementFile file = [&] {
    try {
      return load_placement(path, problem, scheduler);
    } catch (const Error& error) {
      if (!std::string_view(error.what()).ends_with(kHintAtTraining)) throw;
      throw Error(error.kind(), std::string(error.what()) + ": give --training");
    }
  }();
  if (!file.graph.empty() && file.graph != problem.graph().name()) {
    warn(fmt::format("{} was made for graph '{}', not '{}'", path, file.graph,
                     problem.graph().name()));
  }
  return file;
}

void SubsetArguments::add_to(Command command) {
  command
      .integer("--devices", devices, 1, 1'000'000,
               "Use at most this many of the cluster's devices, whichever serve best")
      .type("N");
  command.flag(
      "--use-cpu", use_cpu,
      "Let CPUs take ops like any other device; otherwise they do only where an op must be "
      "on one, or nothing fits without them. Beside GPUs with memory to spare executed steps "
      "gained "
      "at most 4 % by that, and sometimes lost up to 11 %");
  command
      .texts("--start", starts,
             "Placement file to begin from, for placers that search; may be given several times")
      .type("FILE");
}

SubsetProblems SubsetArguments::make(const std::shared_ptr<const Problem>& problem,
                                     const Objective& objective, std::vector<Solution> more,
                                     CpuUse unasked) const {
  std::vector<Solution> solutions = std::move(more);
  for (const std::string& path : starts) {
    PlacementFile file = SavedPlacementArguments{.path = path, .scheduler = {}}.load(*problem);
    solutions.push_back({std::move(file.placement), std::move(file.schedule), {}, path});
  }
  return {problem, objective, devices, std::move(solutions), use_cpu ? CpuUse::kAlways : unasked};
}

void LearningArguments::add_to(Command command, bool several_runs) {
  command
      .text("--device", settings.device,
            "Where learned placers compute: cpu, or a GPU such as cuda:0. Default: cpu")
      .type("DEVICE");
  command
      .text("--curves", settings.curves,
            several_runs ? "Write learned placers' curves here, a folder each: for TensorBoard, "
                           "and as a table"
                         : "Write a learned placer's curves here, several placers' in a folder "
                           "each: for TensorBoard, and as a table")
      .type("FOLDER");
  if (several_runs) return;
  const Option file =
      command
          .text("--checkpoint", settings.checkpoint,
                "Keep the state of a learned placer or a search here, to resume with "
                "--resume")
          .type("FILE");
  command.text("--checkpoint-every", checkpoint_every, "How often, e.g. 5m. Default: 30s")
      .needs(file)
      .type("DURATION");
  command
      .flag("--resume", settings.resume,
            "Resume from the checkpoint: --evaluations counts those before it too, --time does not")
      .needs(file);
}

LearningSettings LearningArguments::make() const {
  LearningSettings made = settings;
  if (!checkpoint_every.empty()) {
    made.checkpoint_seconds = seconds_of("--checkpoint-every", checkpoint_every);
  }
  return made;
}

LearningSettings LearningArguments::make(const Session& session) const {
  return session.member != nullptr ? LearningSettings{.device = settings.device} : make();
}

std::vector<std::string> LearningArguments::outputs() const {
  std::vector<std::string> files;
  if (!settings.checkpoint.empty()) files.push_back(settings.checkpoint);
  if (!settings.curves.empty()) {
    files.insert(files.end(), {settings.curves, settings.curves + "/curves.csv"});
  }
  return files;
}

std::vector<std::string> inputs_of_specs(const std::string& specs) {
  std::vector<std::string> files;
  if (specs.empty()) return files;
  for (const std::string& text : split_specs(specs)) {
    for (const auto& [name, value] : MethodSpec::parse(text).options) {
      if (name == "policy") files.push_back(value);
    }
  }
  return files;
}

void ObjectiveArguments::add_to(Command command) {
  command
      .text("--objective", objective,
            "latency (step time) or throughput (period of a pipelined stream)")
      .one_of({"latency", "throughput"})
      .shown();
  command
      .text("--overlap", overlap,
            "With throughput: full, or none (loads alone; devices pay for communication)")
      .one_of({"full", "none"})
      .shown();
}

Objective ObjectiveArguments::make() const {
  const bool stream = objective == "throughput";
  if (!stream && overlap == "none") {
    fail_option("--overlap none is for a stream: give --objective throughput too");
  }
  if (!stream) return StepTime{};
  return StreamPeriod{overlap == "none" ? Overlap::kNone : Overlap::kFull};
}

void BudgetArguments::add_to(Command command, const std::string& time_is_for) {
  command
      .text("--time", time,
            fmt::format("Stop searching after this long, e.g. 30s or 5m; {}. Default, where "
                        "--evaluations is not given either: {:.0f}s",
                        time_is_for, Budget::kDefaultSeconds))
      .type("DURATION");
  command.count("--evaluations", evaluations, "Stop searching after this many simulated steps")
      .type("N");
  add_threads(command, threads);
}

Budget BudgetArguments::make(const Session& session) const {
  Budget budget;
  if (!time.empty()) {
    budget.seconds = seconds_of("--time", time);
  }
  budget.evaluations = evaluations;
  budget.threads = threads > 0 ? threads : std::max(1, hardware_threads() / session.ranks_here);
  budget.cancelled = &session.cancelled;
  session.can_be_cancelled = true;
  return budget;
}

void add_seed(Command command, std::uint64_t& seed, const std::string& help) {
  command.seed("--seed", seed, help).shown();
}

void add_file(Command command, const std::string& names, std::string& path,
              const std::string& help) {
  command.text(names, path, help).type("FILE");
}

void add_report_option(Command command, std::string& path, const std::string& what) {
  add_file(command, "--report", path,
           "Write " + what + " here, as one HTML page that any browser opens");
}

void add_json(Command command, bool& json) {
  command.flag("--json", json, "Print the result as JSON on standard output");
}

PortfolioResult run_portfolio(const SubsetProblems& problems, PortfolioRequest request) {
  const OpId num_ops = problems.whole()->problem().num_ops();
  for (const std::string& text : runs_beyond_time(request.runs, num_ops, request.budget)) {
    note(text);
  }
  dist::Crew* const crew = request.crew;
  Portfolio portfolio(problems, std::move(request));
  if (const std::size_t idle = portfolio.idle_ranks(); idle > 0) {
    const auto ranks = static_cast<std::size_t>(crew->size());
    note(fmt::format("{} of {} ranks have nothing to do: the number of islands is {}", idle, ranks,
                     ranks - idle));
  }
  PortfolioResult result = [&] {
    LiveView view;
    const Progress progress(
        [&](std::size_t columns) { return view.draw(portfolio.status().view(), columns); });
    return portfolio.run();
  }();
  for (const std::string& warning : result.warnings) warn(warning);
  if (crew != nullptr) {
    for (const std::string& text : crew->take_notes()) note(text);
  }
  return result;
}

}  // namespace emplace::cli

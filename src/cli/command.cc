#include "cli/command.h"

#include "base/error.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/units.h"

#include "zoo/registry.h"

namespace emplace::cli {

void TrainingArguments::add_to(CLI::App& command, bool with_training) {
  if (with_training) {
    command.add_flag("--training", training,
                     "Turn a forward model into its training step: forward, backward and update");
  }
  command
      .add_option("--optimizer", optimizer,
                  fmt::format("Of the training step: {}", fmt::join(optimizer_names(), ", ")))
      ->type_name("NAME");
  command.add_flag("--colocate-gradients", colocate_gradients,
                   "Keep gradient ops on the device of their forward op");
  command
      .add_option("--recompute", recompute,
                  "Compute this module's activations again in the backward pass instead of keeping "
                  "them, e.g. --recompute \"encoder.layer.*\"; may be given several times")
      ->allow_extra_args(false)
      ->type_name("MODULE");
}

std::string TrainingArguments::first_given() const {
  if (!optimizer.empty()) return "--optimizer " + optimizer;
  if (colocate_gradients) return "--colocate-gradients";
  return recompute.empty() ? std::string() : "--recompute " + recompute.front();
}

Model TrainingArguments::read(const std::string& model, ReadOptions options) const {
  const std::string given = first_given();
  if (!given.empty() && !training && !zoo::is_zoo_name(model)) {
    fail_option("{} is for a training step: give --training too, to make one of '{}'", given,
                model);
  }
  options.training = training;
  options.optimizer_chosen = !optimizer.empty();
  if (options.optimizer_chosen) options.training_options.optimizer = parse_optimizer(optimizer);
  options.training_options.colocate_gradients = colocate_gradients;
  options.training_options.recompute = recompute;
  Model read = read_model(model, options);
  bool trains = false;
  for (OpId op = 0; op < read.graph->num_ops() && !trains; ++op) {
    trains = read.graph->phase(op) != Phase::kForward;
  }
  if (!given.empty() && !trains) {
    fail_option("{} is for a training step, and '{}' is a forward pass", given, model);
  }
  return read;
}

namespace {

// The cluster with the file's kinds in place of its own of the same names.
std::shared_ptr<const Cluster> with_kinds(const Cluster& cluster, const std::string& file) {
  const auto given = read_cluster(file);
  ClusterSpec spec = cluster.spec();
  bool used = false;
  for (const DeviceKind& kind : given->spec().kinds) {
    std::erase_if(spec.kinds, [&](const DeviceKind& own) { return own.name == kind.name; });
    spec.kinds.push_back(kind);
    for (const Device& device : spec.devices) used |= device.kind == kind.name;
  }
  if (!used) {
    fail_option("--kinds {}: has no kind that a device of '{}' is of", file, cluster.name());
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

}  // namespace

void ProblemArguments::add_to(CLI::App& command, bool model_required) {
  command
      .add_option("model", model,
                  "Model file: graph JSON, ONNX, dnn-partitioning or PipeDream, also gzipped; or "
                  "zoo:NAME[:key=value,...] (see: emplace zoo list)")
      ->required(model_required)
      ->type_name("MODEL");
  command
      .add_option("-c,--cluster", cluster,
                  "Cluster file, or a preset such as 4xp100 (see: emplace cluster list)")
      ->type_name("CLUSTER");
  command
      .add_option("--kinds", kinds,
                  "Cluster file whose device kinds replace those of the same names, e.g. what "
                  "emplace profile-fit wrote")
      ->type_name("FILE");
  command
      .add_option("--cost", cost,
                  "Op times: measured, analytic, or auto (measured where there is a time)")
      ->capture_default_str()
      ->type_name("MODE");
  command.add_flag("--fuse", fuse, "Chains of elementwise ops are one kernel each, on one device");
  command.add_option("--dim", dims, "Value of a symbolic ONNX dimension, e.g. --dim batch=32")
      ->type_name("NAME=N");
  command
      .add_option("--pin", pins,
                  "Keep these ops or modules on these devices, e.g. --pin \"encoder.*=gpu0\" or "
                  "\"head=gpu0,gpu1\"; may be given several times")
      ->allow_extra_args(false)
      ->type_name("OPS=DEVICES");
  command
      .add_option("--forbid", forbidden,
                  "Keep these ops or modules off these devices, e.g. --forbid \"embed*=cpu\"; may "
                  "be given several times")
      ->allow_extra_args(false)
      ->type_name("OPS=DEVICES");
  training.add_to(command);
}

Model ProblemArguments::read() const {
  ReadOptions options;
  for (const std::string& dim : dims) {
    const std::size_t equals = dim.find('=');
    if (equals == std::string::npos || equals == 0) fail_option("--dim {}: expected NAME=N", dim);
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    options.dims[dim.substr(0, equals)] =
        read_integer("--dim " + dim.substr(0, equals), dim.substr(equals + 1), 1, kLargest);
  }
  return training.read(model, std::move(options));
}

LoadedProblem ProblemArguments::load() const {
  const auto mode = parse_cost_mode(cost);
  if (!mode) fail_option("--cost {}: expected measured, analytic or auto", cost);
  const Model from = read();
  if (cluster.empty() && from.cluster == nullptr) {
    fail_option("--cluster is missing: expected a cluster file or a preset such as 4xp100");
  }
  auto machines = cluster.empty() ? from.cluster : read_cluster(cluster);
  if (!kinds.empty()) machines = with_kinds(*machines, kinds);
  CompileOptions compiling{.cost = *mode, .fuse = fuse};
  for (const std::string& rule : pins) {
    compiling.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kPin, rule));
  }
  for (const std::string& rule : forbidden) {
    compiling.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kForbid, rule));
  }
  auto problem = with_context(model, [&] { return compile(from.graph, machines, compiling); });
  return {std::move(problem), std::move(compiling)};
}

bool ProblemArguments::could_recompute() const {
  return training.recompute.empty() && (training.training || zoo::is_zoo_name(model));
}

void ObjectiveArguments::add_to(CLI::App& command) {
  command
      .add_option("--objective", objective,
                  "latency (step time) or throughput (period of a pipelined stream)")
      ->check(CLI::IsMember({"latency", "throughput"}))
      ->capture_default_str();
  command
      .add_option("--overlap", overlap,
                  "With throughput: full, or none (devices pay for communication)")
      ->check(CLI::IsMember({"full", "none"}))
      ->capture_default_str();
}

Objective ObjectiveArguments::make() const {
  if (!throughput() && overlap == "none") {
    fail_option("--overlap none is for a stream: give --objective throughput too");
  }
  return {throughput() ? Goal::kThroughput : Goal::kLatency, overlap_kind()};
}

void BudgetArguments::add_to(CLI::App& command, const std::string& time_is_for) {
  command
      .add_option("--time", time,
                  fmt::format("Stop searching after this long, e.g. 30s or 5m; {}. Default, where "
                              "--evaluations is not given either: {:.0f}s",
                              time_is_for, Budget::kDefaultSeconds))
      ->type_name("DURATION");
  command
      .add_option("--evaluations", evaluations, "Stop searching after this many simulated steps")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command
      .add_option("--threads", threads,
                  "How many threads a search may use. Default: all; under --evaluations the result "
                  "does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
}

Budget BudgetArguments::make(const Session& session) const {
  Budget budget;
  if (!time.empty()) {
    budget.seconds = parse_seconds(time);
    if (!budget.seconds) fail_option("--time {}: expected a duration such as 30s, 5m or 1h", time);
  }
  budget.evaluations = evaluations;
  budget.threads = threads > 0 ? threads : hardware_threads();
  budget.cancelled = &session.cancelled;
  return budget;
}

std::vector<std::string> split_specs(const std::string& text) {
  std::vector<std::string> specs{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      specs.emplace_back();
    } else {
      specs.back() += c;
    }
  }
  return specs;
}

}  // namespace emplace::cli

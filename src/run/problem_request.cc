#include "run/problem_request.h"

#include "base/error.h"

#include "graph/precision.h"

#include "placer/scheduler.h"

#include "io/file.h"
#include "io/importers.h"
#include "io/model_formats.h"
#include "run/batch.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

bool is_training_step(const Graph& graph) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kForward) return true;
  }
  return false;
}

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
    fail_option("{}: has no kind that a device of '{}' is of", file, cluster.name());
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

// A placement file, or a model with ONNX's multi-device annotations.
PlacementFile read_saved_placement(const std::string& text, const Problem& problem) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool json = start == std::string::npos || text[start] == '{' || text[start] == '[';
  if (json) return read_placement_json(text, problem);
  if (is_text(text)) {
    fail_input(
        "is not a placement file: expected JSON, as emplace place writes it, or an ONNX model "
        "with device annotations");
  }
  PlacementFile file;
  file.placer = "ONNX annotations";
  file.placement = find_importer("onnx-devices").read({.problem = problem, .content = text});
  return file;
}

}  // namespace

std::string TrainingRequest::first_given() const {
  if (!optimizer.empty()) return "optimizer " + optimizer;
  if (colocate_gradients) return "colocating gradients";
  return recompute.empty() ? std::string() : "recomputing " + recompute.front();
}

Model load_model(const std::string& model, const TrainingRequest& training, ReadOptions options) {
  const std::string given = training.first_given();
  if (!given.empty() && !training.training && !zoo::is_zoo_name(model)) {
    fail_option("{} is for a training step: ask for training too, to make one of '{}'", given,
                model);
  }
  options.training = training.training;
  options.optimizer_chosen = !training.optimizer.empty();
  if (options.optimizer_chosen) {
    options.training_options.optimizer = parse_optimizer(training.optimizer);
  }
  options.training_options.colocate_gradients = training.colocate_gradients;
  options.training_options.recompute = training.recompute;
  if (!training.precision.empty()) options.precision = parse_precision(training.precision);
  Model read = read_model(model, options);
  if (!given.empty() && !is_training_step(*read.graph)) {
    fail_option("{} is for a training step, and '{}' is a forward pass", given, model);
  }
  return read;
}

bool ProblemRequest::could_recompute() const {
  return training.recompute.empty() && (training.training || zoo::is_zoo_name(model));
}

Model load_model(const ProblemRequest& request) {
  if (request.batch) return load_model(with_batch(request));
  ReadOptions options;
  options.dims = request.dims;
  return load_model(request.model, request.training, std::move(options));
}

MadeWith ProblemRequest::made_with() const {
  MadeWith made;
  made.dims.insert(dims.begin(), dims.end());
  made.training = training.training;
  made.optimizer = training.optimizer;
  made.colocate_gradients = training.colocate_gradients;
  made.recompute = training.recompute;
  if (granularity != Granularity::kOp) made.granularity = granularity_name(granularity);
  made.batch = batch.value_or(0);
  made.precision = training.precision;
  if (in_place != InPlace::kSums) made.in_place = in_place_name(in_place);
  return made;
}

std::shared_ptr<const Problem> load_problem(const ProblemRequest& request,
                                            std::vector<std::string>* notes) {
  return load_problem_and_ops(request, notes).problem;
}

LoadedProblem load_problem_and_ops(const ProblemRequest& request, std::vector<std::string>* notes) {
  const Model read = load_model(request);
  if (notes != nullptr) *notes = read.notes;
  if (request.cluster.empty() && read.cluster == nullptr) {
    fail_option("the cluster is missing: expected a cluster file or a preset such as 4xp100");
  }
  auto machines = request.cluster.empty() ? read.cluster : read_cluster(request.cluster);
  if (!request.kinds.empty()) machines = with_kinds(*machines, request.kinds);
  if (request.scale != ClusterScale{}) {
    machines = std::make_shared<const Cluster>(scaled(*machines, request.scale));
  }
  const CompileOptions compiling{.cost = request.cost,
                                 .fuse = request.fuse,
                                 .in_place = request.in_place,
                                 .rules = request.rules};
  auto op_by_op =
      with_context(request.model, [&] { return compile(read.graph, machines, compiling); });
  if (request.scale.changes_estimates() && op_by_op->cost_origin(kAnalyticCosts).ops == 0) {
    fail_option(
        "{}: the times of all ops are measured, so this changes nothing; scale speed, or "
        "have times estimated",
        request.scale.to_string());
  }
  if (request.granularity == Granularity::kOp) return {std::move(op_by_op)};
  return with_context(request.model, [&]() -> LoadedProblem {
    const auto whole = keep_whole(read.graph, request.granularity);
    return {compile(whole, machines, compiling), std::move(op_by_op)};
  });
}

StepTerms terms_of(const ProblemRequest& request, const Problem& problem) {
  StepTerms terms{.work = work_of(request, problem.graph()), .prices = request.prices};
  terms.prices.require_complete(problem.cluster());
  return terms;
}

PlacementFile load_placement(const std::string& path, const Problem& problem,
                             const std::string& scheduler) {
  const std::string content = read_file(path);
  return with_context(path, [&] { return parse_placement(content, problem, scheduler); });
}

PlacementFile parse_placement(const std::string& text, const Problem& problem,
                              const std::string& scheduler) {
  PlacementFile file = read_saved_placement(text, problem);
  if (scheduler == "given") {
    if (file.schedule.fifo()) file.schedule.priorities.assign(problem.num_ops(), 0);
  } else if (!scheduler.empty()) {
    file.schedule = make_schedule(problem, file.placement, scheduler);
  }
  return file;
}

}  // namespace emplace

// Which of the usual ways to train on many devices a partition is, level by level.
//
// Reads the plan, not the method's name, against the step in the operators that were divided
// (tensor/prepare.h). A level that cuts the inputs along their examples divides examples if every
// op that meets a weight or makes the gradient of one runs over its own examples there, by the
// strategy of the op and the variable that examples.h finds in its description: how its results are
// kept does not say, since products by columns can be kept by examples. ZeRO's stage follows from
// what else is in parts: weights, the gradients that updates read, updates. A level that leaves all
// inputs whole must divide layers as Megatron-LM does, which a tp_plan of that level alone tells.
// All else is refused: a degree must not stand for another plan. What is not checked are ops
// without weights, as attention, whose division programs choose by themselves. Linear in the graph
// and the levels.
#include "io/parallel_degrees.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

#include "tensor/prepare.h"

#include "io/examples.h"
#include "io/json_layout.h"
#include "io/tp_plan.h"

namespace emplace {
namespace {

using DegreesJson = nlohmann::ordered_json;

// What a level of the partition does.
struct LevelUse {
  bool tensor = false;  // divides layers; else examples
  int stage = 0;        // of ZeRO, where it divides examples
};

struct Degrees {
  int replicas = 1;  // examples, with everything everywhere
  int shards = 1;    // examples, with something in parts
  int stage = 0;     // ZeRO's, of the shards
  int tensor = 1;
  std::int64_t batch = 0;

  int data() const { return replicas * shards; }
  std::int64_t batch_of_each() const { return batch / data(); }
};

class DegreesFinder {
 public:
  DegreesFinder(const Graph& graph, const SavedPartition& partition)
      : model_(graph), graph_(prepare_to_divide(graph)), partition_(partition), examples_(graph_) {}

  Degrees find() {
    Degrees degrees{.batch = examples_.count()};
    for (std::size_t level = 0; level < partition_.factors.size(); ++level) {
      const int factor = partition_.factors[level];
      const LevelUse use = use_of(level);
      if (use.tensor) {
        degrees.tensor *= factor;
      } else if (use.stage == 0) {
        degrees.replicas *= factor;
      } else if (degrees.shards > 1 && degrees.stage != use.stage) {
        fail_input("levels have stages {} and {} of ZeRO; expected the same", degrees.stage,
                   use.stage);
      } else {
        degrees.shards *= factor;
        degrees.stage = use.stage;
      }
    }
    if (degrees.batch % degrees.data() != 0) {
      fail_input("{} examples are divided into {} parts; expected parts of equal size",
                 degrees.batch, degrees.data());
    }
    return degrees;
  }

 private:
  std::vector<OpId> of_role(OpRole role) const {
    std::vector<OpId> ops;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.role(op) == role && graph_.outputs(op).size() == 1) ops.push_back(op);
    }
    return ops;
  }

  LevelUse use_of(std::size_t level) const {
    int divided = 0;
    int whole = 0;
    for (const OpId op : examples_.inputs()) {
      ++(split_of(graph_.outputs(op)[0], level) == 0 ? divided : whole);
    }
    if (divided == 0) {
      require_columns_and_rows(level);
      return {.tensor = true};
    }
    if (whole > 0) {
      fail_input("level {} divides the examples of some inputs alone; expected all or none", level);
    }
    require_examples(level);
    return {.stage = stage_of(level)};
  }

  const SavedPartition::Tensor* saved(TensorId tensor) const {
    const OpId op = graph_.producer(tensor);
    const auto outputs = graph_.outputs(op);
    std::string name(graph_.op_name(op));
    if (outputs.size() > 1) {
      name +=
          fmt::format(":{}", std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin());
    }
    return partition_.find_tensor(name);
  }

  std::optional<int> split_of(TensorId tensor, std::size_t level) const {
    const SavedPartition::Tensor* found = saved(tensor);
    return found == nullptr || found->split.empty() ? std::nullopt : found->split[level];
  }

  // Where weights meet examples and where their gradients are made of them, everyone has to have
  // its own examples.
  void require_examples(std::size_t level) const {
    const std::vector<std::uint8_t> weights = made_of_weights(graph_);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const auto outputs = graph_.outputs(op);
      if (graph_.is_source(op) || graph_.phase(op) == Phase::kUpdate || outputs.empty()) continue;
      const auto inputs = graph_.inputs(op);
      const bool has_weight = std::any_of(inputs.begin(), inputs.end(),
                                          [&](TensorId tensor) { return weights[tensor] != 0; });
      if (runs_over_examples(op, has_weight, level)) continue;
      fail_input(
          "level {} divides the examples of the inputs, but not those of op '{}'; expected "
          "examples divided everywhere, or layers by columns and rows",
          level, graph_.op_name(op));
    }
  }

  // True of ops that need not.
  bool runs_over_examples(OpId op, bool has_weight, std::size_t level) const {
    const SavedPartition::Op* found = partition_.find_op(std::string(graph_.op_name(op)));
    const std::optional<std::string> cut =
        found == nullptr || found->strategy.empty() ? std::nullopt : found->strategy[level];
    if (const auto variable = examples_.variable(op)) {
      const tdl::Description& description = *examples_.description(op);
      const bool adds_up = description.is_reduction(*variable);
      return (!has_weight && !adds_up) ||
             cut == (adds_up ? "sum " : "") + description.variables[*variable].name;
    }
    if (!has_weight || !examples_.are_read(op)) return true;
    // Which part of them it reads is not known; some part, kept as examples are, will do.
    return cut &&
           (graph_.phase(op) != Phase::kForward || split_of(graph_.outputs(op)[0], level) == 0);
  }

  // By the weights, then by their updates.
  int stage_of(std::size_t level) const {
    const auto in_parts = [&](OpId op) {
      return split_of(graph_.outputs(op)[0], level).has_value();
    };
    std::vector<OpId> weights = of_role(OpRole::kParameter);
    std::erase_if(weights, [&](OpId op) { return !has_part_for_all(graph_.outputs(op)[0]); });
    if (all_or_none(weights, in_parts, "weights", level)) {
      const bool held = std::all_of(weights.begin(), weights.end(),
                                    [&](OpId op) { return saved(graph_.outputs(op)[0])->held; });
      return held ? 2 : 3;
    }
    std::vector<OpId> updates;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) == Phase::kUpdate && is_update_of_weight(op)) updates.push_back(op);
    }
    if (updates.empty() && is_trained()) {
      fail_input(
          "level {} divides examples, and weights are everywhere; expected updates of weights, "
          "which say where the optimizer's state is",
          level);
    }
    const bool divided = all_or_none(
        updates,
        [&](OpId op) {
          const SavedPartition::Op* found = partition_.find_op(std::string(graph_.op_name(op)));
          return found != nullptr && !found->strategy.empty() && found->strategy[level].has_value();
        },
        "updates", level);
    if (!divided) return 0;
    const bool gradients = all_or_none(
        updates, [&](OpId op) { return split_of(gradient_of(op), level).has_value(); },
        "gradients that updates read", level);
    return gradients ? 2 : 1;
  }

  bool is_trained() const {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) == Phase::kBackward) return true;
    }
    return false;
  }

  // A bias of one number is everywhere whatever the plan.
  bool has_part_for_all(TensorId tensor) const {
    const auto shape = graph_.shape(tensor);
    return std::any_of(shape.begin(), shape.end(), [&](std::int64_t size) {
      return size >= static_cast<std::int64_t>(partition_.devices.size());
    });
  }

  bool is_update_of_weight(OpId op) const {
    const auto inputs = graph_.inputs(op);
    const auto any = [&](const auto& test) {
      return std::any_of(inputs.begin(), inputs.end(), test);
    };
    return any([&](TensorId tensor) {
             return graph_.role(graph_.producer(tensor)) == OpRole::kParameter &&
                    has_part_for_all(tensor);
           }) &&
           any([&](TensorId tensor) { return !graph_.is_source(graph_.producer(tensor)); });
  }

  TensorId gradient_of(OpId update) const {
    const auto inputs = graph_.inputs(update);
    return *std::find_if(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      return !graph_.is_source(graph_.producer(tensor));
    });
  }

  template <class Test>
  static bool all_or_none(const std::vector<OpId>& ops, const Test& test, const char* what,
                          std::size_t level) {
    const auto count = std::count_if(ops.begin(), ops.end(), test);
    if (count == 0) return false;
    if (count != static_cast<std::ptrdiff_t>(ops.size())) {
      fail_input("level {} has {} of {} {} in parts; expected all of them or none", level, count,
                 ops.size(), what);
    }
    return true;
  }

  // As Megatron-LM does: what columns give is what rows take, without an exchange between them.
  void require_columns_and_rows(std::size_t level) const {
    SavedPartition own = partition_;
    fit_partition(own, model_);
    own.factors = {partition_.factors[level]};
    for (auto& [name, tensor] : own.tensors) {
      if (!tensor.split.empty()) tensor.split = {tensor.split[level]};
    }
    const nlohmann::json plan = plan_of(own, level);
    bool any = false;
    for (const auto& [pattern, style] : plan.items()) {
      if (!is_of_numbered_layer(pattern)) continue;
      any = true;
      if (style == "colwise" || style == "rowwise") continue;
      fail_input(
          "level {} divides neither examples nor layers as Megatron-LM does: '{}' is {}; expected "
          "columns whose outputs rows take as they are",
          level, pattern, style.get<std::string>());
    }
    if (!any) {
      fail_input("level {} divides neither examples nor numbered layers, as of transformers",
                 level);
    }
    require_linear_layers(plan, level);
  }

  static bool is_of_numbered_layer(const std::string& pattern) {
    return ("." + pattern + ".").find(".*.") != std::string::npos;
  }

  nlohmann::json plan_of(const SavedPartition& partition, std::size_t level) const {
    try {
      return nlohmann::json::parse(write_tp_plan(model_, partition, [](const std::string&) {}));
    } catch (const Error& error) {
      fail_input("level {}: {}", level, error.what());
    }
  }

  // Of the matrices and larger weights of numbered layers, those that are cut.
  void require_linear_layers(const nlohmann::json& plan, std::size_t level) const {
    for (const OpId op : of_role(OpRole::kParameter)) {
      const TensorId tensor = graph_.outputs(op)[0];
      if (!split_of(tensor, level) || saved(tensor)->shape.size() < 2) continue;
      const std::string name(graph_.op_name(op));
      const std::string pattern = pattern_of(name.substr(0, name.rfind('.')));
      if (!is_of_numbered_layer(pattern)) continue;
      if (name.ends_with(".weight") && plan.contains(pattern)) continue;
      fail_input("level {} cuts parameter '{}', which is no linear layer's; expected linear layers",
                 level, name);
    }
  }

  const Graph& model_;
  Graph graph_;  // the step as it was divided
  const SavedPartition& partition_;
  Examples examples_;
};

void note_degrees(const Degrees& degrees, const SavedPartition& partition, const ExportNote& note) {
  note(fmt::format("for {} processes, one a GPU; which GPU is which rank is left to the program",
                   partition.devices.size()));
  if (degrees.tensor > 1) {
    note(
        "of tensor parallelism only the degree is said: what is cut beside linear layers is the "
        "program's own choice");
  }
}

}  // namespace

std::string write_megatron_degrees(const Graph& graph, const SavedPartition& partition,
                                   const ExportNote& note) {
  const Degrees degrees = DegreesFinder(graph, partition).find();
  if (degrees.stage > 0 && degrees.replicas > 1) {
    fail_input(
        "some levels divide examples alone and others stage {} of ZeRO; Megatron-LM's flags have "
        "one of them for all",
        degrees.stage);
  }
  std::string flags;
  if (degrees.tensor > 1) flags += fmt::format("--tensor-model-parallel-size {} ", degrees.tensor);
  if (degrees.stage == 1) flags += "--use-distributed-optimizer ";
  if (degrees.stage > 1) {
    flags += fmt::format(
        "--use-megatron-fsdp --data-parallel-sharding-strategy {} --use-distributed-optimizer "
        "--no-gradient-accumulation-fusion --ckpt-format fsdp_dtensor ",
        degrees.stage == 2 ? "optim_grads" : "optim_grads_params");
    note("Megatron-FSDP wants the variable CUDA_DEVICE_MAX_CONNECTIONS unset, or above 1");
  }
  note_degrees(degrees, partition, note);
  return fmt::format("{}--micro-batch-size {} --global-batch-size {}\n", flags,
                     degrees.batch_of_each(), degrees.batch);
}

std::string write_torchtitan_degrees(const Graph& graph, const SavedPartition& partition,
                                     const ExportNote& note) {
  const Degrees degrees = DegreesFinder(graph, partition).find();
  if (degrees.stage == 1) {
    fail_input(
        "the optimizer's state is in parts, and gradients and weights are not (ZeRO's stage 1); "
        "torchtitan has all of them in parts, or none");
  }
  note_degrees(degrees, partition, note);
  std::string text = fmt::format(
      "[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\n",
      degrees.replicas, degrees.shards, degrees.tensor);
  if (degrees.shards > 1) {
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        degrees.stage == 3 ? "always" : "never");
  }
  return text + fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\n",
                            degrees.batch_of_each(), degrees.batch);
}

std::string write_deepspeed_degrees(const Graph& graph, const SavedPartition& partition,
                                    int micro_batches, const ExportNote& note) {
  const Degrees degrees = DegreesFinder(graph, partition).find();
  if (degrees.stage > 0 && degrees.replicas > 1) {
    fail_input(
        "some levels divide examples alone and others stage {} of ZeRO; DeepSpeed's configuration "
        "has one stage for all",
        degrees.stage);
  }
  if (degrees.stage == 3 && degrees.tensor > 1) {
    fail_input(
        "layers are divided, and weights are in parts (ZeRO's stage 3); DeepSpeed divides layers "
        "with stages 0 to 2");
  }
  const int count = std::max(1, micro_batches);
  if (degrees.batch_of_each() % count != 0) {
    fail_input("{} micro-batches do not divide the {} examples of each process", count,
               degrees.batch_of_each());
  }
  DegreesJson json;
  json["train_batch_size"] = degrees.batch;
  json["train_micro_batch_size_per_gpu"] = degrees.batch_of_each() / count;
  json["gradient_accumulation_steps"] = count;
  json["zero_optimization"] = {{"stage", degrees.stage}};
  if (degrees.tensor > 1) json["tensor_parallel"] = {{"autotp_size", degrees.tensor}};
  note_degrees(degrees, partition, note);
  return laid_out(json, 1);
}

}  // namespace emplace

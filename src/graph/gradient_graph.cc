// Grows the training graph: a copy of the forward graph, then gradient ops, recomputed activations,
// sums and updates.
//
// Invariants: forward tensors keep their numbers, reserves follow them, then comes everything new,
// and ops are added in topological order. gradients_[t] is the sum of what was given for t so far;
// a sum is added as soon as its second term is there, and all terms are there before the op that
// produces t is turned back, because ops are turned back in reverse order (graph/training.cc). A
// new name is compared with those of all ops of both passes, so none is used twice. An activation
// that is to be computed again is copied when the first gradient op reads it, once, and the copy
// waits for the gradient that arrives there. Linear in ops and edges.
#include "graph/gradient_graph.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"

#include "graph/copy.h"
#include "graph/precision.h"
#include "graph/random_ops.h"

namespace emplace {
namespace {

struct UpdateRule {
  std::string_view type;
  std::vector<std::string_view> state;
  std::int64_t flops;  // for each weight
};

UpdateRule update_rule(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kMomentum:
      return {"MomentumUpdate", {"momentum"}, 4};
    case Optimizer::kAdam:
      return {"AdamUpdate", {"moment1", "moment2"}, 12};
    case Optimizer::kSgd:
      break;
  }
  return {"SgdUpdate", {}, 2};
}

}  // namespace

GradientGraph::GradientGraph(const Graph& forward, const TrainingOptions& options,
                             const std::vector<Reserve>& reserves)
    : forward_(forward),
      builder_(forward.name(), forward.source()),
      gradients_(forward.num_tensors(), kNoTensor),
      sums_(forward.num_ops(), 0),
      segment_of_(find_segments(forward, options.recompute)) {
  copy_forward(options, reserves);
  if (!segment_of_.empty()) {
    copies_.assign(types_.size(), kNoTensor);
    in_batch_.assign(forward.num_ops(), 0);
  }
}

void GradientGraph::copy_forward(const TrainingOptions& options,
                                 const std::vector<Reserve>& reserves) {
  for (TensorId tensor = 0; tensor < forward_.num_tensors(); ++tensor) {
    builder_.add_tensor(spec_of_tensor(forward_, tensor));
    const auto shape = forward_.shape(tensor);
    types_.push_back(
        {{shape.begin(), shape.end()}, forward_.dtype(tensor), forward_.bytes(tensor)});
  }
  if (!reserves.empty()) reserves_.assign(forward_.num_ops(), kNoTensor);
  for (const Reserve& reserve : reserves) {
    reserves_[reserve.op] = new_tensor(reserve.type);
    reserve_owner_.push_back(reserve.op);
  }
  if (options.colocate_gradients) colocation_.resize(forward_.num_ops());
  for (OpId op = 0; op < forward_.num_ops(); ++op) {
    OpSpec spec = spec_of_op(forward_, op);
    for (const OpId before : forward_.after(op)) spec.after.emplace_back(forward_.op_name(before));
    if (options.colocate_gradients && !forward_.is_source(op) && !forward_.is_view(op)) {
      if (spec.colocate.empty()) {
        spec.colocate = free_colocation(fmt::format("{}/gradients", forward_.op_name(op)));
      }
      colocation_[op] = spec.colocate;
    }
    const auto inputs = forward_.inputs(op);
    const auto outputs = forward_.outputs(op);
    spec.inputs.assign(inputs.begin(), inputs.end());
    spec.outputs.assign(outputs.begin(), outputs.end());
    if (reserve(op) != kNoTensor) {
      spec.outputs.push_back(reserve(op));
      if (spec.bytes_moved) *spec.bytes_moved += types_[reserve(op)].bytes;
    }
    builder_.add_op(spec);
  }
}

std::string GradientGraph::free_name(std::string name) const {
  while (builder_.has_op(name)) name += '+';
  return name;
}

std::string GradientGraph::free_colocation(std::string name) const {
  while (forward_.strings().find(name)) name += '+';
  return name;
}

TensorId GradientGraph::new_tensor(TensorType type) {
  type.bytes = tensor_bytes(type.shape, type.dtype);
  types_.push_back(std::move(type));
  return builder_.add_tensor({.shape = types_.back().shape, .dtype = types_.back().dtype});
}

void GradientGraph::add_op(OpSpec spec) {
  builder_.add_op(spec);
  if (segment_of_.empty()) return;
  for (const TensorId tensor : spec.outputs) {
    added_by_.resize(tensor + 1, kForwardTensor);
    added_by_[tensor] = static_cast<std::uint32_t>(added_names_.size());
  }
  added_names_.push_back(std::move(spec.name));
}

// Every tensor once.
Bytes GradientGraph::moved_bytes(const OpSpec& spec) const {
  Bytes sum = 0;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const auto end = spec.inputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(spec.inputs.begin(), end, spec.inputs[i]) != end) continue;
    sum = saturating_add(sum, types_[spec.inputs[i]].bytes);
  }
  for (const TensorId tensor : spec.outputs) sum = saturating_add(sum, types_[tensor].bytes);
  return sum;
}

void GradientGraph::give(TensorId tensor, TensorId gradient) {
  EMPLACE_CHECK(types_[tensor].shape == types_[gradient].shape);
  TensorId& sum = gradients_[tensor];
  if (sum == kNoTensor) {
    sum = gradient;
    return;
  }
  const OpId producer = forward_.producer(tensor);
  const std::uint32_t number = ++sums_[producer];
  const std::string_view name = forward_.op_name(producer);
  OpSpec spec{.name = free_name(number == 1 ? fmt::format("{}/grad/sum", name)
                                            : fmt::format("{}/grad/sum_{}", name, number)),
              .type = "Add",
              .inputs = {sum, gradient},
              .outputs = {new_tensor(types_[tensor])},
              .phase = Phase::kBackward,
              .flops = count_elements(types_[tensor].shape),
              .module = std::string(forward_.module(producer))};
  spec.bytes_moved = moved_bytes(spec);
  sum = spec.outputs[0];
  add_op(std::move(spec));
}

std::vector<TensorId> GradientGraph::add(OpId op, GradientOp given) {
  std::string name(forward_.op_name(op));
  name += "/grad";
  if (!given.label.empty()) name.append("/").append(given.label);
  OpSpec spec{.name = free_name(std::move(name)),
              .type = std::move(given.type),
              .inputs = std::move(given.inputs),
              .phase = Phase::kBackward,
              .flops = given.flops,
              .bytes_moved = 0,
              .temp_bytes = given.temp_bytes,
              .view = given.view,
              .module = std::string(forward_.module(op)),
              .attributes = std::move(given.attributes)};
  for (TensorType& type : given.outputs) spec.outputs.push_back(new_tensor(std::move(type)));
  // A view stays where the tensor is that it shows.
  if (!spec.view) {
    spec.bytes_moved = moved_bytes(spec);
    if (!colocation_.empty()) spec.colocate = colocation_[op];
    for (const StringId device : forward_.allowed_devices(op)) {
      spec.devices.emplace_back(forward_.strings().get(device));
    }
  }
  std::vector<TensorId> outputs = spec.outputs;
  add_op(std::move(spec));
  return outputs;
}

void GradientGraph::add_seed(TensorId tensor) {
  const OpId op = forward_.producer(tensor);
  give(tensor, add(op, {.type = "OnesLike",
                        .inputs = {tensor},
                        .outputs = {types_[tensor]},
                        .label = "seed"})[0]);
}

// 16 bits are too coarse to add small steps to: such a weight has a float32 master, to which its
// state belongs, and is rounded from it (Micikevicius et al. 2018, "Mixed Precision Training").
void GradientGraph::add_update(OpId parameter, Optimizer optimizer) {
  const std::string name(forward_.op_name(parameter));
  for (const TensorId tensor : forward_.outputs(parameter)) {
    if (gradients_[tensor] == kNoTensor) continue;
    const bool narrow = is_narrow(types_[tensor].dtype);
    UpdateRule rule = update_rule(optimizer);
    if (narrow) rule.state.emplace_back("master");
    const TensorType state_type =
        tensor_type(types_[tensor].shape, narrow ? DType::kFloat32 : types_[tensor].dtype);
    const std::string suffix =
        tensor == forward_.outputs(parameter)[0] ? "" : fmt::format("_{}", tensor);
    OpSpec update{.name = free_name(fmt::format("{}/update{}", name, suffix)),
                  .type = std::string(rule.type),
                  .inputs = {tensor, gradients_[tensor]},
                  .phase = Phase::kUpdate,
                  .flops = saturating_multiply(rule.flops, count_elements(types_[tensor].shape)),
                  .module = std::string(forward_.module(parameter))};
    // The state belongs with its parameter, as the update does.
    if (!rule.state.empty()) {
      update.colocate = std::string(forward_.colocate(parameter));
      if (update.colocate.empty()) update.colocate = free_colocation(update.name);
    }
    for (const std::string_view state : rule.state) {
      update.inputs.push_back(new_tensor(state_type));
      add_op({.name = free_name(fmt::format("{}/{}{}", name, state, suffix)),
              .type = "buffer",
              .outputs = {update.inputs.back()},
              .phase = Phase::kUpdate,
              .module = update.module,
              .colocate = update.colocate});
    }
    // All but the gradient is written again; the weight itself is not read where it has a master.
    const auto states = static_cast<std::int64_t>(rule.state.size());
    const Bytes written = saturating_multiply(states, state_type.bytes);
    update.bytes_moved = saturating_add(moved_bytes(update), written);
    if (!narrow) update.bytes_moved = saturating_add(*update.bytes_moved, types_[tensor].bytes);
    add_op(std::move(update));
  }
}

// Whether a gradient op of `op` reads a second computation of the tensor: one inside of the same
// segment. What chance made is kept, since it would come out differently.
bool GradientGraph::is_copied(OpId op, TensorId tensor) const {
  if (segment_of_.empty() || segment_of_[op] == kNoSegment) return false;
  const OpId producer = producer_of(tensor);
  if (forward_.is_source(producer) || segment_of_[producer] != segment_of_[op]) return false;
  const std::string_view type = forward_.type(producer);
  if (type == "Dropout" && tensor != forward_.outputs(producer)[0]) return false;
  return !is_random(type);
}

OpId GradientGraph::producer_of(TensorId tensor) const {
  return tensor < forward_.num_tensors() ? forward_.producer(tensor)
                                         : reserve_owner_[tensor - forward_.num_tensors()];
}

TensorId GradientGraph::kept(OpId op, TensorId tensor) {
  if (!is_copied(op, tensor)) return tensor;
  if (copies_[tensor] == kNoTensor) recompute(op, producer_of(tensor));
  return copies_[tensor];
}

// Adds copies of `wanted` and of all that it needs of the segment and that is not copied yet. They
// wait until the gradient that `op` turns back is there: earlier they would only take memory.
void GradientGraph::recompute(OpId op, OpId wanted) {
  std::vector<OpId> batch{wanted};
  in_batch_[wanted] = 1;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (const TensorId input : forward_.inputs(batch[i])) {
      if (!is_copied(op, input) || copies_[input] != kNoTensor) continue;
      const OpId producer = forward_.producer(input);
      if (in_batch_[producer] != 0) continue;
      in_batch_[producer] = 1;
      batch.push_back(producer);
    }
  }
  std::vector<std::string> triggers;
  for (const TensorId output : forward_.outputs(op)) {
    if (gradients_[output] == kNoTensor) continue;
    const std::string& name = added_names_[added_by_[gradients_[output]]];
    if (std::find(triggers.begin(), triggers.end(), name) == triggers.end()) {
      triggers.push_back(name);
    }
  }
  std::sort(batch.begin(), batch.end());
  const auto first_new = static_cast<TensorId>(types_.size());
  for (const OpId each : batch) {
    in_batch_[each] = 0;
    add_copy(op, each, first_new, triggers);
  }
}

void GradientGraph::add_copy(OpId op, OpId original, TensorId first_new,
                             const std::vector<std::string>& triggers) {
  OpSpec spec = spec_of_op(forward_, original);
  spec.name = free_name(fmt::format("{}/recompute", forward_.op_name(original)));
  spec.phase = Phase::kBackward;
  spec.persistent_bytes = 0;  // there already
  draw_as_original(spec.attributes, spec.type, forward_.op_name(original));
  if (!colocation_.empty() && !colocation_[original].empty()) {
    spec.colocate = colocation_[original];
  }
  bool follows = false;  // on a copy that waits already
  for (const TensorId input : forward_.inputs(original)) {
    spec.inputs.push_back(is_copied(op, input) ? copies_[input] : input);
    follows = follows || (spec.inputs.back() >= first_new && is_copied(op, input));
  }
  if (!follows) spec.after = triggers;
  const auto outputs = forward_.outputs(original);
  const auto copy_output = [&](TensorId output) {
    spec.outputs.push_back(copies_[output] = new_tensor(types_[output]));
  };
  if (forward_.type(original) == "Dropout" && outputs.size() > 1) {
    // The kept mask does again what it did before, as it does to a gradient.
    spec.type = "DropoutGrad";
    spec.inputs = {spec.inputs[0], outputs[1]};
    copy_output(outputs[0]);
  } else {
    for (const TensorId output : outputs) copy_output(output);
    if (reserve(original) != kNoTensor) copy_output(reserve(original));
  }
  add_op(std::move(spec));
}

}  // namespace emplace

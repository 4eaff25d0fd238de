// A copy of the graph in which some ops are several. Invariant: tensors_ maps every tensor of the
// old graph to one of the new that has the same value; ops keep their order, and whoever waited for
// an op that is gone waits for the last of what replaced it. Exact: the same formulas, with two
// sums over the batch as tensors of their own, and the gradient from two more; a mean of losses as
// two sums. Flops and bytes of new parts are set here; a measured time stays with the part that
// keeps the op's name, and is dropped for a Split, where none does. O(ops + edges, and gradients
// times losses).
#include "tensor/decompose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "graph/copy.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

namespace emplace {
namespace {

class Decomposer {
 public:
  explicit Decomposer(const Graph& graph)
      : graph_(graph), builder_(graph.name(), graph.source()), tensors_(graph.num_tensors()) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      trains_ = trains_ || graph.phase(op) == Phase::kBackward;
    }
  }

  Graph run() && {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (is_split(op)) {
        add_slices(op);
      } else if (uses_own_statistics(op)) {
        add_normalisation(op);
      } else if (graph_.type(op) == "BatchNormalizationGrad" && has_statistics(op)) {
        add_normalisation_gradient(op);
      } else if (is_weighted_mean(op)) {
        add_weighted_mean(op);
      } else if (const auto weight = weight_of_gradient(op)) {
        add_weighted_mean_gradient(op, *weight);
      } else {
        copy(op);
      }
    }
    return std::move(builder_).build();
  }

 private:
  bool is_split(OpId op) const {
    if (graph_.type(op) != "Split" || graph_.outputs(op).size() < 2) return false;
    const TensorId whole = graph_.inputs(op)[0];
    const std::int64_t axis = axis_of(op);
    if (!graph_.has_shape(whole) || axis < 0) return false;
    std::int64_t sum = 0;
    for (const TensorId part : graph_.outputs(op)) {
      if (graph_.shape(part).size() != graph_.shape(whole).size()) return false;
      sum += graph_.shape(part)[static_cast<std::size_t>(axis)];
    }
    return sum == graph_.shape(whole)[static_cast<std::size_t>(axis)];
  }

  // Of a Split, from the front; less than 0 where there is none such.
  std::int64_t axis_of(OpId op) const {
    const auto rank = static_cast<std::int64_t>(graph_.shape(graph_.inputs(op)[0]).size());
    const std::int64_t axis = graph_.attributes(op).integer("axis", 0);
    return axis >= rank ? -1 : axis < 0 ? axis + rank : axis;
  }

  // Beside what it normalises the op may put out running statistics, and in old versions of ONNX
  // the batch's own: two of each.
  bool uses_own_statistics(OpId op) const {
    const std::size_t outputs = graph_.outputs(op).size();
    return graph_.type(op) == "BatchNormalization" &&
           (outputs == 1 || outputs == 3 || outputs == 5) &&
           graph_.inputs(op).size() >= (outputs > 1 ? 5U : 3U) &&
           graph_.has_shape(graph_.inputs(op)[0]) &&
           is_told_from_statistics(graph_.inputs(op)[0]) &&
           (trains_ || outputs > 1 || graph_.attributes(op).integer("training_mode", 0) != 0);
  }

  // Two examples without an image have the shape of statistics.
  bool is_told_from_statistics(TensorId x) const {
    const auto shape = graph_.shape(x);
    return shape.size() > 2 || (shape.size() == 2 && shape[0] != 2);
  }

  // Inputs: dY, X, the scale.
  bool has_statistics(OpId op) const {
    return graph_.inputs(op).size() >= 3 && statistics_.contains(graph_.inputs(op)[1]);
  }

  // A mean of losses that count unequally: over labels with classes' weights, or without those that
  // are ignored. What it divides by is not known before all labels are seen.
  bool is_weighted_mean(OpId op) const {
    const std::string_view type = graph_.type(op);
    if (type != "SoftmaxCrossEntropyLoss" && type != "NegativeLogLikelihoodLoss") return false;
    const Attributes& attributes = graph_.attributes(op);
    return graph_.inputs(op).size() >= 2 && !graph_.outputs(op).empty() &&
           attributes.text("reduction", "mean") == "mean" &&
           attributes.find("mean_count") == nullptr && graph_.has_shape(graph_.inputs(op)[1]) &&
           (graph_.inputs(op).size() > 2 || attributes.find("ignore_index") != nullptr);
  }

  // A loss that was taken apart: what tells its gradient from those of others over the same labels.
  struct WeightedLoss {
    std::string_view type;
    TensorId labels;
    std::optional<TensorId> classes;  // their weights
    const AttributeValue* ignored;    // ignore_index, or nothing
    TensorId weight;                  // the sum, in the new graph
  };

  bool is_gradient_of(OpId op, const WeightedLoss& loss) const {
    const std::string_view type = graph_.type(op);
    if (!type.starts_with(loss.type) || type.substr(loss.type.size()) != "Grad") return false;
    const auto reads = [&](TensorId tensor) {
      return std::ranges::count(graph_.inputs(op), tensor) > 0;
    };
    const AttributeValue* ignored = graph_.attributes(op).find("ignore_index");
    const bool same = ignored == nullptr || loss.ignored == nullptr ? ignored == loss.ignored
                                                                    : *ignored == *loss.ignored;
    // Labels, weights and what is kept of the scores follow dY.
    const std::size_t plain = type.starts_with("Softmax") ? 3 : 2;
    const bool weighted = graph_.inputs(op).size() > plain;
    return same && reads(loss.labels) && weighted == loss.classes.has_value() &&
           (!weighted || reads(*loss.classes));
  }

  // The weights' sum, of the loss that the gradient is of.
  std::optional<TensorId> weight_of_gradient(OpId op) const {
    if (graph_.attributes(op).text("reduction", "mean") != "mean") return std::nullopt;
    for (const WeightedLoss& loss : weighted_losses_) {
      if (is_gradient_of(op, loss)) return loss.weight;
    }
    return std::nullopt;
  }

  std::vector<TensorId> inputs_of(OpId op) const {
    std::vector<TensorId> inputs;
    for (const TensorId tensor : graph_.inputs(op)) inputs.push_back(tensors_[tensor]);
    return inputs;
  }

  void wait(OpSpec& spec, OpId op) const {
    for (const OpId before : graph_.after(op)) {
      spec.after.push_back(last_name_.contains(before) ? last_name_.at(before)
                                                       : std::string(graph_.op_name(before)));
    }
  }

  TensorId add_output(TensorId tensor) {
    return tensors_[tensor] = builder_.add_tensor(spec_of_tensor(graph_, tensor));
  }

  void copy(OpId op) {
    OpSpec spec = spec_of_op(graph_, op);
    // By the batch's own statistics still, also where only this op of the graph is seen.
    if (trains_ && spec.type == "BatchNormalization") {
      spec.attributes.set("training_mode", std::int64_t{1});
    }
    wait(spec, op);
    spec.inputs = inputs_of(op);
    for (const TensorId tensor : graph_.outputs(op)) spec.outputs.push_back(add_output(tensor));
    builder_.add_op(spec);
  }

  // A part of the op: named after it, with nothing that belongs to the whole.
  OpSpec part(OpId op, std::string_view suffix, std::string_view type) {
    OpSpec spec = spec_of_op(graph_, op);
    spec.name = free_name(fmt::format("{}/{}", spec.name, suffix));
    spec.type = type;
    spec.time_us.clear();
    spec.flops = 0;
    spec.bytes_moved = 0;
    spec.temp_bytes = 0;
    spec.persistent_bytes = 0;
    spec.attributes = {};
    spec.view = false;
    wait(spec, op);
    return spec;
  }

  std::string free_name(std::string name) const {
    while (graph_.find_op(name)) name += '+';
    return name;
  }

  void add_slices(OpId op) {
    const TensorId whole = graph_.inputs(op)[0];
    const std::int64_t axis = axis_of(op);
    std::int64_t begin = 0;
    const auto outputs = graph_.outputs(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::int64_t end = begin + graph_.shape(outputs[i])[static_cast<std::size_t>(axis)];
      OpSpec spec = part(op, std::to_string(i), "Slice");
      spec.view = graph_.is_view(op);
      if (!spec.view) spec.bytes_moved = 2 * graph_.bytes(outputs[i]);
      spec.inputs = {tensors_[whole]};
      spec.outputs = {add_output(outputs[i])};
      spec.attributes = {{"starts", std::vector<std::int64_t>{begin}},
                         {"ends", std::vector<std::int64_t>{end}},
                         {"axes", std::vector<std::int64_t>{axis}}};
      begin = end;
      last_name_[op] = spec.name;
      builder_.add_op(spec);
    }
  }

  std::int64_t channels(TensorId x) const { return graph_.shape(x)[1]; }
  std::int64_t per_channel(TensorId x) const {
    return channels(x) == 0 ? 0 : count_elements(graph_.shape(x)) / channels(x);
  }
  TensorId add_pair(TensorId x) {
    return builder_.add_tensor({.shape = {2, channels(x)}, .dtype = graph_.dtype(x)});
  }

  void add_normalisation(OpId op) {
    const TensorId x = graph_.inputs(op)[0];
    const auto inputs = inputs_of(op);
    const double epsilon = graph_.attributes(op).real("epsilon", 1e-5);
    OpSpec sums = part(op, "statistics", "BatchNormStatistics");
    sums.inputs = {inputs[0]};
    sums.outputs = {statistics_[x] = add_pair(x)};
    sums.flops = saturating_multiply(3, count_elements(graph_.shape(x)));
    sums.bytes_moved = graph_.bytes(x);
    sums.attributes = {{"count", per_channel(x)}};
    builder_.add_op(sums);

    OpSpec apply = spec_of_op(graph_, op);
    apply.type = "BatchNormApply";
    apply.inputs = {inputs[0], inputs[1], inputs[2], statistics_[x]};
    apply.outputs = {add_output(graph_.outputs(op)[0])};
    apply.attributes = {{"epsilon", epsilon}};
    builder_.add_op(apply);
    if (graph_.outputs(op).size() > 1) {
      add_running(op, "running", 1, graph_.attributes(op).real("momentum", 0.9));
    }
    if (graph_.outputs(op).size() > 3) add_running(op, "saved", 3, 0);
  }

  // Mean and variance by channel: the old ones, in a share of `momentum`, and the batch's.
  void add_running(OpId op, std::string_view name, std::size_t first, double momentum) {
    const auto inputs = inputs_of(op);
    const auto outputs = graph_.outputs(op);
    OpSpec running = part(op, name, "BatchNormRunning");
    running.inputs = {statistics_.at(graph_.inputs(op)[0]), inputs[3], inputs[4]};
    running.outputs = {add_output(outputs[first]), add_output(outputs[first + 1])};
    running.flops = saturating_multiply(8, channels(graph_.inputs(op)[0]));
    running.bytes_moved = saturating_multiply(6, graph_.bytes(outputs[first]));
    running.attributes = {{"momentum", momentum}};
    // PyTorch's running variance is that of a sample.
    if (first == 1 && graph_.attributes(op).integer("unbiased", 0) != 0) {
      running.attributes.set("count", per_channel(graph_.inputs(op)[0]));
    }
    builder_.add_op(running);
  }

  // The sum of the losses, the sum of the labels' weights, and one divided by the other.
  void add_weighted_mean(OpId op) {
    const auto inputs = inputs_of(op);
    const auto outputs = graph_.outputs(op);
    const TensorSpec scalar = spec_of_tensor(graph_, outputs[0]);
    OpSpec weigh = part(op, "weight", "LossWeight");
    weigh.inputs = {inputs.begin() + 1, inputs.end()};
    const TensorId weight = builder_.add_tensor(scalar);
    weigh.outputs = {weight};
    weigh.flops = saturating_multiply(2, count_elements(graph_.shape(graph_.inputs(op)[1])));
    weigh.bytes_moved = graph_.bytes(graph_.inputs(op)[1]);
    weigh.attributes = graph_.attributes(op);
    builder_.add_op(weigh);
    const auto given = graph_.inputs(op);
    weighted_losses_.push_back({graph_.type(op), given[1],
                                given.size() > 2 ? std::optional(given[2]) : std::nullopt,
                                graph_.attributes(op).find("ignore_index"), weight});

    OpSpec sum = spec_of_op(graph_, op);
    sum.attributes.set("reduction", "sum");
    wait(sum, op);
    sum.inputs = inputs;
    sum.outputs = {builder_.add_tensor(scalar)};
    for (std::size_t i = 1; i < outputs.size(); ++i) sum.outputs.push_back(add_output(outputs[i]));
    const TensorId total = sum.outputs[0];
    builder_.add_op(sum);

    OpSpec mean = part(op, "mean", "Div");
    mean.flops = 1;
    mean.inputs = {total, weight};
    mean.outputs = {add_output(outputs[0])};
    last_name_[op] = mean.name;
    builder_.add_op(mean);
  }

  // That of the sum, from the mean's gradient divided by the sum of weights.
  void add_weighted_mean_gradient(OpId op, TensorId weight) {
    const auto inputs = inputs_of(op);
    OpSpec share = part(op, "share", "Div");
    share.flops = 1;
    share.inputs = {inputs[0], weight};
    share.outputs = {builder_.add_tensor(spec_of_tensor(graph_, graph_.inputs(op)[0]))};
    builder_.add_op(share);
    OpSpec gradient = spec_of_op(graph_, op);
    gradient.attributes.set("reduction", "sum");
    wait(gradient, op);
    gradient.inputs = inputs;
    gradient.inputs[0] = share.outputs[0];
    for (const TensorId tensor : graph_.outputs(op)) gradient.outputs.push_back(add_output(tensor));
    builder_.add_op(gradient);
  }

  // Which of the inputs' gradients the op puts out.
  std::vector<std::int64_t> wanted(OpId op) const {
    const auto list = graph_.attributes(op).integers("wanted");
    if (!list.empty()) return {list.begin(), list.end()};
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < graph_.outputs(op).size(); ++i) {
      all.push_back(static_cast<std::int64_t>(i));
    }
    return all;
  }

  void add_normalisation_gradient(OpId op) {
    const auto inputs = inputs_of(op);
    const TensorId x = graph_.inputs(op)[1];
    const TensorId statistics = statistics_.at(x);
    const std::int64_t elements = count_elements(graph_.shape(x));
    const double epsilon = graph_.attributes(op).real("epsilon", 1e-5);
    OpSpec sums = part(op, "sums", "BatchNormGradStatistics");
    const TensorId pair = add_pair(x);
    sums.inputs = {inputs[0], inputs[1], statistics};
    sums.outputs = {pair};
    sums.flops = saturating_multiply(5, elements);
    sums.bytes_moved = saturating_multiply(2, graph_.bytes(x));
    sums.attributes = {{"epsilon", epsilon}};
    builder_.add_op(sums);
    last_name_[op] = sums.name;

    const auto outputs = graph_.outputs(op);
    const std::vector<std::int64_t> which = wanted(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (which[i] == 0) {
        OpSpec apply = spec_of_op(graph_, op);
        apply.type = "BatchNormGradApply";
        apply.inputs = {inputs[0], inputs[1], inputs[2], statistics, pair};
        apply.outputs = {add_output(outputs[i])};
        apply.attributes = {{"epsilon", epsilon}, {"count", per_channel(x)}};
        last_name_[op] = apply.name;
        builder_.add_op(apply);
      } else {
        // The sums are first the bias's gradient, then the scale's.
        add_row(op, pair, which[i] == 2 ? 0 : 1, outputs[i]);
      }
    }
  }

  void add_row(OpId op, TensorId pair, std::int64_t row, TensorId output) {
    const std::string_view name = row == 0 ? "bias" : "scale";
    OpSpec slice = part(op, fmt::format("{}_row", name), "Slice");
    const TensorId flat =
        builder_.add_tensor({.shape = {1, graph_.shape(output)[0]}, .dtype = graph_.dtype(output)});
    slice.view = true;
    slice.inputs = {pair};
    slice.outputs = {flat};
    slice.attributes = {{"starts", std::vector<std::int64_t>{row}},
                        {"ends", std::vector<std::int64_t>{row + 1}},
                        {"axes", std::vector<std::int64_t>{0}}};
    builder_.add_op(slice);
    OpSpec reshape = part(op, name, "Reshape");
    reshape.view = true;
    reshape.inputs = {flat};
    reshape.outputs = {add_output(output)};
    builder_.add_op(reshape);
  }

  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<TensorId> tensors_;            // old to new
  std::map<TensorId, TensorId> statistics_;  // of a tensor that is normalised
  // Of a loss's labels and its type: the sum of their weights.
  std::vector<WeightedLoss> weighted_losses_;
  std::map<OpId, std::string> last_name_;  // of ops that are no longer there
  bool trains_ = false;
};

}  // namespace

Graph decompose(const Graph& graph) {
  return Decomposer(graph).run();
}

}  // namespace emplace

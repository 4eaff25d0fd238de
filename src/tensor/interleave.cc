// A copy of the graph in which the set's tensors have their new shapes: products over them become
// Einstein sums, Slices of a part are Slices of the new dimension, joined parts get it, and
// whatever goes by the number of a dimension follows. Invariant: every other op is as it was.
// O(ops).
#include "tensor/interleave.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "graph/copy.h"
#include "graph/fan_in.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

#include "tensor/twofold.h"

namespace emplace {
namespace {

Shape shape_in(const Graph& graph, TensorId tensor) {
  return {graph.shape(tensor).begin(), graph.shape(tensor).end()};
}

Shape twofold_shape(Shape shape, const Twofold& of) {
  shape[of.dim] = of.extent;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), of.parts);
  return shape;
}

class Rewriter {
 public:
  Rewriter(const Graph& graph, const TwofoldSet& set)
      : graph_(graph), set_(set), builder_(graph.name(), graph.source()) {}

  Graph run() && {
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      TensorSpec spec = spec_of_tensor(graph_, tensor);
      if (const Twofold* of = find(tensor)) spec.shape = twofold_shape(spec.shape, *of);
      builder_.add_tensor(spec);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) rewrite(op);
    return std::move(builder_).build();
  }

 private:
  const Twofold* find(TensorId tensor) const {
    const auto found = set_.find(tensor);
    return found == set_.end() ? nullptr : &found->second;
  }

  OpSpec copy_of(OpId op) const {
    OpSpec spec = spec_of_op(graph_, op);
    spec.inputs.assign(graph_.inputs(op).begin(), graph_.inputs(op).end());
    spec.outputs.assign(graph_.outputs(op).begin(), graph_.outputs(op).end());
    for (const OpId before : graph_.after(op)) spec.after.emplace_back(graph_.op_name(before));
    return spec;
  }

  std::string free_name(std::string name) const {
    while (graph_.find_op(name) || builder_.has_op(name)) name += '+';
    return name;
  }

  // A view of the op at hand, which makes `output`.
  void add_view(const OpSpec& of, std::string_view suffix, TensorId input, TensorId output) {
    builder_.add_op({.name = free_name(fmt::format("{}/{}", of.name, suffix)),
                     .type = "Reshape",
                     .inputs = {input},
                     .outputs = {output},
                     .phase = of.phase,
                     .view = true,
                     .module = of.module});
  }

  TensorId add_tensor(Shape shape, TensorId like) {
    return builder_.add_tensor({.shape = std::move(shape), .dtype = graph_.dtype(like)});
  }

  void rewrite(OpId op) {
    OpSpec spec = copy_of(op);
    const auto inputs = graph_.inputs(op);
    const auto outputs = graph_.outputs(op);
    const bool reads =
        std::ranges::any_of(inputs, [&](TensorId tensor) { return find(tensor) != nullptr; });
    const bool writes =
        std::ranges::any_of(outputs, [&](TensorId tensor) { return find(tensor) != nullptr; });
    if (writes && graph_.role(op) == OpRole::kParameter) keep_fan_in(spec);
    if (reads || writes) {
      if (const auto letters = letters_of_product(graph_, op)) {
        return rewrite_product(std::move(spec), *letters);
      }
    }
    if (spec.type == "Slice" && reads) return rewrite_slice(op, std::move(spec));
    if (spec.type == "Concat" && writes) return rewrite_concat(std::move(spec));
    if (spec.type == "ReduceSum" && reads) shift_axes(spec, "axes", *find(inputs[0]));
    if (spec.type == "Transpose" && reads) reorder(op, spec, *find(inputs[0]));
    // What their attributes say of dimensions does not hold any more.
    if (is_reshape(spec.type) && (reads || writes)) {
      spec.type = "Reshape";
      spec.attributes = {};
    }
    builder_.add_op(spec);
  }

  // It begins as it would in its old shape.
  void keep_fan_in(OpSpec& spec) const {
    const TensorId tensor = spec.outputs[0];
    const Shape shape = shape_in(graph_, tensor);
    const std::int64_t width =
        shape.size() < 2 ? 0 : fan_in(graph_, first_reader(graph_, tensor), shape);
    spec.attributes.set(kFanInAttribute, width);
  }

  static std::int64_t shifted(std::int64_t axis, const Twofold& of) {
    return axis > static_cast<std::int64_t>(of.dim) ? axis + 1 : axis;
  }

  static void shift_axes(OpSpec& spec, std::string_view name, const Twofold& of) {
    std::vector<std::int64_t> axes;
    for (const std::int64_t axis : spec.attributes.integers(name))
      axes.push_back(shifted(axis, of));
    spec.attributes.set(std::string(name), std::move(axes));
  }

  void reorder(OpId op, OpSpec& spec, const Twofold& of) const {
    std::vector<std::int64_t> order;
    for (const std::int64_t from : order_of_transpose(graph_, op)) {
      order.push_back(shifted(from, of));
      if (from == static_cast<std::int64_t>(of.dim)) order.push_back(from + 1);
    }
    spec.attributes.set("perm", std::move(order));
  }

  // The letter of the dimension that is two becomes two letters.
  std::string letters_of(TensorId tensor, std::string letters) const {
    if (const Twofold* of = find(tensor)) letters.insert(of->dim, 1, 'p');
    return letters;
  }

  void rewrite_product(OpSpec spec, const Letters& letters) {
    const TensorId output = spec.outputs[0];
    const std::string equation =
        fmt::format("{},{}->{}", letters_of(spec.inputs[0], letters[0]),
                    letters_of(spec.inputs[1], letters[1]), letters_of(output, letters.back()));
    spec.type = "Einsum";
    spec.attributes = {{"equation", equation}};
    if (spec.inputs.size() == 2) {
      builder_.add_op(spec);
      return;
    }
    const TensorId bias = spec.inputs[2];
    spec.inputs.pop_back();
    Shape shape = shape_in(graph_, output);
    if (const Twofold* of = find(output)) shape = twofold_shape(std::move(shape), *of);
    spec.outputs = {add_tensor(std::move(shape), output)};
    builder_.add_op(spec);
    builder_.add_op({.name = free_name(spec.name + "/bias"),
                     .type = "Add",
                     .inputs = {spec.outputs[0], bias},
                     .outputs = {output},
                     .phase = spec.phase,
                     .module = spec.module});
  }

  void rewrite_slice(OpId op, OpSpec spec) {
    const Twofold& of = *find(spec.inputs[0]);
    const OneRange range = *range_of_slice(graph_, op);
    if (range.axis != of.dim) {
      shift_axes(spec, "axes", of);
      builder_.add_op(spec);
      return;
    }
    const TensorId output = spec.outputs[0];
    Shape shape = shape_in(graph_, output);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), 1);
    const std::int64_t part = range.start / of.extent;
    spec.attributes.set("starts", std::vector<std::int64_t>{part});
    spec.attributes.set("ends", std::vector<std::int64_t>{part + 1});
    spec.outputs = {add_tensor(std::move(shape), output)};
    builder_.add_op(spec);
    add_view(spec, "part", spec.outputs[0], output);
  }

  void rewrite_concat(OpSpec spec) {
    const Twofold& of = *find(spec.outputs[0]);
    const std::int64_t axis = spec.attributes.integer("axis", 0);
    if (axis != static_cast<std::int64_t>(of.dim)) {
      spec.attributes.set("axis", shifted(axis, of));
      builder_.add_op(spec);
      return;
    }
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      Shape shape = shape_in(graph_, spec.inputs[i]);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(of.dim), 1);
      const TensorId part = add_tensor(std::move(shape), spec.inputs[i]);
      add_view(spec, std::to_string(i), spec.inputs[i], part);
      spec.inputs[i] = part;
    }
    builder_.add_op(spec);
  }

  const Graph& graph_;
  const TwofoldSet& set_;
  GraphBuilder builder_;
};

}  // namespace

Graph interleave(const Graph& graph) {
  const TwofoldSet set = twofold_tensors(graph);
  return set.empty() ? graph : Rewriter(graph, set).run();
}

}  // namespace emplace

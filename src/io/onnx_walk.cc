// One pass in topological order; when a node is visited, all that it reads has been.
//
// What is known of a value only grows: first what the file declares, then what follows from
// contents (shape arithmetic is folded, onnx_fold.h), then what libonnx infers for this one node
// from its inputs (onnx_shapes.h). A node whose types or cost stay open is reported with the
// reason; `root` tells those that are the cause from those that only depend on one.
//
// Bodies are walked once, in a scope inside the one around them. A Loop or Scan costs its body
// times its rounds, which must be known; an If costs the branch that is taken or, where that is
// open, the larger of the two branches' figures, an upper bound. The temporary memory of a body is
// the most that one of its nodes holds, a lower bound. Linear in the nodes, bodies included.
#include "io/onnx_walk.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/limits.h"

#include "io/onnx_fold.h"
#include "io/onnx_node.h"
#include "io/onnx_shapes.h"

namespace emplace {
namespace {

using onnx::GraphProto;
using onnx::TypeProto;
using Values = std::vector<const OnnxValue*>;

std::optional<OpCost> cost_of_node(const CostRow& row, const onnx::NodeProto& node,
                                   const Values& inputs, const Values& outputs) {
  return count_cost(row, node.op_type(), attributes_of(node), {inputs.begin(), inputs.end()},
                    {outputs.begin(), outputs.end()});
}

Bytes sum_bytes(const Values& values) {
  Bytes sum = 0;
  for (const OnnxValue* value : values) {
    if (value != nullptr && value->known) sum = saturating_add(sum, value->bytes);
  }
  return sum;
}

void enter_initializers(const GraphProto& graph, OnnxScope& scope) {
  for (const auto& tensor : graph.initializer()) {
    OnnxValue& value = scope.own(tensor.name());
    value.type = initializer_type(tensor);
    value.data = parse_small_tensor(tensor);
    value.settle();
  }
  for (const auto& sparse : graph.sparse_initializer()) {
    OnnxValue& value = scope.own(sparse.values().name());
    value.type = tensor_type_proto(sparse.values().data_type(),
                                   {sparse.dims().begin(), sparse.dims().end()});
    check_elem_type(value.type, fmt::format("initializer '{}'", sparse.values().name()));
    value.settle();
  }
}

// A type with an axis of `length` put in.
TypeProto stacked(const TypeProto& type, std::int64_t length, std::int64_t axis) {
  TypeProto result;
  if (!is_complete(type)) return result;
  std::vector<std::int64_t> shape;
  for (const auto& dim : type.tensor_type().shape().dim()) shape.push_back(dim.dim_value());
  const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return result;
  shape.insert(shape.begin() + axis, length);
  return tensor_type_proto(type.tensor_type().elem_type(), shape);
}

bool same_type(const TypeProto& a, const TypeProto& b) {
  return describe_type(a) == describe_type(b);
}

TypeProto known_type(const OnnxValue* value) {
  return value == nullptr ? TypeProto() : value->type;
}

void merge_types(const std::vector<TypeProto>& types, const std::vector<OnnxValue*>& values) {
  for (std::size_t i = 0; i < std::min(types.size(), values.size()); ++i) {
    if (values[i] != nullptr) merge_type(types[i], values[i]->type);
  }
}

// Completes the types of a node's outputs: from its contents, where it is arithmetic on shapes, and
// by inference.
void find_types(const OnnxNode& node, const Values& inputs,
                const std::vector<OnnxValue*>& outputs) {
  const onnx::NodeProto& proto = node.proto;
  if (!outputs.empty() && outputs[0] != nullptr) {
    OnnxValue& first = *outputs[0];
    first.data = fold_node(proto, inputs);
    if (first.data)
      merge_types({tensor_type_proto(first.data->elem_type, first.data->dims)}, outputs);
    const auto* value = proto.op_type() == "Constant" ? find_attribute(proto, "value") : nullptr;
    if (value != nullptr) {
      const onnx::TensorProto& tensor = value->t();
      merge_types(
          {tensor_type_proto(tensor.data_type(), {tensor.dims().begin(), tensor.dims().end()})},
          outputs);
      check_elem_type(first.type, node_label(proto));
    }
  }
  const bool complete = std::all_of(outputs.begin(), outputs.end(), [](const OnnxValue* value) {
    return value == nullptr || is_complete(value->type);
  });
  if (!complete) merge_types(infer_node(node, inputs), outputs);
}

// A sequence, an optional or a map is as large as what it was made of.
void settle(OnnxValue* value, const Values& inputs, bool inputs_known) {
  if (value == nullptr) return;
  value->settle();
  const auto kind = value->type.value_case();
  const bool no_tensor = kind != TypeProto::VALUE_NOT_SET && kind != TypeProto::kTensorType;
  if (!value->known && no_tensor && inputs_known) value->settle_as_bytes(sum_bytes(inputs));
}

// The outputs that are not known and matter, in words; others that are not known are taken out of
// `outputs`. The first matters even when it is not used, since costs are counted from it.
std::string find_open_outputs(const onnx::NodeProto& node,
                              const std::unordered_set<std::string>& used, Values& outputs) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr || outputs[i]->known) continue;
    const std::string& name = node.output(static_cast<int>(i));
    if (i == 0 || used.contains(name)) {
      open.push_back(fmt::format("output '{}' is {}", name, describe_type(outputs[i]->type)));
    }
    outputs[i] = nullptr;
  }
  return fmt::format("{}", fmt::join(open, ", "));
}

class DepthCount {
 public:
  explicit DepthCount(int& depth) : depth_(depth) { ++depth_; }
  ~DepthCount() { --depth_; }
  DepthCount(const DepthCount&) = delete;
  DepthCount& operator=(const DepthCount&) = delete;

 private:
  int& depth_;
};

}  // namespace

struct OnnxWalk::Frame {
  OnnxScope& scope;
  std::unordered_map<std::string, const TypeProto*> declared;  // what the file says of its values
  std::unordered_set<std::string> used;
};

struct OnnxWalk::Body {
  std::vector<TypeProto> outputs = {};
  OpCost cost = {};
  std::string unknown = {};

  void repeat(std::int64_t times) {
    cost.flops = saturating_multiply(cost.flops, times);
    cost.bytes_moved = saturating_multiply(cost.bytes_moved, times);
  }
};

TypeProto initializer_type(const onnx::TensorProto& tensor) {
  const std::string what = fmt::format("initializer '{}'", tensor.name());
  if (tensor.name().empty()) fail_input("an initializer has no name");
  for (const std::int64_t dim : tensor.dims()) {
    if (dim < 0) fail_input("{}: dims: {} is negative", what, dim);
  }
  if (onnx_dtype(tensor.data_type()) == DType::kUnknown) {
    fail_input("{}: data_type: unknown element type {}", what, tensor.data_type());
  }
  return tensor_type_proto(tensor.data_type(), {tensor.dims().begin(), tensor.dims().end()});
}

void OnnxWalk::walk(GraphProto& graph, const Opsets& opsets, OnnxScope& scope,
                    const OnnxScope* outer, const Visit& visit) {
  const std::vector<OnnxNode> nodes =
      flattener_.flatten(graph, opsets, [outer](const std::string& name) {
        return outer != nullptr && outer->find(name) != nullptr;
      });
  Frame frame{.scope = scope, .declared = {}, .used = {}};
  const auto declare = [&](const auto& values) {
    for (const auto& value : values) {
      check_elem_type(value.type(), fmt::format("value '{}'", value.name()));
      frame.declared[value.name()] = &value.type();
    }
  };
  declare(graph.output());
  declare(graph.value_info());
  for (const auto& value : graph.input()) {
    check_elem_type(value.type(), fmt::format("input '{}'", value.name()));
    OnnxValue& own = scope.own(value.name());
    merge_type(value.type(), own.type);
    own.settle();
  }
  // After the inputs, since an initializer may be the default of one, and then is what counts.
  enter_initializers(graph, scope);
  for (const auto& value : graph.output()) frame.used.insert(value.name());
  for (const OnnxNode& node : nodes) {
    for (std::string& name : values_read(node.proto)) frame.used.insert(std::move(name));
  }
  for (const OnnxNode& node : nodes) visit_node(node, frame, visit);
}

OnnxWalk::Body OnnxWalk::run_control_flow(const OnnxNode& node, const OnnxScope& scope,
                                          const Values& inputs) {
  const std::string& type = node.proto.op_type();
  if (type == "If") return run_if(node, scope, inputs);
  if (type == "Loop") return run_loop(node, scope, inputs);
  if (type == "Scan") return run_scan(node, scope, inputs);
  return {.unknown = "the length of its sequence is not known"};
}

void OnnxWalk::visit_node(const OnnxNode& node, Frame& frame, const Visit& visit) {
  const onnx::NodeProto& proto = node.proto;
  Values inputs;
  for (const std::string& name : proto.input()) {
    inputs.push_back(name.empty() ? nullptr : frame.scope.find(name));
  }
  const bool inputs_known = std::all_of(inputs.begin(), inputs.end(), [](const OnnxValue* value) {
    return value == nullptr || value->known;
  });
  std::vector<OnnxValue*> made;
  for (const std::string& name : proto.output()) {
    made.push_back(name.empty() ? nullptr : &frame.scope.own(name));
    const auto declared = frame.declared.find(name);
    if (made.back() != nullptr && declared != frame.declared.end()) {
      made.back()->type = *declared->second;
    }
  }
  const CostRow* row = find_cost_row(proto.domain(), proto.op_type());
  const bool has_body = row != nullptr && row->rule == CostRule::kBody;
  Body body;
  if (has_body) {
    body = run_control_flow(node, frame.scope, inputs);
    merge_types(body.outputs, made);
  } else {
    find_types(node, inputs, made);
  }
  for (OnnxValue* value : made) settle(value, inputs, inputs_known);

  const Values outputs(made.begin(), made.end());
  VisitedNode visited{.node = node, .inputs = inputs, .outputs = outputs};
  Values counted = outputs;
  const std::string open = find_open_outputs(proto, frame.used, counted);
  if (row == nullptr) {
    visited.unknown = "there is no cost rule for this operator";
  } else if (!body.unknown.empty()) {
    visited.unknown = body.unknown;
  } else if (!inputs_known) {
    visited.unknown = "an input is not known";
    visited.root = false;
  } else if (!open.empty()) {
    visited.unknown = fmt::format("its shapes are not known: {}", open);
  } else if (has_body) {
    visited.cost = body.cost;
  } else if (const auto cost = cost_of_node(*row, proto, inputs, counted)) {
    visited.cost = *cost;
  } else {
    visited.unknown = "its inputs do not have the shapes that the operator takes";
  }
  visit(visited);
}

OnnxWalk::Body OnnxWalk::run_body(const OnnxNode& node, const std::string& attribute,
                                  const OnnxScope& outer, const std::vector<TypeProto>& inputs) {
  const auto* found = find_attribute(node.proto, attribute);
  if (found == nullptr || !found->has_g()) {
    fail_input("{}: attribute '{}': expected a graph", node_label(node.proto), attribute);
  }
  // A function may call itself from a body in it, which inlining does not see.
  if (depth_ == limits::kFunctionDepth) {
    fail_input("{}: bodies and functions are more than {} deep, one inside the other",
               node_label(node.proto), limits::kFunctionDepth);
  }
  const DepthCount deeper(depth_);
  GraphProto graph = found->g();
  OnnxScope scope(&outer);
  for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i) {
    scope.own(graph.input(i).name()).type = inputs[static_cast<std::size_t>(i)];
  }
  Body body;
  std::vector<std::string> reasons;
  walk(graph, *node.opsets, scope, &outer, [&](const VisitedNode& visited) {
    if (!visited.unknown.empty()) {
      if (visited.root) {
        reasons.push_back(fmt::format("in its body, {} ({}): {}", node_label(visited.node.proto),
                                      operator_name(visited.node.proto), visited.unknown));
      }
      return;
    }
    const OpCost& cost = visited.cost;
    body.cost.flops = saturating_add(body.cost.flops, cost.flops);
    body.cost.bytes_moved = saturating_add(body.cost.bytes_moved, cost.bytes_moved);
    body.cost.persistent_bytes = saturating_add(body.cost.persistent_bytes, cost.persistent_bytes);
    const Bytes held = saturating_add(sum_bytes(visited.outputs), cost.temp_bytes);
    body.cost.temp_bytes = std::max(body.cost.temp_bytes, held);
  });
  for (const auto& tensor : graph.initializer()) {
    body.cost.persistent_bytes =
        saturating_add(body.cost.persistent_bytes, scope.own(tensor.name()).bytes);
  }
  for (const auto& value : graph.output())
    body.outputs.push_back(known_type(scope.find(value.name())));
  body.unknown = fmt::format("{}", fmt::join(reasons, "; "));
  return body;
}

// The branch that its condition takes, or, where that is not known, the dearer one.
OnnxWalk::Body OnnxWalk::run_if(const OnnxNode& node, const OnnxScope& scope,
                                const Values& inputs) {
  const OnnxValue* condition = inputs.empty() ? nullptr : inputs[0];
  if (condition != nullptr && condition->data && condition->data->values.size() == 1) {
    return run_body(node, condition->data->values[0] != 0 ? "then_branch" : "else_branch", scope,
                    {});
  }
  Body yes = run_body(node, "then_branch", scope, {});
  const Body no = run_body(node, "else_branch", scope, {});
  yes.cost.flops = std::max(yes.cost.flops, no.cost.flops);
  yes.cost.bytes_moved = std::max(yes.cost.bytes_moved, no.cost.bytes_moved);
  yes.cost.temp_bytes = std::max(yes.cost.temp_bytes, no.cost.temp_bytes);
  yes.cost.persistent_bytes = saturating_add(yes.cost.persistent_bytes, no.cost.persistent_bytes);
  if (yes.unknown.empty()) yes.unknown = no.unknown;
  yes.outputs.resize(std::min(yes.outputs.size(), no.outputs.size()));
  for (std::size_t i = 0; i < yes.outputs.size(); ++i) {
    if (!same_type(yes.outputs[i], no.outputs[i])) yes.outputs[i].Clear();
  }
  return yes;
}

// Inputs: trip count, condition, what is carried; the body's: round, condition, what is carried;
// the body's outputs: condition, what is carried, what each round adds a slice to.
OnnxWalk::Body OnnxWalk::run_loop(const OnnxNode& node, const OnnxScope& scope,
                                  const Values& inputs) {
  std::vector<TypeProto> given = {tensor_type_proto(onnx::TensorProto::INT64, {}),
                                  tensor_type_proto(onnx::TensorProto::BOOL, {})};
  for (std::size_t i = 2; i < inputs.size(); ++i) given.push_back(known_type(inputs[i]));
  Body body = run_body(node, "body", scope, given);
  const OnnxValue* count = inputs.empty() ? nullptr : inputs[0];
  const bool counted = count != nullptr && count->data && count->data->values.size() == 1;
  const std::int64_t rounds = counted ? std::max<std::int64_t>(count->data->integer(0), 0) : 0;
  std::vector<TypeProto> outputs;
  for (std::size_t i = 1; i < body.outputs.size(); ++i) {
    const TypeProto& type = body.outputs[i];
    if (i + 1 < given.size()) {
      // What changes its shape from round to round has a last shape that is not known here.
      outputs.push_back(same_type(type, given[i + 1]) ? type : TypeProto());
    } else {
      outputs.push_back(counted ? stacked(type, rounds, 0) : TypeProto());
    }
  }
  body.outputs = std::move(outputs);
  if (!counted && body.unknown.empty()) body.unknown = "its trip count is not a constant";
  body.repeat(rounds);
  return body;
}

// Inputs: states, then sequences to go through; outputs: states, then sequences put together.
OnnxWalk::Body OnnxWalk::run_scan(const OnnxNode& node, const OnnxScope& scope,
                                  const Values& inputs) {
  const std::int64_t sequences = int_attribute(node.proto, "num_scan_inputs", 0);
  const auto all = static_cast<std::int64_t>(inputs.size());
  const auto opset = node.opsets->find("");
  if (opset != node.opsets->end() && opset->second < 9) {
    return {.unknown = "Scan is supported from opset 9 on"};
  }
  if (sequences < 1 || sequences > all) {
    fail_input("{}: num_scan_inputs: {} of {} inputs", node_label(node.proto), sequences, all);
  }
  const auto axes = ints_attribute(node.proto, "scan_input_axes");
  const auto states = static_cast<std::size_t>(all - sequences);
  std::vector<TypeProto> given;
  std::int64_t rounds = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TypeProto type = known_type(inputs[i]);
    if (i >= states && is_complete(type)) {
      auto* dims = type.mutable_tensor_type()->mutable_shape()->mutable_dim();
      std::int64_t axis = i - states < axes.size() ? axes[i - states] : 0;
      if (axis < 0) axis += dims->size();
      if (axis < 0 || axis >= dims->size()) {
        fail_input("{}: scan_input_axes: {} of a tensor of rank {}", node_label(node.proto), axis,
                   dims->size());
      }
      rounds = std::max(rounds, dims->at(static_cast<int>(axis)).dim_value());
      dims->DeleteSubrange(static_cast<int>(axis), 1);
    }
    given.push_back(std::move(type));
  }
  Body body = run_body(node, "body", scope, given);
  if (rounds < 0 && body.unknown.empty()) body.unknown = "the length of its sequences is not known";
  const auto output_axes = ints_attribute(node.proto, "scan_output_axes");
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    if (i < states) continue;
    const std::int64_t axis = i - states < output_axes.size() ? output_axes[i - states] : 0;
    body.outputs[i] = rounds < 0 ? TypeProto() : stacked(body.outputs[i], rounds, axis);
  }
  body.repeat(std::max<std::int64_t>(rounds, 0));
  return body;
}

}  // namespace emplace

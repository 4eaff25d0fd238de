// Symbolic dimensions, and the types of one node's outputs by libonnx's own schemas.
//
// Its inference functions are called node by node, with the types and small contents found so far,
// rather than for the whole model: what our own folding finds can then be used at once, and a node
// that it does not know leaves only its own outputs open. What newer opsets say in ways that the
// library does not know is first put in the form that it knows. A node that does not fit its schema
// has unknown outputs: nothing is guessed.
#include "io/onnx_shapes.h"

#include <algorithm>
#include <exception>
#include <new>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include "base/error.h"

#include "graph/op_costs.h"

#include "io/onnx_guard.h"
#include "io/onnx_node.h"

namespace emplace {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TypeProto;

class DimSetter {
 public:
  explicit DimSetter(const DimValues& values) : values_(values) {}

  void apply(GraphProto& graph) {
    for (auto& value : *graph.mutable_input()) apply(*value.mutable_type());
    for (auto& value : *graph.mutable_output()) apply(*value.mutable_type());
    for (auto& value : *graph.mutable_value_info()) apply(*value.mutable_type());
    for (auto& node : *graph.mutable_node()) apply(node);
  }
  void apply(NodeProto& node) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) apply(*attribute.mutable_g());
      for (auto& graph : *attribute.mutable_graphs()) apply(graph);
    }
  }

  const std::set<std::string, std::less<>>& seen() const { return seen_; }

 private:
  void apply(TypeProto& type) {
    if (type.has_sequence_type()) apply(*type.mutable_sequence_type()->mutable_elem_type());
    if (type.has_optional_type()) apply(*type.mutable_optional_type()->mutable_elem_type());
    if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return;
    for (auto& dim : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (!dim.has_dim_param() || dim.dim_param().empty()) continue;
      seen_.insert(dim.dim_param());
      const auto given = values_.find(dim.dim_param());
      if (given != values_.end()) dim.set_dim_value(given->second);
    }
  }

  const DimValues& values_;
  std::set<std::string, std::less<>> seen_;
};

std::string list_names(const std::set<std::string, std::less<>>& names) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kShown) {
      shown.push_back("...");
      break;
    }
    shown.push_back(fmt::format("'{}'", name));
  }
  return shown.empty() ? "none" : fmt::format("{}", fmt::join(shown, ", "));
}

void check_input_dims(const GraphProto& graph) {
  std::unordered_set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<std::string> missing;
  std::set<std::string, std::less<>> named;
  for (const auto& value : graph.input()) {
    if (initializers.contains(value.name())) continue;
    if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape() ||
        value.type().tensor_type().elem_type() == 0) {
      missing.push_back(
          fmt::format("input '{}': expected a tensor of known type and rank, found: {}",
                      value.name(), describe_type(value.type())));
      continue;
    }
    const auto& shape = value.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      const auto& dim = shape.dim(i);
      if (dim.has_dim_value() && dim.dim_value() >= 0) continue;
      if (dim.dim_param().empty()) {
        missing.push_back(
            fmt::format("axis {} of input '{}' has neither a size nor a name", i, value.name()));
      } else if (named.insert(dim.dim_param()).second) {
        missing.push_back(
            fmt::format("dimension '{}' (axis {} of input '{}') has no value; expected "
                        "one, such as {}=1",
                        dim.dim_param(), i, value.name(), dim.dim_param()));
      }
    }
  }
  if (!missing.empty()) fail_input("{}", fmt::join(missing, "; "));
}

// Libonnx's own names for the domains are the canonical ones.
const onnx::OpSchema* find_schema(const OnnxNode& node) {
  const std::string domain(canonical_domain(node.proto.domain()));
  const auto imported = node.opsets->find(domain);
  // A version newer than all that the library knows gets the newest of those; `Verify` then refuses
  // the node if it uses what later versions added.
  return imported == node.opsets->end()
             ? onnx::OpSchemaRegistry::Schema(node.proto.op_type(), domain)
             : onnx::OpSchemaRegistry::Schema(node.proto.op_type(), imported->second, domain);
}

// Opset 18 turned the axes of the reductions into an input and gave Split its number of outputs,
// which the library's newest versions say in another way.
NodeProto in_known_form(const NodeProto& node, const onnx::OpSchema& schema,
                        const std::vector<const OnnxValue*>& inputs) {
  NodeProto known = node;
  if (node.op_type().starts_with("Reduce") && node.input_size() == 2 && schema.max_input() == 1) {
    known.mutable_input()->RemoveLast();
    if (inputs[1] == nullptr) return known;
    // Axes that are not known leave the node as it was, and so to be refused.
    if (!inputs[1]->data) return node;
    auto* axes = known.add_attribute();
    axes->set_name("axes");
    axes->set_type(onnx::AttributeProto::INTS);
    for (std::size_t i = 0; i < inputs[1]->data->values.size(); ++i) {
      axes->add_ints(inputs[1]->data->integer(i));
    }
  }
  if (node.op_type() == "Split") {
    auto* attributes = known.mutable_attribute();
    for (int i = attributes->size(); i-- > 0;) {
      if (attributes->at(i).name() == "num_outputs") attributes->DeleteSubrange(i, 1);
    }
  }
  return known;
}

void run_schema(const onnx::OpSchema& schema, NodeProto& node,
                const std::vector<const OnnxValue*>& inputs, std::vector<TypeProto>& outputs) {
  std::unordered_map<std::string, TypeProto> types;
  std::unordered_map<std::string, TypeProto*> type_of;
  std::unordered_map<std::string, onnx::TensorProto> tensors;
  std::unordered_map<std::string, const onnx::TensorProto*> data_of;
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxValue* value = inputs[static_cast<std::size_t>(i)];
    if (value == nullptr || value->type.value_case() == TypeProto::VALUE_NOT_SET) continue;
    const std::string& name = node.input(i);
    type_of[name] = &(types[name] = value->type);
    if (value->data) data_of[name] = &(tensors[name] = to_proto(*value->data));
  }
  onnx::shape_inference::InferenceContextImpl context(node, type_of, data_of, {});
  if (schema.has_type_and_shape_inference_function()) {
    schema.GetTypeAndShapeInferenceFunction()(context);
  } else if (schema.HasFunction()) {
    onnx::shape_inference::InferShapeForFunctionNode(*schema.GetFunction(),
                                                     onnx::OpSchemaRegistry::Instance(), context);
  }
  outputs = std::move(context.allOutputTypes_);
}

}  // namespace

void set_symbolic_dims(onnx::ModelProto& model, const DimValues& values) {
  for (const auto& [name, value] : values) {
    if (value < 1) fail_option("dimension {}={}: expected a positive number", name, value);
  }
  DimSetter setter(values);
  setter.apply(*model.mutable_graph());
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) setter.apply(node);
  }
  for (const auto& [name, value] : values) {
    if (setter.seen().contains(name)) continue;
    fail_option(
        "dimension {}={}: the model has no dimension of that name; its symbolic dimensions: {}",
        name, value, list_names(setter.seen()));
  }
  check_input_dims(model.graph());
}

void check_elem_type(const TypeProto& type, const std::string& what) {
  if (!type.has_tensor_type()) return;
  const int elem_type = type.tensor_type().elem_type();
  if (elem_type != 0 && onnx_dtype(elem_type) == DType::kUnknown) {
    fail_input("{}: unknown element type {}", what, elem_type);
  }
}

std::vector<TypeProto> infer_node(const OnnxNode& node,
                                  const std::vector<const OnnxValue*>& inputs) {
  const auto count = static_cast<std::size_t>(node.proto.output_size());
  std::vector<TypeProto> outputs(count);
  // Without a cost rule types are of no use.
  const CostRow* row = find_cost_row(node.proto.domain(), node.proto.op_type());
  const onnx::OpSchema* schema = row == nullptr ? nullptr : find_schema(node);
  if (schema != nullptr) {
    // Libonnx's functions throw what they like when a node does not fit its operator, where they do
    // not crash (onnx_guard.h); the outputs then stay unknown, and the reader says so.
    try {
      NodeProto known = in_known_form(node.proto, *schema, inputs);
      schema->Verify(known);
      if (safe_to_infer(known, inputs)) run_schema(*schema, known, inputs, outputs);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {
      outputs.assign(count, {});
    }
  }
  outputs.resize(count);
  if (row != nullptr && row->keeps_shape && count > 0 && !inputs.empty() && inputs[0] != nullptr) {
    merge_type(inputs[0]->type, outputs[0]);
  }
  return outputs;
}

}  // namespace emplace

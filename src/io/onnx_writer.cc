// ONNX models out: a node for each op, checked against the operator's schema as libonnx has it.
//
// Inputs and outputs are put back to the positions that the op's attributes say were left out, and
// attributes to the types that the schema declares, so that a model that is read, written and read
// again gives the same ops. One pass in the order of the graph, which is topological.
#include "io/onnx_writer.h"

#include <algorithm>
#include <climits>

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>

#include "base/check.h"
#include "base/error.h"

#include "io/onnx_constant.h"
#include "io/onnx_conventions.h"
#include "io/onnx_functions.h"
#include "io/onnx_node.h"
#include "io/onnx_value.h"

namespace emplace {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;
using onnx::OpSchema;

// A file's name without what file systems and shells give a meaning to.
std::string file_name(std::string name) {
  for (char& c : name) {
    const bool harmless = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '=' || c == ',';
    if (!harmless) c = '_';
  }
  return name;
}

void set_attribute(AttributeProto& attribute, AttributeProto::AttributeType wanted,
                   const AttributeValue& value) {
  const bool as_real = wanted == AttributeProto::FLOAT || wanted == AttributeProto::FLOATS;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    attribute.set_type(as_real ? AttributeProto::FLOAT : AttributeProto::INT);
    if (as_real) return attribute.set_f(static_cast<float>(*integer));
    attribute.set_i(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    attribute.set_type(AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_type(wanted == AttributeProto::STRINGS ? wanted : AttributeProto::STRING);
    if (wanted != AttributeProto::STRINGS) return attribute.set_s(*text);
    for (std::size_t begin = 0; begin <= text->size();) {
      const std::size_t comma = std::min(text->find(',', begin), text->size());
      attribute.add_strings(text->substr(begin, comma - begin));
      begin = comma + 1;
    }
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    attribute.set_type(as_real ? AttributeProto::FLOATS : AttributeProto::INTS);
    for (const std::int64_t number : *integers) {
      if (as_real) attribute.add_floats(static_cast<float>(number));
      if (!as_real) attribute.add_ints(number);
    }
  } else {
    attribute.set_type(AttributeProto::FLOATS);
    for (const double number : std::get<std::vector<double>>(value)) {
      attribute.add_floats(static_cast<float>(number));
    }
  }
}

class OnnxWriter {
 public:
  explicit OnnxWriter(const Graph& graph) : graph_(graph), out_(*model_.mutable_graph()) {}

  std::string write() && {
    model_.set_ir_version(kWrittenIrVersion);
    model_.set_producer_name(std::string(kProducer));
    model_.add_opset_import()->set_version(kWrittenOpset);
    out_.set_name(graph_.name().empty() ? "graph" : graph_.name());
    name_tensors();
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      with_context(fmt::format("op '{}'", graph_.op_name(op)), [&] { add_op(op); });
    }
    functions_.add_to(model_);
    if (model_.ByteSizeLong() > INT_MAX) fail_input("the ONNX file would be larger than 2 GiB");
    return model_.SerializeAsString();
  }

 private:
  // An op's first output has the op's name, which is unique; others have a number after it.
  void name_tensors() {
    names_.resize(graph_.num_tensors());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const auto outputs = graph_.outputs(op);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        std::string name(graph_.op_name(op));
        if (i > 0) name += fmt::format(":{}", i);
        while (i > 0 && graph_.find_op(name)) name += '\'';
        names_[outputs[i]] = std::move(name);
      }
    }
  }

  void add_op(OpId op) {
    if (graph_.phase(op) != Phase::kForward) {
      fail_input("is of the {} phase; ONNX holds a forward pass", phase_name(graph_.phase(op)));
    }
    if (graph_.is_source(op) && !graph_.inputs(op).empty()) {
      fail_input("inputs: a {} that reads a tensor is none to ONNX", graph_.type(op));
    }
    switch (graph_.role(op)) {
      case OpRole::kParameter:
      case OpRole::kBuffer:
        for (const TensorId tensor : graph_.outputs(op)) add_weights(op, tensor);
        break;
      case OpRole::kInput:
        for (const TensorId tensor : graph_.outputs(op)) add_value(tensor, *out_.add_input());
        break;
      case OpRole::kConstant:
        add_constant(op);
        break;
      case OpRole::kCompute:
        add_node(op);
    }
  }

  int elem_type(TensorId tensor) const {
    if (!graph_.has_shape(tensor)) {
      fail_input("outputs: tensor {} has bytes but no shape, which ONNX needs", tensor);
    }
    const int type = onnx_elem_type(graph_.dtype(tensor));
    if (type == onnx::TensorProto::UNDEFINED) {
      fail_input("outputs: tensor {} is of {}, which opset {} does not have", tensor,
                 dtype_name(graph_.dtype(tensor)), kWrittenOpset);
    }
    return type;
  }

  onnx::TypeProto type_of(TensorId tensor) const {
    const auto shape = graph_.shape(tensor);
    return tensor_type_proto(elem_type(tensor), {shape.begin(), shape.end()});
  }

  void add_value(TensorId tensor, onnx::ValueInfoProto& value) const {
    value.set_name(names_[tensor]);
    *value.mutable_type() = type_of(tensor);
  }

  void add_weights(OpId op, TensorId tensor) {
    onnx::TensorProto& weights = *out_.add_initializer();
    weights.set_name(names_[tensor]);
    weights.set_data_type(elem_type(tensor));
    for (const std::int64_t dim : graph_.shape(tensor)) weights.add_dims(dim);
    weights.set_doc_string(
        std::string(graph_.role(op) == OpRole::kBuffer ? kBufferNote : kParameterNote));
    weights.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto say = [&](const char* key, std::string value) {
      auto* entry = weights.add_external_data();
      entry->set_key(key);
      entry->set_value(std::move(value));
    };
    say("location", file_name(out_.name()) + ".weights");
    say("offset", fmt::format("{}", weights_end_));
    say("length", fmt::format("{}", graph_.bytes(tensor)));
    weights_end_ = saturating_add(weights_end_, graph_.bytes(tensor));
  }

  NodeProto& start_node(OpId op, std::string_view type) {
    NodeProto& node = *out_.add_node();
    node.set_name(std::string(graph_.op_name(op)));
    node.set_op_type(std::string(type));
    set_module_of_node(node, graph_.module(op));
    return node;
  }

  void add_constant(OpId op) {
    const AttributeValue* value = graph_.attributes(op).find("value");
    if (value == nullptr) fail_input("attributes: 'value', a constant's contents, is missing");
    if (graph_.outputs(op).size() != 1) fail_input("outputs: a constant has one");
    const TensorId tensor = graph_.outputs(op)[0];
    NodeProto& node = start_node(op, "Constant");
    node.add_output(names_[tensor]);
    AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(AttributeProto::TENSOR);
    const auto shape = graph_.shape(tensor);
    *attribute.mutable_t() =
        constant_proto(*value, elem_type(tensor), {shape.begin(), shape.end()});
    add_value(tensor, *out_.add_value_info());
  }

  void add_node(OpId op) {
    const std::string type(graph_.type(op));
    NodeProto& node = start_node(op, type);
    add_values(graph_.inputs(op), graph_.attributes(op).integers(kOmittedInputs),
               *node.mutable_input());
    add_values(graph_.outputs(op), graph_.attributes(op).integers(kOmittedOutputs),
               *node.mutable_output());
    const OpSchema* schema = onnx::OpSchemaRegistry::Schema(type, kWrittenOpset, "");
    if (schema != nullptr) {
      add_attributes(op, *schema, node);
      check_node(op, *schema, node);
    } else if (has_onnx_function(type)) {
      const auto inputs = graph_.inputs(op);
      functions_.call(type, graph_.attributes(op),
                      inputs.empty() ? 0 : graph_.shape(inputs[0]).size(), node);
    } else {
      fail_input("type: opset {} of ONNX has no operator '{}'", kWrittenOpset, type);
    }
    const bool unread =
        std::all_of(graph_.outputs(op).begin(), graph_.outputs(op).end(),
                    [&](TensorId tensor) { return graph_.consumers(tensor).empty(); });
    bool first = true;
    for (const TensorId tensor : graph_.outputs(op)) {
      add_value(tensor, unread && first ? *out_.add_output() : *out_.add_value_info());
      first = false;
    }
  }

  // `gaps` are the positions that are left out, ascending.
  void add_values(std::span<const TensorId> tensors, std::span<const std::int64_t> gaps,
                  google::protobuf::RepeatedPtrField<std::string>& names) const {
    auto gap = gaps.begin();
    for (const TensorId tensor : tensors) {
      for (; gap != gaps.end() && *gap == names.size(); ++gap) names.Add();
      *names.Add() = names_[tensor];
    }
  }

  // What opset 17 has no word for.
  static void check_meaning(const Attributes& attributes) {
    if (attributes.integer("flattened", 0) != 0) {
      fail_input(
          "takes all dimensions from its axis on, as before opset 13; that of opset {} takes one",
          kWrittenOpset);
    }
    if (attributes.text("nearest_mode") == "simple") {
      fail_input(
          "rounds as opset 10 does, up where an axis shrinks and else down; opset {} has "
          "one way for all axes",
          kWrittenOpset);
    }
  }

  void add_attributes(OpId op, const OpSchema& schema, NodeProto& node) const {
    check_meaning(graph_.attributes(op));
    for (const auto& [name, value] : graph_.attributes(op).entries()) {
      if (name == kOmittedInputs || name == kOmittedOutputs) continue;
      if (name == "scales" && schema.Name() == "Resize") continue;  // which its input says
      AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      const auto known = schema.attributes().find(name);
      const auto wanted =
          known == schema.attributes().end() ? AttributeProto::UNDEFINED : known->second.type;
      if (wanted == AttributeProto::TENSOR && !graph_.outputs(op).empty()) {
        // ConstantOfShape's, whose one element is of the output's type.
        attribute.set_type(wanted);
        *attribute.mutable_t() = constant_proto(value, elem_type(graph_.outputs(op)[0]), {1});
      } else {
        set_attribute(attribute, wanted, value);
      }
    }
  }

  void check_node(OpId op, const OpSchema& schema, const NodeProto& node) const {
    try {
      schema.Verify(node);
    } catch (const std::exception& error) {
      fail_input("is no {} as opset {} has it: {}", node.op_type(), kWrittenOpset, error.what());
    }
    std::size_t given = 0;
    for (int i = 0; i < node.input_size(); ++i) {
      if (node.input(i).empty()) continue;
      const TensorId tensor = graph_.inputs(op)[given++];
      const auto position =
          std::min<std::size_t>(static_cast<std::size_t>(i), schema.inputs().size() - 1);
      const OpSchema::FormalParameter& parameter = schema.inputs()[position];
      if (!parameter.GetTypes().contains(onnx::Utils::DataTypeUtils::ToType(type_of(tensor)))) {
        fail_input("inputs: {} of opset {} takes no {} as '{}'", node.op_type(), kWrittenOpset,
                   dtype_name(graph_.dtype(tensor)), parameter.GetName());
      }
    }
  }

  const Graph& graph_;
  onnx::ModelProto model_;
  onnx::GraphProto& out_;
  OnnxFunctions functions_;
  std::vector<std::string> names_;  // by tensor
  Bytes weights_end_ = 0;
};

}  // namespace

std::string write_onnx(const Graph& graph) {
  return OnnxWriter(graph).write();
}

}  // namespace emplace

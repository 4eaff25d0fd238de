// ONNX models of a few made nodes that read each other's outputs, in functions and bodies too.
#pragma once

#include <string>

#include "fuzz/onnx_nodes.h"

namespace emplace::fuzz {

// An If around the node, whose other branch calls one of the functions, itself perhaps.
inline onnx::NodeProto in_branch(const onnx::NodeProto& node, Choices& choices,
                                 std::size_t number) {
  onnx::NodeProto outer;
  outer.set_op_type("If");
  outer.add_input(node.input_size() > 0 ? node.input(0) : "");
  for (const std::string& name : node.output()) outer.add_output(name);
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* attribute = outer.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto* body = attribute->mutable_g();
    auto* inner = body->add_node();
    *inner = node;
    if (choices.below(2) == 0) {
      inner->clear_attribute();
      inner->set_domain("own");
      inner->set_op_type("f" + std::to_string(choices.below(number + 1)));
    }
    for (int i = 0; i < inner->output_size(); ++i) {
      inner->set_output(i, "inner" + std::to_string(i));
      body->add_output()->set_name(inner->output(i));
    }
  }
  return outer;
}

inline std::string make_model(Choices& choices) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto* import = model.add_opset_import();
  import->set_version(static_cast<std::int64_t>(choices.below(20)));
  auto* graph = model.mutable_graph();
  std::vector<std::string> names;
  const std::size_t count = 1 + choices.below(6);
  for (std::size_t i = 0; i < count; ++i) {
    MadeNode made = NodeMaker(choices).make();
    const std::string prefix = "n" + std::to_string(i) + "/";
    for (int k = 0; k < made.proto.input_size(); ++k) {
      std::string& name = *made.proto.mutable_input(k);
      if (name.empty()) continue;
      if (!names.empty() && choices.below(2) == 0) {
        name = names[choices.below(names.size())];
        continue;
      }
      name = prefix + name;
      const OnnxValue* value = made.inputs[static_cast<std::size_t>(k)];
      if (value->data) {
        *graph->add_initializer() = to_proto(*value->data);
        graph->mutable_initializer(graph->initializer_size() - 1)->set_name(name);
      } else if (!is_complete(value->type)) {
        // No model has such an input, but an operator that is not known may give it.
        auto* unknown = graph->add_node();
        unknown->set_domain("own");
        unknown->set_op_type("Unknown");
        unknown->add_output(name);
        auto* declared = graph->add_value_info();
        declared->set_name(name);
        *declared->mutable_type() = value->type;
      } else {
        auto* input = graph->add_input();
        input->set_name(name);
        *input->mutable_type() = value->type;
      }
      names.push_back(name);
    }
    for (std::string& name : *made.proto.mutable_output()) {
      name = prefix + name;
      names.push_back(name);
    }
    // Some nodes are calls of functions that hold them.
    if (choices.rarely(4)) {
      auto* function = model.add_functions();
      function->set_domain("own");
      function->set_name("f" + std::to_string(i));
      for (const std::string& name : made.proto.input()) function->add_input(name);
      for (const std::string& name : made.proto.output()) function->add_output(name);
      *function->add_node() = choices.rarely(4) ? in_branch(made.proto, choices, i) : made.proto;
      made.proto.clear_attribute();
      made.proto.set_op_type(function->name());
      made.proto.set_domain("own");
    }
    *graph->add_node() = std::move(made.proto);
  }
  return model.SerializeAsString();
}

}  // namespace emplace::fuzz

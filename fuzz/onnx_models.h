// ONNX models of a few made nodes that read each other's outputs, in functions and bodies too.
#pragma once

#include <string>

#include "fuzz/onnx_nodes.h"

namespace emplace::fuzz {

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
      *function->add_node() = made.proto;
      made.proto.clear_attribute();
      made.proto.set_op_type(function->name());
      made.proto.set_domain("own");
    }
    *graph->add_node() = std::move(made.proto);
  }
  return model.SerializeAsString();
}

}  // namespace emplace::fuzz

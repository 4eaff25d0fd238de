// Small ONNX models, made in the test that reads them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <onnx/onnx_pb.h>

#include "io/readers.h"

namespace emplace {

// A size or a symbolic name; "" is a dimension of which nothing is said.
using OnnxDim = std::variant<std::int64_t, std::string>;

inline void set_type(onnx::ValueInfoProto& value, const std::string& name,
                     const std::vector<OnnxDim>& dims, int elem_type = onnx::TensorProto::FLOAT) {
  value.set_name(name);
  auto* tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(elem_type);
  auto* shape = tensor->mutable_shape();
  for (const OnnxDim& dim : dims) {
    auto* added = shape->add_dim();
    if (const auto* size = std::get_if<std::int64_t>(&dim)) added->set_dim_value(*size);
    const auto* symbol = std::get_if<std::string>(&dim);
    if (symbol != nullptr && !symbol->empty()) added->set_dim_param(*symbol);
  }
}

// Adds to a graph, a body or (nodes only) a function.
struct OnnxGraphMaker {
  onnx::GraphProto& graph;

  void input(const std::string& name, const std::vector<OnnxDim>& dims,
             int elem_type = onnx::TensorProto::FLOAT) {
    set_type(*graph.add_input(), name, dims, elem_type);
  }
  void output(const std::string& name) { graph.add_output()->set_name(name); }
  void value_info(const std::string& name, const std::vector<OnnxDim>& dims,
                  int elem_type = onnx::TensorProto::FLOAT) {
    set_type(*graph.add_value_info(), name, dims, elem_type);
  }
  // Without contents, as when weights lie in another file that is not there.
  onnx::TensorProto& weights(const std::string& name, const std::vector<std::int64_t>& dims,
                             int elem_type = onnx::TensorProto::FLOAT) {
    auto* tensor = graph.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(elem_type);
    for (const std::int64_t dim : dims) tensor->add_dims(dim);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* location = tensor->add_external_data();
    location->set_key("location");
    location->set_value("absent.bin");
    return *tensor;
  }
  void integers(const std::string& name, const std::vector<std::int64_t>& values) {
    auto* tensor = graph.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor->add_int64_data(value);
  }
  void integer(const std::string& name, std::int64_t value) {
    integers(name, {value});
    graph.mutable_initializer(graph.initializer_size() - 1)->clear_dims();
  }
  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = {},
                        const std::string& domain = {}) {
    auto* node = graph.add_node();
    node->set_op_type(type);
    node->set_name(name);
    node->set_domain(domain);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    return *node;
  }
};

inline onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                           onnx::AttributeProto::AttributeType type) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}
inline void set_int(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  add_attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}
inline void set_ints(onnx::NodeProto& node, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  auto& attribute = add_attribute(node, name, onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}
inline void set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  add_attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}
inline OnnxGraphMaker add_graph(onnx::NodeProto& node, const std::string& name) {
  return {*add_attribute(node, name, onnx::AttributeProto::GRAPH).mutable_g()};
}

struct OnnxModelHolder {
  onnx::ModelProto model;
};

class OnnxModelMaker : public OnnxModelHolder, public OnnxGraphMaker {
 public:
  explicit OnnxModelMaker(int opset = 17) : OnnxGraphMaker{*model.mutable_graph()} {
    model.set_ir_version(8);
    import_opset("", opset);
  }
  OnnxModelMaker(const OnnxModelMaker&) = delete;
  OnnxModelMaker& operator=(const OnnxModelMaker&) = delete;

  void import_opset(const std::string& domain, int version) {
    auto* import = model.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
  }
  std::string bytes() const { return model.SerializeAsString(); }
  Graph read(const ReadOptions& options = {}) const { return read_onnx(bytes(), options, "test"); }
};

inline OpId find_op(const Graph& graph, std::string_view name) {
  const auto op = graph.find_op(name);
  if (!op) throw std::logic_error("the graph has no op '" + std::string(name) + "'");
  return *op;
}
inline std::vector<std::int64_t> output_shape(const Graph& graph, std::string_view op,
                                              std::size_t output = 0) {
  const auto shape = graph.shape(graph.outputs(find_op(graph, op))[output]);
  return {shape.begin(), shape.end()};
}

}  // namespace emplace

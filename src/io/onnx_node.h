// Small questions to a NodeProto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include "graph/attributes.h"

namespace emplace {

// Nothing when the node has no such attribute.
const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);
std::int64_t int_attribute(const onnx::NodeProto& node, std::string_view name,
                           std::int64_t otherwise);
std::vector<std::int64_t> ints_attribute(const onnx::NodeProto& node, std::string_view name);
std::string string_attribute(const onnx::NodeProto& node, std::string_view name);
// Its numbers, lists of numbers and strings, the names of a list of activations as one text with
// commas; graphs, tensors and the like are left out.
Attributes attributes_of(const onnx::NodeProto& node);

// "" for the operators of ONNX itself, which are written with two domains.
std::string_view canonical_domain(std::string_view domain);
// "MatMul", "com.microsoft.Gelu".
std::string operator_name(const onnx::NodeProto& node);
// Its name, or, since ONNX allows nodes without one, "MatMul of 'output'".
std::string node_label(const onnx::NodeProto& node);

// "/encoder/layer/layer.0/attention/MatMul" -> "encoder.layer.0.attention": where the exporter says
// that the node comes from; empty when it does not.
std::string module_of_node(const onnx::NodeProto& node);
// Says so, for this reader and others, whatever the node's name.
void set_module_of_node(onnx::NodeProto& node, std::string_view module);
// "encoder.layer.0.weight" -> "encoder.layer.0"; empty when the name does not say.
std::string module_of_initializer(std::string_view name);

}  // namespace emplace

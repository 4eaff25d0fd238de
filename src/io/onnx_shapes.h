// The types of an ONNX model's values: symbolic dimensions replaced by what the caller gives, and
// what the file does not say inferred with libonnx, node by node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/onnx_flatten.h"
#include "io/onnx_value.h"

namespace emplace {

using DimValues = std::map<std::string, std::int64_t, std::less<>>;

// Puts the values in, everywhere in the model. Throws an Error when a value is not positive, a name
// does not occur in the model, or an input of the graph is no tensor or keeps a dimension without a
// value; that one names every such dimension.
void set_symbolic_dims(onnx::ModelProto& model, const DimValues& values);

// Throws an Error when the type, of what `what` names, has an element type that ONNX does not have.
void check_elem_type(const onnx::TypeProto& type, const std::string& what);

// The types of a node's outputs as far as they follow from its inputs, by position; a failed
// inference leaves them empty. `inputs` are by position, nullptr where omitted. Operators with
// bodies are not looked into (onnx_walk.h).
std::vector<onnx::TypeProto> infer_node(const OnnxNode& node,
                                        const std::vector<const OnnxValue*>& inputs);

}  // namespace emplace

// ONNX models out.
#pragma once

#include <string>

#include "graph/graph.h"

namespace emplace {

// The bytes of an ONNX model (opset 17, IR 8) of a forward graph in ONNX operators: weights without
// contents (they would lie in "<graph's name>.weights"), constants with theirs, the type of every
// value. Operators that came after opset 17 become functions of the model. Read back, ops have
// their names, modules, attributes and costs. Throws an Error that names the op for a backward or
// an update op, a constant whose "value" is missing, a tensor without a shape, an operator that
// ONNX does not have, and one that is not given what it takes.
std::string write_onnx(const Graph& graph);

}  // namespace emplace

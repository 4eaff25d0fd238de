// Operators that are newer than the opset that we write, as functions of the model: their bodies
// are of older operators, so that every program that knows functions can run them.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <onnx/onnx_pb.h>

#include "graph/attributes.h"

namespace emplace {

// Whether there is a function for the operator.
bool has_onnx_function(std::string_view type);

// The functions that a model calls.
class OnnxFunctions {
 public:
  // Makes a call of a node that has its inputs and outputs; `rank` is the first input's. Throws an
  // Error for an attribute that the function does not have.
  void call(std::string_view type, const Attributes& attributes, std::size_t rank,
            onnx::NodeProto& node);

  // Adds the functions, and the import of their domain.
  void add_to(onnx::ModelProto& model) const;

 private:
  std::set<std::string, std::less<>> used_;
};

// Undoes `call` for the nodes of the model's graph whose outputs' types the model says, as all that
// we write do: they are then the operators that they were.
void restore_operators(onnx::ModelProto& model);

}  // namespace emplace

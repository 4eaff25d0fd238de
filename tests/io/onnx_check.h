// What libonnx says of a model's bytes.
#pragma once

#include <exception>
#include <fstream>
#include <set>
#include <string>

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include "support/command.h"

namespace emplace {

inline onnx::ModelProto parse_onnx(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) throw std::logic_error("not a protobuf message");
  return model;
}

// The complaint of the checker or of strict shape inference with type checks, which also compares
// what it infers with what the model says; empty when there is none. The checker wants the file of
// weights to be there, whatever is in it.
inline std::string onnx_complaint(const std::string& bytes) {
  onnx::ModelProto model = parse_onnx(bytes);
  const testing::TemporaryFolder folder;
  std::set<std::string> locations;
  for (const auto& tensor : model.graph().initializer()) {
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") locations.insert(entry.value());
    }
  }
  for (const std::string& location : locations) folder.write(location, "");
  try {
    onnx::checker::check_model(folder.write("model.onnx", bytes));
    // Data of a function's Shape nodes go by names that all of its calls share, which ONNX 1.12
    // takes for a mistake.
    const bool has_functions = model.functions_size() > 0;
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(true, 1, !has_functions));
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace emplace

// An ONNX model for writers that change it: its nodes, function calls replaced by the functions'
// bodies, each with the name of the op that the reader makes of it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <emplace/model.h>
#include <onnx/onnx_pb.h>

namespace emplace {

struct FlatOnnxNode {
  onnx::NodeProto proto;
  std::string op;  // its name in the graph that read_onnx returns
};

struct FlatOnnxModel {
  onnx::ModelProto model;                                       // all but the nodes of its graph
  std::vector<FlatOnnxNode> nodes = {};                         // in topological order
  std::unordered_map<std::string, onnx::TypeProto> types = {};  // of values that are known
};

// The same file and options as given to read_onnx. Throws what that throws, and an Error where a
// function's opset says something else of an operator than the model's.
FlatOnnxModel read_flat_onnx(const std::string& bytes, const ReadOptions& options);

}  // namespace emplace

// From a GraphProto to a list of nodes: calls of model-local functions replaced by the functions'
// bodies, and the nodes in topological order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

namespace emplace {

using Opsets = std::map<std::string, int, std::less<>>;  // version by canonical domain

struct OnnxNode {
  onnx::NodeProto proto;
  const Opsets* opsets = nullptr;  // of the model or of the function that the node comes from
};

class OnnxFlattener {
 public:
  // Keeps references to the model's functions. Throws an Error when two of them have one name.
  explicit OnnxFlattener(const onnx::ModelProto& model);

  const Opsets& model_opsets() const { return opsets_; }

  // Takes the nodes out of the graph. `exists_outside` says which names a body may take from around
  // it. Throws an Error for a value that nothing produces or that two nodes produce, a cycle, a
  // function that calls itself, and functions that grow beyond measure.
  std::vector<OnnxNode> flatten(onnx::GraphProto& graph, const Opsets& opsets,
                                const std::function<bool(const std::string&)>& exists_outside);

 private:
  struct Function {
    const onnx::FunctionProto* proto = nullptr;
    Opsets opsets = {};
    std::vector<onnx::AttributeProto> defaults = {};
    bool active = false;  // being inlined now
  };

  void expand(onnx::NodeProto&& node, const Opsets& opsets, std::vector<OnnxNode>& nodes);
  void expand_call(const onnx::NodeProto& call, Function& function, std::vector<OnnxNode>& nodes);

  Opsets opsets_;
  std::map<std::string, Function, std::less<>> functions_;
  std::int64_t calls_ = 0;
  std::int64_t inlined_ = 0;
  int depth_ = 0;  // of the call that is inlined
};

// The values that a node reads: its inputs (omitted ones left out), then what the graphs in its
// attributes take from around them. In order of first use, without repeats.
std::vector<std::string> values_read(const onnx::NodeProto& node);

}  // namespace emplace

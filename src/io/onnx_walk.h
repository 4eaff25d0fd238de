// Goes through the nodes of an ONNX graph in order, knowing each one's types and cost. The graph of
// an If, a Loop or a Scan is gone through in the same way and adds up to the cost of that one op.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/op_costs.h"

#include "io/onnx_flatten.h"
#include "io/onnx_value.h"

namespace emplace {

// A node when its turn comes. Values are by position, nullptr where omitted.
struct VisitedNode {
  const OnnxNode& node;
  const std::vector<const OnnxValue*>& inputs;
  const std::vector<const OnnxValue*>& outputs;
  OpCost cost = {};
  std::string unknown = {};  // why the cost is not known; empty when it is
  bool root = true;          // not known for a reason of its own, not only because an input is not
};

class OnnxWalk {
 public:
  using Visit = std::function<void(const VisitedNode&)>;

  explicit OnnxWalk(OnnxFlattener& flattener) : flattener_(flattener) {}

  // Takes the nodes out of the graph, enters its values into the scope and calls `visit` for each
  // node. A body's scope has the one around it as `outer` and the body's inputs already in it.
  // Throws an Error for a graph that is malformed (OnnxFlattener::flatten) and for an initializer
  // or a value without a valid type.
  void walk(onnx::GraphProto& graph, const Opsets& opsets, OnnxScope& scope, const OnnxScope* outer,
            const Visit& visit);

 private:
  struct Frame;  // one graph that is being gone through
  struct Body;   // what came of a body

  void visit_node(const OnnxNode& node, Frame& frame, const Visit& visit);
  Body run_body(const OnnxNode& node, const std::string& attribute, const OnnxScope& outer,
                const std::vector<onnx::TypeProto>& inputs);
  Body run_control_flow(const OnnxNode& node, const OnnxScope& scope,
                        const std::vector<const OnnxValue*>& inputs);
  Body run_if(const OnnxNode& node, const OnnxScope& scope,
              const std::vector<const OnnxValue*>& inputs);
  Body run_loop(const OnnxNode& node, const OnnxScope& scope,
                const std::vector<const OnnxValue*>& inputs);
  Body run_scan(const OnnxNode& node, const OnnxScope& scope,
                const std::vector<const OnnxValue*>& inputs);

  OnnxFlattener& flattener_;
  int depth_ = 0;  // of the body that is gone through, in other bodies
};

// The type of an initializer. Throws an Error when its element type or a dimension is not valid.
onnx::TypeProto initializer_type(const onnx::TensorProto& tensor);

}  // namespace emplace

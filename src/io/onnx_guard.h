// Which nodes libonnx's shape inference can be trusted with.
#pragma once

#include <vector>

#include "io/onnx_value.h"

namespace emplace {

// Whether libonnx (1.12) infers the node's types without dividing by zero, reading beyond its
// arrays or counting for ever, as its functions do for attributes and ranks that do not fit each
// other, or for products that wrap around. Those that may not be inferred do not fit their
// operator: their outputs stay unknown. A process of its own for inference would make a crash an
// error, too, but not in a host with threads (Python), where a forked child may wait for a lock for
// ever. `inputs` are by position, nullptr where omitted.
bool safe_to_infer(const onnx::NodeProto& node, const std::vector<const OnnxValue*>& inputs);

}  // namespace emplace

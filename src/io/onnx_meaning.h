// What a node means beyond its attributes: by its opset, and by contents that its op reads.
#pragma once

#include "graph/attributes.h"

#include "io/onnx_walk.h"

namespace emplace {

// Makes the attributes mean in any later opset what the node means in its own, as far as executing
// it and dividing it need that:
// - `flattened` of Softmax, LogSoftmax and Hardmax before opset 13, which take all dimensions from
//   the axis on as one, unless that one is the axis's;
// - `scales` of Resize and Upsample, where they are known: extents are rounded, so they do not
// tell;
// - modes and positions of Resize of opset 10.
void say_meaning(const VisitedNode& visited, Attributes& attributes);

}  // namespace emplace

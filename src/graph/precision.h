// The precision of a model: its floating tensors in 16 or 32 bits, with casts where frameworks put
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/model.h>

#include "graph/graph.h"

namespace emplace {

// "bf16", "fp16", "fp32".
std::vector<std::string> precision_names();
// One of these, or the element type's own name ("bfloat16"). Throws an Error for any other.
Precision parse_precision(std::string_view name);
// Of a precision that is chosen.
DType precision_dtype(Precision precision);

// Whether the type is a float of 16 bits: weights of such a type have float32 masters in training.
bool is_narrow(DType dtype);

// By which ONNX's Cast knows the element type; 0: none that a precision has.
std::int64_t onnx_type_number(DType dtype);

// The forward graph with its tensors of 16 and 32 bits in another precision.
//
// For inference all are `dtype`, except what the model itself casts to float32. For training the
// graph is mixed, as PyTorch's autocast makes it: products, convolutions, recurrent layers and
// attention compute in `dtype`; normalisations, sums, exponentials, softmax and losses in float32;
// batch and instance norms read images of any type and statistics in float32; all others, means
// among them, compute in the widest type of their operands, of which single numbers do not count.
// Casts are ops, one for each tensor and type. Sources are `dtype` unless all that read them want
// float32, so the weights of products are `dtype`, and those of normalisations float32.
//
// Times that were measured in another precision are dropped; bytes that a file says an op moves
// change as its tensors do. Throws an Error when the graph has
// backward or update ops, or tensors without a shape.
Graph with_precision(const Graph& forward, DType dtype, bool training);

}  // namespace emplace

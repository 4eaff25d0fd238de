// A constant's attribute "value" as ONNX stores a tensor's contents.
#pragma once

#include <onnx/onnx_pb.h>

#include "graph/attributes.h"
#include "graph/tensor_type.h"

namespace emplace {

// The opposite of onnx_dtype; UNDEFINED where the library's ONNX has no such type.
int onnx_elem_type(DType dtype);

// A number or a list of numbers (row by row) in a tensor of that type and shape. Throws an Error
// when there are not as many as the shape says, or when the type cannot hold one.
onnx::TensorProto constant_proto(const AttributeValue& value, int elem_type, const Shape& shape);

}  // namespace emplace

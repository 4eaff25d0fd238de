// What an ONNX file asks for, before any dimension has a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/dtype.h"

namespace emplace {

struct OnnxInputDim {
  std::optional<std::int64_t> size;
  std::string symbol = {};  // where it has no size; may be empty then, too
};

struct OnnxInput {
  std::string name;
  DType dtype = DType::kUnknown;
  std::vector<OnnxInputDim> shape = {};
};

// Of the graph, without initializers. Throws an Error when the bytes are no ONNX model.
std::vector<OnnxInput> read_onnx_inputs(const std::string& bytes);

}  // namespace emplace

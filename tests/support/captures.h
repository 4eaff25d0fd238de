// Training steps captured from PyTorch, with times measured on an H200, and the ONNX files exported
// from the same models: a few that the repository holds.
#pragma once

#include <array>
#include <string>

#include "graph/graph.h"

#include "io/readers.h"

namespace emplace {

inline constexpr std::array kCaptures{"bert-base-b24", "gnmt4-b256", "resnet50-b32", "vgg16-b32"};
inline constexpr std::array kOnnxExports{"bert-base-b24", "resnet50-b32"};

inline std::string capture_path(const std::string& name) {
  // The largest is the example that the README uses.
  const char* folder = name == "gnmt4-b256" ? "/examples/" : "/tests/data/captures/";
  return std::string(EMPLACE_SOURCE_DIR) + folder + name + ".json.gz";
}

inline std::string onnx_export_path(const std::string& name) {
  return std::string(EMPLACE_SOURCE_DIR) + "/tests/data/captures/" + name + ".onnx.gz";
}

inline Graph captured(const std::string& name) {
  return *read_model(capture_path(name)).graph;
}

}  // namespace emplace

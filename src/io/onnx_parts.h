// An ONNX model cut by a placement into one file for each device segment, and a manifest of what
// flows where.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/model.h>

#include "base/ids.h"
#include "base/units.h"

namespace emplace {

// A model's file, for formats that keep what the graph does not have: weights, functions.
struct OnnxSource {
  std::string bytes;
  std::string folder = {};  // where it lies, since weights may lie beside it
  ReadOptions options = {};
};

struct PlacedOnnx {
  OnnxSource source;
  std::string graph;                                       // its name
  std::vector<std::string> devices;                        // their names
  std::function<DeviceId(std::string_view op)> device_of;  // by the names that the reader gives
};

struct OnnxPartsSummary {
  std::size_t parts = 0;
  std::size_t tensors = 0;                // that go from part to part
  Bytes bytes = 0;                        // of them, counted once for every part that reads one
  std::vector<std::string> missing = {};  // files of weights that are not there
};

inline constexpr std::string_view kPartsManifest = "manifest.json";

// Fills an empty folder with the parts, their weights and the manifest (docs/exports.md). Run in
// the manifest's order they compute what the model does: the nodes are the model's, each in one
// part, but for constants, weights and what nobody reads. Throws an Error that names the op where a
// value that goes from part to part has no known type.
OnnxPartsSummary write_onnx_parts(const PlacedOnnx& model, const std::string& folder);

}  // namespace emplace

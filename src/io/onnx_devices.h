// ONNX's multi-device annotations (IR 11): the devices of a model, and for each node where its
// tensors lie, how they are cut, and which stage of a pipeline it is of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/onnx_parts.h"
#include "io/partition_file.h"

namespace emplace {

// Where the parts of one tensor lie.
struct OnnxTensorCut {
  std::vector<std::pair<int, int>> axes = {};          // axis and number of parts, ascending
  std::vector<std::vector<std::int64_t>> groups = {};  // by part, row by row: who has it

  friend bool operator==(const OnnxTensorCut&, const OnnxTensorCut&) = default;
};

struct OnnxDeviceNotes {
  std::string configuration = {};         // its name
  std::vector<std::string> devices = {};  // their names
  struct Op {
    std::vector<std::int64_t> devices = {};  // where its outputs lie
    std::optional<std::int64_t> stage = std::nullopt;
    std::map<std::string, OnnxTensorCut> tensors = {};  // it reads or writes, by name

    bool cut() const;  // some tensor of it lies in parts
  };
  std::map<std::string, Op> ops = {};  // by name; those that have a note
};

// The model's own file with annotations of a placement. `stage_of_device`: where the devices are
// the stages of a pipeline; may be empty.
std::string write_onnx_devices(const PlacedOnnx& model, const std::string& configuration,
                               const std::vector<int>& stage_of_device);

struct CutOnnx {
  std::string bytes;
  std::size_t nodes = 0;    // that are annotated
  std::size_t unknown = 0;  // of which the partition says nothing
};
// The same of a partition: how each tensor is kept.
CutOnnx write_onnx_devices(const OnnxSource& source, const SavedPartition& partition);

// What a file says; nothing where it has no such annotations. Throws an Error where they are
// malformed.
std::optional<OnnxDeviceNotes> read_onnx_devices(const OnnxSource& source);

}  // namespace emplace

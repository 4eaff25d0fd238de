// What there is in a model: its size, its work, its modules, and what is not known of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

#include "run/problem_request.h"
#include "run/rates.h"

namespace emplace {

// A module with what is in it, modules within it included.
struct ModuleSummary {
  std::string name;  // as --pin and --recompute take it; empty: the whole model
  std::int64_t ops = 0;
  std::int64_t parameters = 0;
  double flops = 0;
  std::vector<ModuleSummary> inner = {};  // in the order in which the forward pass meets them
};

struct ModelFigures {
  std::int64_t ops = 0;
  std::int64_t sources = 0;  // of them: parameters, inputs, constants
  std::int64_t views = 0;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  // numbers that are trained
  Bytes parameter_bytes = 0;
  Bytes state_bytes = 0;             // that an optimizer keeps, and buffers
  std::array<double, 3> flops = {};  // by phase
  bool training = false;             // has a backward pass
  // What the forward pass leaves for the backward pass, of a training step.
  Bytes activation_bytes = 0;
  // What the step takes on one device that has room; nothing where its ops' times are not known.
  std::optional<Bytes> peak_bytes = std::nullopt;

  double total_flops() const { return flops[0] + flops[1] + flops[2]; }
};

// A dimension of an ONNX file's inputs that has a name instead of a size.
struct SymbolicDim {
  std::string name;
  std::vector<std::string> where;  // "axis 0 of input_ids"
  std::int64_t value = 1;
  bool given = false;  // else it was taken to be 1
};

struct ModelSummary {
  std::string name;
  std::string source;
  ModelFigures figures;
  StepWork work;
  std::vector<SymbolicDim> dims;
  std::map<std::string, Bytes> dtypes;  // of all tensors, by name
  ModuleSummary modules;
  // Not known: FLOPs of ops by type, and shapes of tensors.
  std::map<std::string, std::int64_t> ops_without_flops;
  std::int64_t tensors_without_shape = 0;
};

ModelFigures figures_of(const std::shared_ptr<const Graph>& graph);
ModuleSummary modules_of(const Graph& graph);

// Symbolic dimensions of an ONNX file; none of any other model.
std::vector<SymbolicDim> symbolic_dims(const ProblemRequest& request);

// Of the request's model; dimensions without a value are taken to be 1. Throws an Error when the
// model cannot be read, which says what of it is not known.
ModelSummary summarize_model(const ProblemRequest& request);

}  // namespace emplace

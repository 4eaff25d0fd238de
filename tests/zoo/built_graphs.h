// Building one model of a family's list, and looking at what came out.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/options.h"

#include "graph/graph.h"

#include "zoo/registry.h"

namespace emplace::zoo {

inline const ModelInfo& model_of(const std::vector<ModelInfo>& models, std::string_view name) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const ModelInfo& info) { return info.name == name; });
  if (found == models.end()) fail_option("there is no model '{}' among these", name);
  return *found;
}

inline Graph build(const std::vector<ModelInfo>& models, std::string_view name,
                   const OptionValues& options = {}) {
  return model_of(models, name).build(options, {});
}

inline Graph build_forward(const std::vector<ModelInfo>& models, std::string_view name,
                           OptionValues options = {}) {
  options.emplace_back("training", "false");
  return build(models, name, options);
}

// The message of the error that building it ends in; empty where it does not.
inline std::string error_of(const std::vector<ModelInfo>& models, std::string_view name,
                            const OptionValues& options) {
  try {
    build(models, name, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline std::vector<OpId> ops_of(const Graph& graph, std::string_view module,
                                std::string_view type) {
  std::vector<OpId> ops;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.module(op) == module && graph.type(op) == type) ops.push_back(op);
  }
  return ops;
}

// The module of what the op reads beside this parameter, in the step of a layer that has one such
// op: "layer.0.weight_hh" and "layer.0.step.3" give that of the state.
inline std::string module_read_with(const Graph& graph, std::string_view parameter,
                                    std::string_view step) {
  const OpId weight = graph.find_op(parameter).value();
  for (const OpId op : graph.consumers(graph.outputs(weight)[0])) {
    if (graph.module(op) == step)
      return std::string(graph.module(graph.producer(graph.inputs(op)[0])));
  }
  return "(no op reads it there)";
}

// Where two graphs first differ, in words; empty where they do not.
inline std::string difference(const Graph& a, const Graph& b) {
  if (a.num_ops() != b.num_ops()) return fmt::format("{} and {} ops", a.num_ops(), b.num_ops());
  for (OpId op = 0; op < a.num_ops(); ++op) {
    const bool same = a.op_name(op) == b.op_name(op) && a.type(op) == b.type(op) &&
                      a.module(op) == b.module(op) && a.phase(op) == b.phase(op) &&
                      a.flops(op) == b.flops(op) && a.bytes_moved(op) == b.bytes_moved(op) &&
                      a.attributes(op) == b.attributes(op) &&
                      std::ranges::equal(a.inputs(op), b.inputs(op)) &&
                      std::ranges::equal(a.outputs(op), b.outputs(op));
    if (!same) return fmt::format("op {}: '{}' and '{}'", op, a.op_name(op), b.op_name(op));
    for (const TensorId tensor : a.outputs(op)) {
      if (a.dtype(tensor) != b.dtype(tensor) ||
          !std::ranges::equal(a.shape(tensor), b.shape(tensor))) {
        return fmt::format("op {}: '{}' has outputs of other shapes", op, a.op_name(op));
      }
    }
  }
  return {};
}

// The first op with a floating output that is not of this type, if there is one.
inline std::optional<std::string> other_float(const Graph& graph, DType dtype) {
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const DType found = graph.dtype(tensor);
    const bool floating = found == DType::kFloat16 || found == DType::kBFloat16 ||
                          found == DType::kFloat32 || found == DType::kFloat64;
    if (floating && found != dtype) return std::string(graph.op_name(graph.producer(tensor)));
  }
  return std::nullopt;
}

// Every model trains in mixed precision: all products in 16 bits, and a float32 master of every
// weight of 16 bits.
inline void expect_half_precision(const Graph& step) {
  int products = 0;
  int masters = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    const std::string_view type = step.type(op);
    if (type.starts_with("MatMul") || type.starts_with("Gemm") || type.starts_with("Conv")) {
      ++products;
      for (const auto tensors : {step.inputs(op), step.outputs(op)}) {
        for (const TensorId tensor : tensors) {
          EXPECT_NE(step.dtype(tensor), DType::kFloat32) << step.op_name(op);
        }
      }
    }
    if (step.phase(op) != Phase::kUpdate || step.is_source(op)) continue;
    if (step.dtype(step.inputs(op)[0]) == DType::kFloat32) continue;
    ++masters;
    for (const TensorId state : step.inputs(op).subspan(2)) {
      EXPECT_EQ(step.dtype(state), DType::kFloat32) << step.op_name(op);
    }
    EXPECT_EQ(step.op_name(step.producer(step.inputs(op).back())).ends_with("/master"), true);
  }
  EXPECT_GT(products, 0);
  EXPECT_GT(masters, 0);
}

}  // namespace emplace::zoo

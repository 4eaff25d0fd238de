// Runs a graph whole and in parts, and compares every tensor that the workers keep.
#pragma once

#include <algorithm>

#include <gtest/gtest.h>

#include "tensor/lower.h"
#include "tensor/partition_problem.h"

#include "interpreter/interpreter.h"

namespace emplace {

// Parts of what the sources of the whole graph are: by name and region.
inline exec::SourceValue parts_of(const Graph& whole, const exec::SourceValue& sources) {
  return [&whole, sources](const Graph& graph, OpId op, std::size_t output) {
    const std::string_view name = graph.op_name(op);
    const auto original = whole.find_op(name.substr(0, name.rfind('@')));
    torch::Tensor value = sources(whole, *original, output);
    const auto begin = graph.attributes(op).integers("region_begin");
    const auto shape = graph.shape(graph.outputs(op)[output]);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      value = value.slice(static_cast<std::int64_t>(d), begin[d], begin[d] + shape[d]);
    }
    return value.contiguous();
  };
}

inline torch::Tensor region_of(torch::Tensor value, const tdl::Region& region) {
  for (std::size_t d = 0; d < region.size(); ++d) {
    value = value.slice(static_cast<std::int64_t>(d), region[d].begin, region[d].end);
  }
  return value;
}

// `graph` is decomposed already; `values` are its tensors as computed whole, with these options;
// `network` is what the workers are linked by, if that matters. Returns whether all agree, after
// the first that does not.
inline bool expect_same(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
                        const exec::SourceValue& sources, const std::vector<torch::Tensor>& values,
                        const exec::InterpretOptions& options = {}, Network* network = nullptr) {
  std::vector<std::string> devices;
  for (Worker worker = 0; worker < plan.workers.count(); ++worker) {
    devices.push_back("gpu" + std::to_string(worker));
  }
  const LoweredGraph lowered = lower(graph, descriptions, plan, devices, network);
  const auto parts = exec::interpret(lowered.graph, parts_of(graph, sources), options);
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    for (Worker worker = 0; worker < plan.workers.count(); ++worker) {
      const auto& kept = lowered.tensors[tensor];
      if (kept.partial) continue;
      const torch::Tensor wanted = region_of(values[tensor], kept.regions[worker]);
      const torch::Tensor found = parts[kept.pieces[worker]];
      EXPECT_EQ(wanted.sizes(), found.sizes());
      if (wanted.sizes() != found.sizes()) return false;
      // Sums over many elements round in proportion to the largest.
      const double largest =
          wanted.numel() == 0 ? 0 : values[tensor].to(torch::kDouble).abs().max().item<double>();
      const bool same = torch::allclose(wanted.to(torch::kDouble), found.to(torch::kDouble), 1e-8,
                                        1e-9 * std::max(1.0, largest), /*equal_nan=*/true);
      EXPECT_TRUE(same)
          << graph.op_name(graph.producer(tensor)) << " (" << graph.type(graph.producer(tensor))
          << ") at worker " << worker << " of " << plan.workers.count() << ", op cuts "
          << ::testing::PrintToString(plan.ops[graph.producer(tensor)]) << ", largest difference "
          << (wanted.to(torch::kDouble) - found.to(torch::kDouble)).abs().max().item<double>();
      if (!same) return false;
    }
  }
  return true;
}

}  // namespace emplace

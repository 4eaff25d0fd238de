// What the tests of the attention models share.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "zoo/built_graphs.h"
#include "zoo/captures.h"
#include "zoo/registry.h"

namespace emplace::zoo {

// Of the forward pass alone, as small as the parameters let it be.
inline std::int64_t parameters_of(const std::vector<ModelInfo>& models, const std::string& name,
                                  OptionValues options = {}) {
  options.emplace_back("batch", "1");
  return count_parameters(build_forward(models, name, std::move(options)));
}

// FLOPs of the forward pass and of the step within 3 %, the peak of memory within 15 %.
inline void expect_like_capture(const Graph& step, const std::string& capture_name) {
  const CaptureFigures& capture = figures_of(capture_name);
  EXPECT_NEAR(total_flops(step, Phase::kForward) / capture.forward_flops, 1, 0.03) << capture_name;
  EXPECT_NEAR(total_flops(step, std::nullopt) / capture.step_flops, 1, 0.03) << capture_name;
  const auto peak = static_cast<double>(peak_on_one_device(step));
  EXPECT_NEAR(peak / static_cast<double>(capture.peak), 1, 0.15) << capture_name;
}

// Ops of the forward pass that read what the op of this name writes.
inline std::size_t forward_readers(const Graph& graph, const std::string& name) {
  const auto op = graph.find_op(name);
  if (!op) return 0;
  std::size_t count = 0;
  for (const OpId reader : graph.consumers(graph.outputs(*op)[0])) {
    count += graph.phase(reader) == Phase::kForward ? 1 : 0;
  }
  return count;
}

}  // namespace emplace::zoo

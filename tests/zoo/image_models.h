// What the tests of the convolutional models share.
#pragma once

#include <string>
#include <vector>

#include "graph/tensor_type.h"

#include "zoo/attention_models.h"

namespace emplace::zoo {

inline void expect_published_parameters(const std::vector<ModelInfo>& models) {
  int published = 0;
  for (const ModelInfo& info : models) {
    if (!info.parameters) continue;
    ++published;
    EXPECT_EQ(parameters_of(models, info.name), *info.parameters) << info.name;
  }
  EXPECT_GT(published, 0);
}

// FLOPs of convolutions and matrix products, which is all that PyTorch's counter counts.
inline double product_flops(const Graph& graph, Phase phase) {
  double flops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const std::string_view type = graph.type(op);
    if (graph.phase(op) != phase) continue;
    if (!type.starts_with("Conv") && !type.starts_with("Gemm") && !type.starts_with("MatMul")) {
      continue;
    }
    flops += static_cast<double>(graph.flops(op).value_or(0));
  }
  return flops;
}

// Of one image, in units of 10^9, as papers and torchvision give them.
inline double giga_multiplications(const std::vector<ModelInfo>& models, const std::string& name,
                                   OptionValues options = {}) {
  options.emplace_back("batch", "1");
  return product_flops(build_forward(models, name, std::move(options)), Phase::kForward) / 2e9;
}

}  // namespace emplace::zoo

// GraphSAGE in its pooling form (Hamilton, Ying, Leskovec, NeurIPS 2017) as GDP has it: a node
// hears the largest of what its neighbours say, in each of its dimensions:
//   pooled_v = max over neighbours u of sigmoid(h_u A + a),  h'_v = relu([h_v; pooled_v] B + b).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/csr.h"

#include "learn/encoders/neighbours.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Whom a unit reads from and who reads from it: distinct, ascending.
Csr<std::uint32_t> both_directions(const UnitGraph& units);

class GraphSage {
 public:
  GraphSage(Parameters& parameters, const std::string& name, const Csr<std::uint32_t>& neighbours,
            std::int64_t input_width, std::int64_t width, std::int64_t layers, Rng& rng);

  // [nodes, input_width] to [nodes, width].
  torch::Tensor operator()(const torch::Tensor& x) const;

 private:
  struct Layer {
    Linear said;
    Linear own;     // of [h; pooled]: the part for h, with the bias
    Linear pooled;  // and the part for what was heard
  };

  Neighbours neighbours_;
  std::vector<Layer> layers_;
};

}  // namespace emplace::learn

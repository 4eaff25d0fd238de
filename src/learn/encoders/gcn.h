// Graph convolutions (Kipf, Welling 2017) as deep graph infomax and Mars have them: H' = PReLU(A^ H
// W
// + b), with A^ = D^-1/2 (A + I) D^-1/2 of the graph without directions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/encoders/neighbours.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// A^ of the units: each hears of itself and of those that it reads from or that read from it.
Neighbours normalized_adjacency(const UnitGraph& units, torch::Device device);

struct GcnSettings {
  std::int64_t layers = 3;
  std::int64_t width = 256;
};

class Gcn {
 public:
  Gcn() = default;
  Gcn(Parameters& parameters, const std::string& name, std::int64_t input_width,
      const GcnSettings& settings, Rng& rng);

  // x [nodes, input_width] gives [nodes, width].
  torch::Tensor operator()(const Neighbours& adjacency, const torch::Tensor& x) const;
  // The same from A^ x, which does not change while x is given.
  torch::Tensor from_mixed(const Neighbours& adjacency, const torch::Tensor& mixed) const;

 private:
  struct Layer {
    Linear dense;
    torch::Tensor slope;  // of negative values, [1]
  };
  std::vector<Layer> layers_;
};

}  // namespace emplace::learn

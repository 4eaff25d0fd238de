// Mixtures of experts (Shazeer et al. 2017): for each token the best of many feed-forward layers.
//
// An expert takes a fixed number of tokens, its capacity, so that every shape is known before the
// step: the tokens that weigh it most, others lose it (batch prioritised routing, Riquelme et al.
// 2021; published models let experts take any number). Where fewer tokens chose an expert than it
// takes, the rest have the weight zero. The experts' ops are separate, or those of a part of them
// are, so that they can be on different devices.
#pragma once

#include <functional>
#include <string_view>

#include "zoo/net.h"

namespace emplace::zoo {

struct Routing {
  // How a token weighs its experts by the router's scores.
  enum class Weights {
    kSoftmax,          // softmax over all, then the best made to add up to one
    kSoftmaxOfChosen,  // softmax over the best
    kSigmoid,          // chosen with a correction that balances them, then made to add up to one
  };

  std::int64_t experts = 8;
  std::int64_t chosen = 2;
  std::int64_t capacity = 1;  // tokens of an expert
  Weights weights = Weights::kSoftmax;
  bool bias = false;  // of the router
  double scale = 1;   // of the weights
};

// `share` over what an expert would get if all got as many of the tokens, but no more than all.
std::int64_t expert_capacity(std::int64_t tokens, const Routing& routing, double share);

// For every expert its tokens and how much each of them weighs it; both [experts, capacity].
struct Routes {
  Value weights;
  Value tokens;
};
// x [tokens, hidden]; `zeros` is of empty_table.
Routes route(Net& net, std::string_view name, const Value& x, const Value& zeros,
             const Routing& routing);
// What the weights of the chosen experts are written into; one for all layers.
Value empty_table(Net& net, std::int64_t tokens, std::int64_t experts);

// The experts' results, weighed and added to `residual` [tokens, hidden]. The experts are computed
// in `parts`, by `expert`, which is given [tokens, hidden] where a part is one expert, else
// [experts, tokens, hidden].
Value mix(Net& net, const Value& x, const Value& residual, const Routes& routes, std::int64_t parts,
          const std::function<Value(const Value&)>& expert);

// What `linear` is to one expert to those of a part: x [experts, tokens, in].
Value expert_linear(Net& net, std::string_view name, const Value& x, std::int64_t out,
                    bool bias = false);

}  // namespace emplace::zoo

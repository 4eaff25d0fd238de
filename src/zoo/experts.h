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

#include "zoo/attention.h"
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

// The options of every decoder that has them.
struct ExpertStep : AttentionStep {
  ExpertStep() {
    attention = "fused";
    batch = 1;
    dtype = "float16";
    optimizer = "adam";
  }

  std::int64_t sequence = 4096;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t vocabulary = 1;
  std::int64_t experts = 1;
  std::int64_t chosen = 1;
  double capacity = 1.25;

  // With as many experts, and the tokens that each takes.
  Routing routed(Routing routing) const {
    routing.experts = experts;
    routing.chosen = chosen;
    routing.capacity = expert_capacity(batch * sequence, routing, capacity);
    return routing;
  }
};

template <class Options>
OptionSchema<Options> expert_schema() {
  return attention_schema<Options>()
      .integer("sequence", &Options::sequence, 1, 1 << 24, "Tokens of an example: the context.")
      .integer("layers", &Options::layers, 1, 10'000, "Of the decoder.")
      .integer("hidden", &Options::hidden, 1, 1 << 20, "Width of the model.")
      .integer("heads", &Options::heads, 1, 10'000, "Of attention.")
      .integer("vocabulary", &Options::vocabulary, 1, 1 << 24, "Distinct tokens.")
      .integer("experts", &Options::experts, 1, 10'000, "Of a layer.")
      .integer("chosen", &Options::chosen, 1, 10'000, "Experts that a token goes to by choice.")
      .real("capacity", &Options::capacity, 0.01, 1000,
            "Tokens that an expert takes, over those that it would get if all got as many.");
}
// Of those that compute theirs in parts (Options::expert_parts).
template <class Options>
OptionSchema<Options> expert_parts_schema() {
  return expert_schema<Options>().integer(
      "expert_parts", &Options::expert_parts, 1, 10'000,
      "Parts of a layer's experts, each of which is computed at once.");
}

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

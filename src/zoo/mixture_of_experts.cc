// A decoder whose feed-forward layers are mixtures of experts (Shazeer et al. 2017), with the
// architecture of Mixtral (Jiang et al. 2024): Llama's attention, and for each token the two best
// of eight gated feed-forward layers.
//
// Routing: each token chooses its best experts by the softmax of a linear router, and their weights
// are made to add up to one. An expert takes a fixed number of tokens, its capacity, so that every
// shape is known before the step: the tokens that weigh it most, others lose it (batch prioritised
// routing, Riquelme et al. 2021; Mixtral itself lets experts take any number). Where fewer tokens
// chose an expert than it takes, the rest have the weight zero. The experts' ops are separate, so
// that they can be on different devices.
#include <algorithm>
#include <cmath>

#include "base/error.h"

#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kRmsEpsilon = 1e-5;

struct MixtureOfExperts : StepOptions {
  MixtureOfExperts() {
    batch = 1;
    dtype = "float16";
    optimizer = "adam";
  }

  std::int64_t sequence = 2048;
  std::int64_t layers = 32;
  std::int64_t hidden = 4096;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t intermediate = 14336;
  std::int64_t vocabulary = 32000;
  std::int64_t experts = 8;
  std::int64_t chosen = 2;
  double capacity = 1.25;

  static OptionSchema<MixtureOfExperts> schema() {
    using Moe = MixtureOfExperts;
    return step_schema<Moe>()
        .integer("sequence", &Moe::sequence, 1, 1 << 24, "Tokens of an example: the context.")
        .integer("layers", &Moe::layers, 1, 10'000, "Of the decoder.")
        .integer("hidden", &Moe::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Moe::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("kv_heads", &Moe::kv_heads, 1, 10'000,
                 "Of keys and values; they divide the heads.")
        .integer("intermediate", &Moe::intermediate, 1, 1 << 24, "Width inside of an expert.")
        .integer("vocabulary", &Moe::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .integer("experts", &Moe::experts, 1, 10'000, "Of a layer.")
        .integer("chosen", &Moe::chosen, 1, 10'000, "Experts that a token goes to.")
        .real("capacity", &Moe::capacity, 0.01, 1000,
              "Tokens that an expert takes, over those that it would get if all got as many.");
  }

  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t tokens_of_expert() const {
    const double even = static_cast<double>(chosen * tokens()) / static_cast<double>(experts);
    return std::clamp(static_cast<std::int64_t>(std::ceil(capacity * even)), std::int64_t{1},
                      tokens());
  }
};

Value cast(Net& net, const Value& x, DType dtype) {
  // By ONNX's numbers.
  constexpr std::int64_t kOnnxFloat32 = 1;
  constexpr std::int64_t kOnnxFloat16 = 10;
  constexpr std::int64_t kOnnxBFloat16 = 16;
  if (x.dtype == dtype) return x;
  const std::int64_t to = dtype == DType::kFloat16    ? kOnnxFloat16
                          : dtype == DType::kBFloat16 ? kOnnxBFloat16
                                                      : kOnnxFloat32;
  return net.add_one("Cast", {x}, tensor_type(x.shape, dtype), {{"to", to}});
}

struct Best {
  Value values;
  Value indices;
};

// Along the last axis.
Best top_k(Net& net, const Value& x, std::int64_t k) {
  Shape shape = x.shape;
  shape.back() = k;
  const Values both = net.add("TopK", {x, net.constant({k})},
                              {tensor_type(shape, x.dtype), tensor_type(shape, DType::kInt64)},
                              {{"axis", std::int64_t{-1}}});
  return {both[0], both[1]};
}

// For every expert its tokens and how much each of them weighs it; both [experts, capacity].
Best route(Net& net, const Value& x, const Value& zeros, const MixtureOfExperts& options) {
  // In single precision whatever the model's, as published.
  const Value scores = cast(net, linear(net, "gate", x, options.experts, false), DType::kFloat32);
  const Best best = top_k(net, softmax(net, scores), options.chosen);
  const Value weights = div(net, best.values, reduce(net, "ReduceSum", best.values, {1}, true));
  const Value table =
      net.add_one("ScatterElements", {zeros, best.indices, weights},
                  tensor_type(zeros.shape, zeros.dtype), {{"axis", std::int64_t{1}}});
  return top_k(net, transpose(net, table, {1, 0}), options.tokens_of_expert());
}

// x [tokens of the expert, hidden].
Value expert(Net& net, const Value& x, const MixtureOfExperts& options) {
  const Value gate = silu(net, linear(net, "w1", x, options.intermediate, false));
  const Value up = linear(net, "w3", x, options.intermediate, false);
  return linear(net, "w2", mul(net, gate, up), options.hidden, false);
}

// x [tokens, hidden]; the sum with the residual, of the same shape, is returned.
Value mixture(Net& net, const Value& x, const Value& residual, const Value& zeros,
              const MixtureOfExperts& options) {
  const auto scope = net.scope("block_sparse_moe");
  const Best routes = route(net, x, zeros, options);
  const Values tokens = split_evenly(net, routes.indices, options.experts, 0);
  const Values weights =
      split_evenly(net, cast(net, routes.values, net.dtype()), options.experts, 0);
  Values results;
  for (std::int64_t i = 0; i < options.experts; ++i) {
    const auto at = net.scope("experts", i);
    const auto index = static_cast<std::size_t>(i);
    const Value own = gather(net, x, reshape(net, tokens[index], {-1}));
    const Value weight = reshape(net, weights[index], {-1, 1});
    results.push_back(mul(net, expert(net, own, options), weight));
  }
  const Value rows = reshape(net, routes.indices, {-1, 1});
  return net.add_one("ScatterND", {residual, rows, concat(net, results, 0)},
                     tensor_type(residual.shape, residual.dtype),
                     {{"reduction", std::string("add")}});
}

// What the weights of the chosen experts are written into; one for all layers.
Value empty_table(Net& net, const MixtureOfExperts& options) {
  const auto scope = net.scope("block_sparse_moe");
  const Shape shape{options.tokens(), options.experts};
  return net.add_one("ConstantOfShape", {net.constant(shape)}, tensor_type(shape, DType::kFloat32));
}

void build(Net& net, const MixtureOfExperts& options) {
  if (options.chosen > options.experts) {
    fail_option("a token cannot choose {} of {} experts; expected chosen to be at most experts",
                options.chosen, options.experts);
  }
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  // The token after each.
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  Value x;
  {
    const auto scope = net.scope("model");
    const GroupedAttention attention{
        .heads = options.heads,
        .key_heads = options.kv_heads,
        .positions = rotary_tables(net, options.sequence, options.hidden / options.heads),
        .mask = causal_mask(net, options.sequence)};
    const Value zeros = empty_table(net, options);
    x = embedding(net, "embed_tokens", ids, options.vocabulary, options.hidden);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      const Value normed = rms_norm(net, "input_layernorm", x, kRmsEpsilon);
      x = add(net, x, grouped_attention(net, "self_attn", normed, attention));
      const Value tokens = reshape(net, x, {-1, options.hidden});
      const Value branch = rms_norm(net, "post_attention_layernorm", tokens, kRmsEpsilon);
      x = reshape(net, mixture(net, branch, tokens, zeros, options), x.shape);
    }
    x = rms_norm(net, "norm", x, kRmsEpsilon);
  }
  classification_loss(net, linear(net, "lm_head", x, options.vocabulary, false), labels);
}

}  // namespace

std::vector<ModelInfo> mixture_of_experts_models() {
  return {
      model<MixtureOfExperts>({.name = "mixtral-8x7b",
                               .summary = "Mixtral: a decoder with 8 experts in each layer.",
                               .source = "Jiang et al. 2024; Hugging Face MixtralForCausalLM, "
                                         "Mixtral-8x7B-v0.1",
                               .parameters = 46'702'792'704},
                              build),
  };
}

}  // namespace emplace::zoo

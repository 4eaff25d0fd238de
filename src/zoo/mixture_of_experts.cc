// A decoder whose feed-forward layers are mixtures of experts (Shazeer et al. 2017), with the
// architecture of Mixtral (Jiang et al. 2024): Llama's attention, and for each token the two best
// of eight gated feed-forward layers.
#include "zoo/attention.h"
#include "zoo/experts.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kRmsEpsilon = 1e-5;

struct MixtureOfExperts : ExpertStep {
  MixtureOfExperts() {
    sequence = 2048;
    layers = 32;
    hidden = 4096;
    heads = 32;
    vocabulary = 32000;
    experts = 8;
    chosen = 2;
  }

  std::int64_t kv_heads = 8;
  std::int64_t intermediate = 14336;

  static OptionSchema<MixtureOfExperts> schema() {
    using Moe = MixtureOfExperts;
    return expert_schema<Moe>()
        .integer("kv_heads", &Moe::kv_heads, 1, 10'000,
                 "Of keys and values; they divide the heads.")
        .integer("intermediate", &Moe::intermediate, 1, 1 << 24, "Width inside of an expert.");
  }

  Routing routing() const { return routed({}); }
};

// x [tokens, hidden]; the sum with the residual, of the same shape, is returned.
Value mixture(Net& net, const Value& x, const Value& residual, const Value& zeros,
              const MixtureOfExperts& options) {
  const auto scope = net.scope("block_sparse_moe");
  const Routes routes = route(net, "gate", x, zeros, options.routing());
  return mix(net, x, residual, routes, options.experts, [&](const Value& own) {
    const Value gate = silu(net, linear(net, "w1", own, options.intermediate, false));
    const Value up = linear(net, "w3", own, options.intermediate, false);
    return linear(net, "w2", mul(net, gate, up), options.hidden, false);
  });
}

void build(Net& net, const MixtureOfExperts& options) {
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
        .mask = mask_unless(options.fused(), net, options.sequence)};
    Value zeros;
    {
      const auto moe = net.scope("block_sparse_moe");
      zeros = empty_table(net, options.batch * options.sequence, options.experts);
    }
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

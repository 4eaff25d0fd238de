// DeepSeek-V3 (2024): keys and values from a narrow latent (multi-head latent attention), and after
// three dense layers mixtures of 256 experts, chosen by sigmoids, beside one that all tokens share.
//
// The correction that balances the experts is a buffer, as it is not trained by gradients. The
// module that predicts a second token, of 11.5 billion further parameters, is left out.
#include "zoo/attention.h"
#include "zoo/experts.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct DeepSeek : ExpertStep {
  DeepSeek() {
    layers = 61;
    hidden = 7168;
    heads = 128;
    vocabulary = 129280;
    experts = 256;
    chosen = 8;
  }

  std::int64_t dense = 3;
  std::int64_t query_rank = 1536;
  std::int64_t latent = 512;
  std::int64_t rotary_size = 64;
  std::int64_t head_size = 128;
  std::int64_t intermediate = 18432;
  std::int64_t expert_width = 2048;
  std::int64_t shared = 1;
  std::int64_t expert_parts = 8;

  static OptionSchema<DeepSeek> schema() {
    return expert_parts_schema<DeepSeek>()
        .integer("dense", &DeepSeek::dense, 0, 10'000, "Layers at the start without experts.")
        .integer("query_rank", &DeepSeek::query_rank, 1, 1 << 20,
                 "Width that queries are made from.")
        .integer("latent", &DeepSeek::latent, 1, 1 << 20,
                 "Width that keys and values are made from.")
        .integer("rotary_size", &DeepSeek::rotary_size, 2, 1 << 16,
                 "What of a head is rotated; its keys are shared by all heads.")
        .integer("head_size", &DeepSeek::head_size, 1, 1 << 16,
                 "The rest of a head; of values all.")
        .integer("intermediate", &DeepSeek::intermediate, 1, 1 << 24,
                 "Width inside of the dense layers.")
        .integer("expert_width", &DeepSeek::expert_width, 1, 1 << 24, "Width inside of an expert.")
        .integer("shared", &DeepSeek::shared, 1, 10'000, "Experts that every token goes to.");
  }

  Routing routing() const {
    constexpr double kScale = 2.5;
    return routed({.weights = Routing::Weights::kSigmoid, .scale = kScale});
  }
};

// One for all layers.
struct DeepSeekShared {
  RotaryTables positions = {};
  std::optional<Value> mask = {};
  Value zeros = {};
};

Value latent_attention(Net& net, const Value& x, const DeepSeekShared& shared,
                       const DeepSeek& options) {
  const auto scope = net.scope("self_attn");
  const std::int64_t both = options.head_size + options.rotary_size;
  const std::int64_t heads = options.heads;
  const Value narrow =
      rms_norm(net, "q_a_layernorm", linear(net, "q_a_proj", x, options.query_rank, false));
  const Value all = split_heads(net, linear(net, "q_b_proj", narrow, heads * both, false), heads);
  const Values query = split(net, all, {options.head_size, options.rotary_size}, -1);
  const Value compressed =
      linear(net, "kv_a_proj_with_mqa", x, options.latent + options.rotary_size, false);
  const Values latent = split(net, compressed, {options.latent, options.rotary_size}, -1);
  const Value turned_key = rotate(net, split_heads(net, latent[1], 1), shared.positions);
  const Value kept = rms_norm(net, "kv_a_layernorm", latent[0]);
  const Value wide =
      split_heads(net, linear(net, "kv_b_proj", kept, 2 * heads * options.head_size, false), heads);
  const Values key_and_value = split_evenly(net, wide, 2, -1);
  const Value turned_query = rotate(net, query[1], shared.positions);
  const Value q = concat(net, {query[0], turned_query}, -1);
  const Value for_all = expand(net, turned_key, {x.dim(0), heads, x.dim(1), options.rotary_size});
  const Value k = concat(net, {key_and_value[0], for_all}, -1);
  const Value attended = attend(
      net, q, k, key_and_value[1],
      {.fused = options.fused(), .mask = shared.mask ? &*shared.mask : nullptr, .causal = true});
  return linear(net, "o_proj", merge_heads(net, attended), options.hidden, false);
}

Value gated(Net& net, const Value& x, std::int64_t width, std::int64_t out) {
  const Value gate = silu(net, expert_linear(net, "gate_proj", x, width));
  const Value up = expert_linear(net, "up_proj", x, width);
  return expert_linear(net, "down_proj", mul(net, gate, up), out);
}

// x [tokens, hidden], of which `branch` is normalised.
Value deepseek_mixture(Net& net, const Value& x, const Value& branch, const Value& zeros,
                       const DeepSeek& options) {
  const Routes routes = route(net, "gate", branch, zeros, options.routing());
  const Value mixed = mix(net, branch, x, routes, options.expert_parts, [&](const Value& own) {
    return gated(net, own, options.expert_width, options.hidden);
  });
  const auto scope = net.scope("shared_experts");
  return add(net, mixed, gated(net, branch, options.shared * options.expert_width, options.hidden));
}

void build(Net& net, const DeepSeek& options) {
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  // The token after each.
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  Value x;
  {
    const auto scope = net.scope("model");
    DeepSeekShared shared{.positions = rotary_tables(net, options.sequence, options.rotary_size),
                          .mask = mask_unless(options.fused(), net, options.sequence)};
    shared.zeros = empty_table(net, options.batch * options.sequence, options.experts);
    x = embedding(net, "embed_tokens", ids, options.vocabulary, options.hidden);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      x = add(net, x, latent_attention(net, rms_norm(net, "input_layernorm", x), shared, options));
      const Value tokens = reshape(net, x, {-1, options.hidden});
      const Value branch = rms_norm(net, "post_attention_layernorm", tokens);
      const auto mlp = net.scope("mlp");
      const Value y =
          i < options.dense
              ? add(net, tokens, gated(net, branch, options.intermediate, options.hidden))
              : deepseek_mixture(net, tokens, branch, shared.zeros, options);
      x = reshape(net, y, x.shape);
    }
    x = rms_norm(net, "norm", x);
  }
  classification_loss(net, linear(net, "lm_head", x, options.vocabulary, false), labels);
}

}  // namespace

std::vector<ModelInfo> deepseek_models() {
  return {model<DeepSeek>(
      {.name = "deepseek-v3",
       .summary = "DeepSeek-V3: latent attention, 256 experts in each layer.",
       .source = "DeepSeek-AI 2024; Hugging Face DeepseekV3ForCausalLM, without the 14,848 numbers "
                 "that balance experts",
       .parameters = 671'026'404'352},
      build)};
}

}  // namespace emplace::zoo

// GPT-OSS (OpenAI 2025): a decoder with mixtures of experts, biases everywhere, attention that
// looks back over a window in every other layer, and a learned sink in each head's softmax.
#include "zoo/attention.h"
#include "zoo/experts.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kGptOssEpsilon = 1e-5;

struct GptOss : ExpertStep {
  GptOss() {
    layers = 24;
    hidden = 2880;
    heads = 64;
    vocabulary = 201088;
    experts = 32;
    chosen = 4;
  }

  std::int64_t kv_heads = 8;
  std::int64_t head_size = 64;
  std::int64_t window = 128;
  std::int64_t intermediate = 2880;
  std::int64_t expert_parts = 8;

  static OptionSchema<GptOss> schema() {
    return expert_parts_schema<GptOss>()
        .integer("kv_heads", &GptOss::kv_heads, 1, 10'000,
                 "Of keys and values; they divide the heads.")
        .integer("head_size", &GptOss::head_size, 2, 1 << 16, "Width of a head.")
        .integer("window", &GptOss::window, 0, 1 << 24,
                 "Tokens that attention of every other layer looks back over; 0: all.")
        .integer("intermediate", &GptOss::intermediate, 1, 1 << 24, "Width inside of an expert.");
  }

  Routing routing() const {
    return routed({.weights = Routing::Weights::kSoftmaxOfChosen, .bias = true});
  }
};

// (up + 1) gate sigmoid(1.702 gate), of both in one product.
Value gpt_oss_expert(Net& net, const Value& x, const GptOss& options) {
  constexpr double kSlope = 1.702;
  const Value both = expert_linear(net, "gate_up_proj", x, 2 * options.intermediate, true);
  const Values parts = split_evenly(net, both, 2, -1);
  const Value gate = mul(net, parts[0], sigmoid(net, scale(net, parts[0], kSlope)));
  const Value up = add(net, parts[1], net.scalar(1));
  return expert_linear(net, "down_proj", mul(net, up, gate), options.hidden, true);
}

Value gpt_oss_layer(Net& net, const Value& given, const GroupedAttention& attention,
                    const Value& zeros, const GptOss& options) {
  const Value normed = rms_norm(net, "input_layernorm", given, kGptOssEpsilon);
  const Value x = add(net, given, grouped_attention(net, "self_attn", normed, attention));
  const Value tokens = reshape(net, x, {-1, options.hidden});
  const Value branch = rms_norm(net, "post_attention_layernorm", tokens, kGptOssEpsilon);
  const auto scope = net.scope("mlp");
  const Routes routes = route(net, "router", branch, zeros, options.routing());
  const Value mixed = mix(net, branch, tokens, routes, options.expert_parts,
                          [&](const Value& own) { return gpt_oss_expert(net, own, options); });
  return reshape(net, mixed, x.shape);
}

void build(Net& net, const GptOss& options) {
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  // The token after each.
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  Value x;
  {
    const auto scope = net.scope("model");
    GroupedAttention attention{.heads = options.heads,
                               .key_heads = options.kv_heads,
                               .size = options.head_size,
                               .positions = rotary_tables(net, options.sequence, options.head_size),
                               .mask = mask_unless(options.fused(), net, options.sequence),
                               .biases = true,
                               .sinks = true};
    const Value zeros = empty_table(net, options.batch * options.sequence, options.experts);
    x = embedding(net, "embed_tokens", ids, options.vocabulary, options.hidden);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      attention.window = i % 2 == 0 ? options.window : 0;
      x = gpt_oss_layer(net, x, attention, zeros, options);
    }
    x = rms_norm(net, "norm", x, kGptOssEpsilon);
  }
  classification_loss(net, linear(net, "lm_head", x, options.vocabulary, false), labels);
}

}  // namespace

std::vector<ModelInfo> gpt_oss_models() {
  return {
      model<GptOss>({.name = "gpt-oss-20b",
                     .summary = "GPT-OSS of 21 billion parameters, 32 experts in each layer.",
                     .source = "OpenAI 2025; Hugging Face GptOssForCausalLM, gpt-oss-20b",
                     .parameters = 20'914'757'184},
                    build),
      model<GptOss>({.name = "gpt-oss-120b",
                     .summary = "GPT-OSS of 117 billion parameters, 128 experts in each layer.",
                     .source = "OpenAI 2025; Hugging Face GptOssForCausalLM, gpt-oss-120b",
                     .parameters = 116'829'156'672},
                    build, {{"layers", "36"}, {"experts", "128"}}),
  };
}

}  // namespace emplace::zoo

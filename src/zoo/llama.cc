// Llama (Touvron et al. 2023; Llama 3: Dubey et al. 2024): rotary positions, RMS normalisation
// before the residual branches, gated feed-forward layers, no biases, no dropout, and from Llama 2
// on queries that may share keys and values. Mistral (Jiang et al. 2023) is the same, with
// attention that looks back no further than a window.
#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Llama : AttentionStep {
  Llama() {
    attention = "fused";
    batch = 1;
    dtype = "float16";
    optimizer = "adam";
  }

  std::int64_t sequence = 2048;
  std::int64_t layers = 32;
  std::int64_t hidden = 4096;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t intermediate = 11008;
  std::int64_t vocabulary = 32000;
  std::int64_t window = 0;

  static OptionSchema<Llama> schema() {
    return attention_schema<Llama>()
        .integer("sequence", &Llama::sequence, 1, 1 << 24, "Tokens of an example: the context.")
        .integer("layers", &Llama::layers, 1, 10'000, "Of the decoder.")
        .integer("hidden", &Llama::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Llama::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("kv_heads", &Llama::kv_heads, 1, 10'000,
                 "Of keys and values; they divide the heads.")
        .integer("intermediate", &Llama::intermediate, 1, 1 << 24,
                 "Width inside of the feed-forward layers.")
        .integer("vocabulary", &Llama::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .integer("window", &Llama::window, 0, 1 << 24,
                 "Tokens that attention looks back over; 0: all.");
  }
};

Value feed_forward(Net& net, const Value& x, const Llama& options) {
  const auto scope = net.scope("mlp");
  const Value gate = silu(net, linear(net, "gate_proj", x, options.intermediate, false));
  const Value up = linear(net, "up_proj", x, options.intermediate, false);
  return linear(net, "down_proj", mul(net, gate, up), options.hidden, false);
}

void build(Net& net, const Llama& options) {
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
        .mask = mask_unless(options.fused(), net, options.sequence),
        .window = options.window};
    x = embedding(net, "embed_tokens", ids, options.vocabulary, options.hidden);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      const Value normed = rms_norm(net, "input_layernorm", x);
      x = add(net, x, grouped_attention(net, "self_attn", normed, attention));
      x = add(net, x, feed_forward(net, rms_norm(net, "post_attention_layernorm", x), options));
    }
    x = rms_norm(net, "norm", x);
  }
  classification_loss(net, linear(net, "lm_head", x, options.vocabulary, false), labels);
}

}  // namespace

std::vector<ModelInfo> llama_models() {
  return {
      model<Llama>({.name = "llama-7b",
                    .summary = "Llama of 7 billion parameters.",
                    .source = "Touvron et al. 2023; Hugging Face LlamaForCausalLM, llama-7b",
                    .parameters = 6'738'415'616},
                   build),
      model<Llama>({.name = "llama2-13b",
                    .summary = "Llama 2 of 13 billion parameters.",
                    .source = "Touvron et al. 2023b; Hugging Face LlamaForCausalLM, Llama-2-13b",
                    .parameters = 13'015'864'320},
                   build,
                   {{"layers", "40"},
                    {"hidden", "5120"},
                    {"heads", "40"},
                    {"kv_heads", "40"},
                    {"intermediate", "13824"}}),
      model<Llama>({.name = "llama3-8b",
                    .summary = "Llama 3 of 8 billion parameters, four queries to a key.",
                    .source = "Dubey et al. 2024; Hugging Face LlamaForCausalLM, Meta-Llama-3-8B",
                    .parameters = 8'030'261'248},
                   build, {{"kv_heads", "8"}, {"intermediate", "14336"}, {"vocabulary", "128256"}}),
      model<Llama>({.name = "llama3-70b",
                    .summary = "Llama 3 of 70 billion parameters, eight queries to a key.",
                    .source = "Dubey et al. 2024; Hugging Face LlamaForCausalLM, Meta-Llama-3-70B",
                    .parameters = 70'553'706'496},
                   build,
                   {{"layers", "80"},
                    {"hidden", "8192"},
                    {"heads", "64"},
                    {"kv_heads", "8"},
                    {"intermediate", "28672"},
                    {"vocabulary", "128256"}}),
      model<Llama>({.name = "mistral-7b",
                    .summary = "Mistral of 7 billion parameters, with a window of 4096 tokens.",
                    .source = "Jiang et al. 2023; Hugging Face MistralForCausalLM, Mistral-7B-v0.1",
                    .parameters = 7'241'732'096},
                   build, {{"kv_heads", "8"}, {"intermediate", "14336"}, {"window", "4096"}}),
  };
}

}  // namespace emplace::zoo

// GPT-2 (Radford et al. 2019), as Hugging Face's GPT2LMHeadModel has it: layers normalised before
// their residual branches, GELU in its tanh form, a decoder that is the embedding unless untied.
#include <cmath>
#include <numbers>

#include "base/error.h"

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Gpt2 : AttentionStep {
  Gpt2() {
    batch = 8;
    optimizer = "adam";
  }

  std::int64_t sequence = 1024;
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 1024;
  bool tied = true;
  double dropout = 0.1;

  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }

  static OptionSchema<Gpt2> schema() {
    return attention_schema<Gpt2>()
        .integer("sequence", &Gpt2::sequence, 2, 1 << 20, "Tokens of an example.")
        .integer("layers", &Gpt2::layers, 1, 10'000, "Of the decoder.")
        .integer("hidden", &Gpt2::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Gpt2::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("intermediate", &Gpt2::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("vocabulary", &Gpt2::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .integer("positions", &Gpt2::positions, 1, 1 << 20, "Rows of the position table.")
        .flag("tied", &Gpt2::tied, "The decoder of tokens is the embedding.")
        .real("dropout", &Gpt2::dropout, 0, 0.99, "Everywhere.");
  }
};

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), op by op as the published code has it:
// training keeps five tensors of its size, a fused operator would keep two.
Value tanh_gelu(Net& net, const Value& x) {
  const Value half = scale(net, x, 0.5);
  const Value cube = binary(net, "Pow", x, net.scalar(3));
  const Value bent = add(net, x, scale(net, cube, 0.044715));
  const Value gate = tanh(net, scale(net, bent, std::sqrt(2 / std::numbers::pi)));
  return mul(net, half, add(net, gate, net.scalar(1)));
}

Value attention(Net& net, const Value& x, const std::optional<Value>& mask, const Gpt2& options) {
  const auto scope = net.scope("attn");
  const Values parts = split_evenly(net, linear(net, "c_attn", x, 3 * options.hidden), 3, -1);
  const Value q = split_heads(net, parts[0], options.heads);
  const Value k = split_heads(net, parts[1], options.heads);
  const Value v = split_heads(net, parts[2], options.heads);
  const Value attended = attend(net, q, k, v,
                                {.dropout = options.dropout,
                                 .fused = options.fused(),
                                 .mask = mask ? &*mask : nullptr,
                                 .causal = true});
  const Value y = linear(net, "c_proj", merge_heads(net, attended), options.hidden);
  return dropout(net, y, options.dropout);
}

Value feed_forward(Net& net, const Value& x, const Gpt2& options) {
  const auto scope = net.scope("mlp");
  const Value inner = tanh_gelu(net, linear(net, "c_fc", x, options.inner()));
  return dropout(net, linear(net, "c_proj", inner, options.hidden), options.dropout);
}

// Each position predicts the next one, so the last has no label and the first is none.
Value next_token_loss(Net& net, const Value& logits, const Value& labels) {
  const std::int64_t length = labels.dim(1);
  return classification_loss(net, slice(net, logits, 1, 0, length - 1),
                             slice(net, labels, 1, 1, length));
}

void build(Net& net, const Gpt2& options) {
  if (options.sequence > options.positions) {
    fail_option(
        "sequence {} is longer than the table of positions; expected at most {} (or more "
        "positions)",
        options.sequence, options.positions);
  }
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  const Value positions = net.input("position_ids", {1, options.sequence}, DType::kInt64);
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  const auto mask = mask_unless(options.fused(), net, options.sequence);
  Value words;
  Value x;
  {
    const auto scope = net.scope("transformer");
    {
      const auto table = net.scope("wte");
      words = net.parameter("weight", {options.vocabulary, options.hidden});
      x = gather(net, words, ids);
    }
    x = add(net, x, embedding(net, "wpe", positions, options.positions, options.hidden));
    x = dropout(net, x, options.dropout);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("h", i);
      x = add(net, attention(net, layer_norm(net, "ln_1", x), mask, options), x);
      x = add(net, x, feed_forward(net, layer_norm(net, "ln_2", x), options));
    }
    x = layer_norm(net, "ln_f", x);
  }
  const auto scope = net.scope("lm_head");
  if (!options.tied) words = net.parameter("weight", {options.vocabulary, options.hidden});
  next_token_loss(net, project(net, x, words), labels);
}

ModelInfo gpt2(std::string name, std::string hub_name, std::int64_t parameters,
               const OptionValues& preset) {
  std::string layers = "12";
  for (const auto& [key, value] : preset) layers = key == "layers" ? value : layers;
  return model<Gpt2>({.name = std::move(name),
                      .summary = fmt::format("GPT-2 of {} layers.", layers),
                      .source = "Radford et al. 2019; Hugging Face GPT2LMHeadModel, " + hub_name,
                      .parameters = parameters},
                     build, preset);
}

}  // namespace

std::vector<ModelInfo> gpt2_models() {
  return {
      gpt2("gpt2-small", "gpt2", 124'439'808, {}),
      gpt2("gpt2-medium", "gpt2-medium", 354'823'168,
           {{"layers", "24"}, {"hidden", "1024"}, {"heads", "16"}}),
      gpt2("gpt2-large", "gpt2-large", 774'030'080,
           {{"layers", "36"}, {"hidden", "1280"}, {"heads", "20"}}),
      gpt2("gpt2-xl", "gpt2-xl", 1'557'611'200,
           {{"layers", "48"}, {"hidden", "1600"}, {"heads", "25"}}),
  };
}

}  // namespace emplace::zoo

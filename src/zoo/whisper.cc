// Whisper (Radford et al. 2022), as Hugging Face's WhisperForConditionalGeneration has it: an
// encoder of spectrograms, halved by convolutions, and a decoder of text whose output table is its
// embedding. The encoder's positions are sinusoids, which are not trained.
#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Whisper : AttentionStep {
  Whisper() {
    attention = "fused";
    batch = 16;
    dtype = "float16";
    optimizer = "adam";
  }

  std::int64_t frames = 3000;
  std::int64_t bands = 128;
  std::int64_t target = 448;
  std::int64_t layers = 32;
  std::int64_t hidden = 1280;
  std::int64_t heads = 20;
  std::int64_t vocabulary = 51866;

  static OptionSchema<Whisper> schema() {
    return attention_schema<Whisper>()
        .integer("frames", &Whisper::frames, 2, 1 << 20, "Of a spectrogram: 100 a second.")
        .integer("bands", &Whisper::bands, 1, 1 << 16, "Of a spectrogram.")
        .integer("target", &Whisper::target, 1, 1 << 20, "Tokens of a target.")
        .integer("layers", &Whisper::layers, 1, 10'000, "Of the encoder, and of the decoder.")
        .integer("hidden", &Whisper::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Whisper::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("vocabulary", &Whisper::vocabulary, 1, 1 << 24, "Distinct tokens.");
  }
};

// Encoder or decoder while it is built.
class WhisperStack {
 public:
  WhisperStack(Net& net, const Whisper& options) : net_(net), options_(options) {}

  // Queries from x, keys and values from `seen` (nullptr: from x too); normalised before, and
  // added.
  Value attention(std::string_view name, const Value& x, const Value* seen, bool causal = false,
                  const std::optional<Value>& mask = {}) {
    const Value normed = layer_norm(net_, std::string(name) + "_layer_norm", x);
    return add(net_, x, attend_to(name, normed, seen == nullptr ? normed : *seen, causal, mask));
  }

  Value feed_forward(const Value& x) {
    const Value normed = layer_norm(net_, "final_layer_norm", x);
    const Value inner = gelu(net_, linear(net_, "fc1", normed, 4 * options_.hidden));
    return add(net_, x, linear(net_, "fc2", inner, options_.hidden));
  }

 private:
  Value attend_to(std::string_view name, const Value& x, const Value& seen, bool causal,
                  const std::optional<Value>& mask) {
    const auto scope = net_.scope(name);
    const Value q = split_heads(net_, linear(net_, "q_proj", x, options_.hidden), options_.heads);
    const Value k =
        split_heads(net_, linear(net_, "k_proj", seen, options_.hidden, false), options_.heads);
    const Value v =
        split_heads(net_, linear(net_, "v_proj", seen, options_.hidden), options_.heads);
    const AttentionOptions how{
        .fused = options_.fused(), .mask = mask ? &*mask : nullptr, .causal = causal};
    const Value attended = merge_heads(net_, attend(net_, q, k, v, how));
    return linear(net_, "out_proj", attended, options_.hidden);
  }

  Net& net_;
  const Whisper& options_;
};

Value encode(Net& net, const Whisper& options) {
  const Value sound = net.input("input_features", {options.batch, options.bands, options.frames});
  const auto scope = net.scope("encoder");
  const Value first = gelu(net, conv_layer(net, "conv1", sound, options.hidden, same(3), true));
  const Value halved = gelu(net, conv_layer(net, "conv2", first, options.hidden, same(3, 2), true));
  Value x = transpose(net, halved, {0, 2, 1});
  {
    const auto table = net.scope("embed_positions");
    x = add(net, x, net.buffer("weight", {x.dim(1), options.hidden}));
  }
  WhisperStack stack(net, options);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = net.scope("layers", i);
    x = stack.feed_forward(stack.attention("self_attn", x, nullptr));
  }
  return layer_norm(net, "layer_norm", x);
}

// The decoder's states, and its table of tokens.
std::pair<Value, Value> decode(Net& net, const Whisper& options, const Value& encoded) {
  const Value ids = net.input("decoder_input_ids", {options.batch, options.target}, DType::kInt64);
  const auto scope = net.scope("decoder");
  const auto mask = mask_unless(options.fused(), net, options.target);
  Value words;
  Value x;
  {
    const auto table = net.scope("embed_tokens");
    words = net.parameter("weight", {options.vocabulary, options.hidden});
    x = gather(net, words, ids);
  }
  {
    const auto table = net.scope("embed_positions");
    x = add(net, x, net.parameter("weight", {options.target, options.hidden}));
  }
  WhisperStack stack(net, options);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = net.scope("layers", i);
    x = stack.attention("self_attn", x, nullptr, true, mask);
    x = stack.feed_forward(stack.attention("encoder_attn", x, &encoded));
  }
  return {layer_norm(net, "layer_norm", x), words};
}

void build(Net& net, const Whisper& options) {
  const Value labels = net.input("labels", {options.batch, options.target}, DType::kInt64);
  const auto scope = net.scope("model");
  const Value encoded = encode(net, options);
  const auto [decoded, words] = decode(net, options, encoded);
  classification_loss(net, project(net, decoded, words), labels);
}

}  // namespace

std::vector<ModelInfo> whisper_models() {
  const std::string source = "Radford et al. 2022; openai/whisper, trained parameters, ";
  return {
      model<Whisper>({.name = "whisper-large",
                      .summary = "Whisper, large (version 3): speech to text.",
                      .source = source + "large-v3",
                      .parameters = 1'541'570'560},
                     build),
      model<Whisper>({.name = "whisper-tiny",
                      .summary = "Whisper, tiny: speech to text.",
                      .source = source + "tiny",
                      .parameters = 37'184'640},
                     build,
                     {{"bands", "80"},
                      {"layers", "4"},
                      {"hidden", "384"},
                      {"heads", "6"},
                      {"vocabulary", "51865"}}),
  };
}

}  // namespace emplace::zoo

// T5 (Raffel et al. 2020), the first version, as Hugging Face's T5ForConditionalGeneration has it:
// RMS normalisation before the residual branches, no biases, scores that are not scaled, relative
// positions as a learned bias of the scores which all layers of a stack share, one table for both
// embeddings and the decoder of tokens.
#include <cmath>

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct T5 : StepOptions {
  T5() { optimizer = "adam"; }

  std::int64_t sequence = 512;
  std::int64_t target = 114;
  std::int64_t layers = 6;
  std::int64_t hidden = 512;
  std::int64_t heads = 8;
  std::int64_t head_size = 64;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 32128;
  std::int64_t buckets = 32;
  double dropout = 0.1;

  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }

  static OptionSchema<T5> schema() {
    return step_schema<T5>()
        .integer("sequence", &T5::sequence, 1, 1 << 20, "Tokens of an input.")
        .integer("target", &T5::target, 1, 1 << 20,
                 "Tokens of a target (114: what pre-training makes of 512).")
        .integer("layers", &T5::layers, 1, 10'000, "Of the encoder, and of the decoder.")
        .integer("hidden", &T5::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &T5::heads, 1, 10'000, "Of attention.")
        .integer("head_size", &T5::head_size, 1, 1 << 16, "Width of a head.")
        .integer("intermediate", &T5::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("vocabulary", &T5::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .integer("buckets", &T5::buckets, 1, 1 << 16, "Of relative positions.")
        .real("dropout", &T5::dropout, 0, 0.99, "Everywhere.");
  }
};

// A stack of blocks while it is built: encoder or decoder.
class T5Stack {
 public:
  T5Stack(Net& net, const T5& options) : net_(net), options_(options) {}

  // [1, heads, length, length], from the number of the bucket of every pair of positions.
  Value position_bias(std::int64_t length) {
    const Value buckets = net_.input("relative_buckets", {length, length}, DType::kInt64);
    const auto scope = net_.scope("block.0.layer.0.SelfAttention");
    const Value bias =
        embedding(net_, "relative_attention_bias", buckets, options_.buckets, options_.heads);
    return unsqueeze(net_, transpose(net_, bias, {2, 0, 1}), 0);
  }

  // Queries from x, keys and values from `seen` (nullptr: from x too).
  Value attention(std::int64_t index, std::string_view name, const Value& x, const Value* seen,
                  const Value* bias) {
    const auto scope = net_.scope("layer", index);
    const Value normed = rms_norm(net_, "layer_norm", x);
    return after(x, attend_to(name, normed, seen == nullptr ? normed : *seen, bias));
  }

  Value feed_forward(std::int64_t index, const Value& x) {
    const auto scope = net_.scope("layer", index);
    const Value normed = rms_norm(net_, "layer_norm", x);
    return after(x, dense_relu_dense(normed));
  }

  Value drop(const Value& x) { return dropout(net_, x, options_.dropout); }

 private:
  Value attend_to(std::string_view name, const Value& x, const Value& seen, const Value* bias) {
    const auto scope = net_.scope(name);
    const std::int64_t width = options_.heads * options_.head_size;
    const Value q = split_heads(net_, linear(net_, "q", x, width, false), options_.heads);
    const Value k = split_heads(net_, linear(net_, "k", seen, width, false), options_.heads);
    const Value v = split_heads(net_, linear(net_, "v", seen, width, false), options_.heads);
    Value scores = matmul(net_, q, transpose(net_, k, {0, 1, 3, 2}));
    if (bias != nullptr) scores = add(net_, scores, *bias);
    const Value attended = matmul(net_, drop(softmax(net_, scores)), v);
    return linear(net_, "o", merge_heads(net_, attended), options_.hidden, false);
  }

  Value dense_relu_dense(const Value& x) {
    const auto scope = net_.scope("DenseReluDense");
    const Value inner = relu(net_, linear(net_, "wi", x, options_.inner(), false));
    return linear(net_, "wo", drop(inner), options_.hidden, false);
  }

  Value after(const Value& x, const Value& branch) { return add(net_, x, drop(branch)); }

  Net& net_;
  const T5& options_;
};

Value encode(Net& net, T5Stack& stack, const T5& options, const Value& embedded) {
  const auto scope = net.scope("encoder");
  const Value bias = stack.position_bias(embedded.dim(1));
  Value x = stack.drop(embedded);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = net.scope("block", i);
    x = stack.attention(0, "SelfAttention", x, nullptr, &bias);
    x = stack.feed_forward(1, x);
  }
  return stack.drop(rms_norm(net, "final_layer_norm", x));
}

Value decode(Net& net, T5Stack& stack, const T5& options, const Value& embedded,
             const Value& encoded) {
  const auto scope = net.scope("decoder");
  const std::int64_t length = embedded.dim(1);
  const Value bias = add(net, stack.position_bias(length), causal_mask(net, length));
  Value x = stack.drop(embedded);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = net.scope("block", i);
    x = stack.attention(0, "SelfAttention", x, nullptr, &bias);
    x = stack.attention(1, "EncDecAttention", x, &encoded, nullptr);
    x = stack.feed_forward(2, x);
  }
  return stack.drop(rms_norm(net, "final_layer_norm", x));
}

void build(Net& net, const T5& options) {
  const Value source = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  const Value target =
      net.input("decoder_input_ids", {options.batch, options.target}, DType::kInt64);
  const Value labels = net.input("labels", {options.batch, options.target}, DType::kInt64);
  Value table;
  Value source_tokens;
  Value target_tokens;
  {
    const auto scope = net.scope("shared");
    table = net.parameter("weight", {options.vocabulary, options.hidden});
    source_tokens = gather(net, table, source);
    target_tokens = gather(net, table, target);
  }
  T5Stack stack(net, options);
  const Value encoded = encode(net, stack, options, source_tokens);
  const Value decoded = decode(net, stack, options, target_tokens, encoded);
  const auto scope = net.scope("lm_head");
  // The table is scaled for embedding, so what it decodes is scaled down.
  const Value scaled = scale(net, decoded, 1 / std::sqrt(static_cast<double>(options.hidden)));
  classification_loss(net, project(net, scaled, table), labels);
}

ModelInfo t5(const std::string& name, const std::string& size, std::int64_t parameters,
             const OptionValues& preset) {
  return model<T5>(
      {.name = name,
       .summary = fmt::format("T5, {}, encoder and decoder.", size),
       .source = "Raffel et al. 2020; Hugging Face T5ForConditionalGeneration, " + name,
       .parameters = parameters},
      build, preset);
}

}  // namespace

std::vector<ModelInfo> t5_models() {
  return {
      t5("t5-small", "small", 60'506'624, {}),
      t5("t5-base", "base", 222'903'552, {{"layers", "12"}, {"hidden", "768"}, {"heads", "12"}}),
      t5("t5-large", "large", 737'668'096, {{"layers", "24"}, {"hidden", "1024"}, {"heads", "16"}}),
  };
}

}  // namespace emplace::zoo

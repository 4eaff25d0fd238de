// The transformer for translation (Vaswani et al. 2017): encoder and decoder, layers normalised
// after their residuals, sinusoidal positions, one table for both embeddings and the decoder of
// tokens.
//
// The paper gives 65 million parameters for its base model and 213 million for the big one, both
// with about 37,000 tokens. What it describes has 63.1 million (2.9 % fewer; a table of 40,700
// tokens would make 65) and 214.2 million (0.6 % more), so no exact number is published. Its
// smoothing of labels is no part of the graph: the loss is the plain cross entropy.
#include <cmath>

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Transformer : AttentionStep {
  Transformer() {
    batch = 64;
    optimizer = "adam";
  }

  std::int64_t sequence = 128;
  std::int64_t target = 0;
  std::int64_t layers = 6;
  std::int64_t hidden = 512;
  std::int64_t heads = 8;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 37000;
  double dropout = 0.1;

  std::int64_t target_length() const { return target > 0 ? target : sequence; }
  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }

  static OptionSchema<Transformer> schema() {
    return attention_schema<Transformer>()
        .integer("sequence", &Transformer::sequence, 1, 1 << 20, "Tokens of a source sentence.")
        .integer("target", &Transformer::target, 0, 1 << 20,
                 "Tokens of a target sentence; 0: as many as of the source.")
        .integer("layers", &Transformer::layers, 1, 10'000, "Of the encoder, and of the decoder.")
        .integer("hidden", &Transformer::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Transformer::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("intermediate", &Transformer::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("vocabulary", &Transformer::vocabulary, 1, 1 << 24,
                 "Distinct tokens of both languages.")
        .real("dropout", &Transformer::dropout, 0, 0.99, "Of embeddings and residual branches.");
  }
};

// A stack of layers while it is built: encoder or decoder.
class Stack {
 public:
  Stack(Net& net, const Transformer& options) : net_(net), options_(options) {}

  // Token embeddings times the root of the width, plus positions.
  Value embed(const Value& ids, const Value& table) {
    const Value scaled =
        scale(net_, gather(net_, table, ids), std::sqrt(static_cast<double>(options_.hidden)));
    const Value positions = net_.buffer("positions", {ids.dim(1), options_.hidden});
    return dropout(net_, add(net_, scaled, positions), options_.dropout);
  }

  // Queries from x, keys and values from `seen`.
  Value attention(std::string_view name, const Value& x, const Value& seen, bool causal = false,
                  const std::optional<Value>& mask = {}) {
    const auto scope = net_.scope(name);
    const Value q = split_heads(net_, linear(net_, "q", x, options_.hidden), options_.heads);
    const Value k = split_heads(net_, linear(net_, "k", seen, options_.hidden), options_.heads);
    const Value v = split_heads(net_, linear(net_, "v", seen, options_.hidden), options_.heads);
    const AttentionOptions how{
        .fused = options_.fused(), .mask = mask ? &*mask : nullptr, .causal = causal};
    const Value attended = merge_heads(net_, attend(net_, q, k, v, how));
    return after(x, linear(net_, "out", attended, options_.hidden));
  }

  Value feed_forward(const Value& x) {
    const auto scope = net_.scope("feed_forward");
    const Value inner = relu(net_, linear(net_, "linear1", x, options_.inner()));
    return after(x, linear(net_, "linear2", inner, options_.hidden));
  }

 private:
  Value after(const Value& x, const Value& branch) {
    return layer_norm(net_, "norm", add(net_, x, dropout(net_, branch, options_.dropout)));
  }

  Net& net_;
  const Transformer& options_;
};

void build(Net& net, const Transformer& options) {
  const std::int64_t batch = options.batch;
  const std::int64_t length = options.target_length();
  const Value source = net.input("source", {batch, options.sequence}, DType::kInt64);
  const Value target = net.input("target", {batch, length}, DType::kInt64);
  const Value labels = net.input("labels", {batch, length}, DType::kInt64);
  Value table;
  {
    const auto scope = net.scope("embedding");
    table = net.parameter("weight", {options.vocabulary, options.hidden});
  }
  Stack stack(net, options);
  Value encoded;
  {
    const auto scope = net.scope("encoder");
    encoded = stack.embed(source, table);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      encoded = stack.feed_forward(stack.attention("self_attention", encoded, encoded));
    }
  }
  Value x;
  {
    const auto scope = net.scope("decoder");
    const auto mask = mask_unless(options.fused(), net, length);
    x = stack.embed(target, table);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      x = stack.attention("self_attention", x, x, true, mask);
      x = stack.feed_forward(stack.attention("cross_attention", x, encoded));
    }
  }
  const auto scope = net.scope("generator");
  classification_loss(net, project(net, x, table), labels);
}

}  // namespace

std::vector<ModelInfo> transformer_models() {
  return {
      model<Transformer>({.name = "transformer-base",
                          .summary = "Transformer for translation, base (published: about 65 M).",
                          .source = "Vaswani et al. 2017"},
                         build),
      model<Transformer>({.name = "transformer-big",
                          .summary = "Transformer for translation, big (published: about 213 M).",
                          .source = "Vaswani et al. 2017"},
                         build, {{"hidden", "1024"}, {"heads", "16"}, {"dropout", "0.3"}}),
  };
}

}  // namespace emplace::zoo

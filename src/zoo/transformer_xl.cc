// Transformer-XL (Dai et al. 2019): a sequence in segments, each of which also attends to what
// every layer computed for the segment before it, without sending gradients there.
//
// Positions are relative, and kept in one of two ways. "table": a learned bias of the scores for
// every pair of places in segment and memory, which stands for mask and distance alike and is how
// the benchmark of learned placers builds the model. "sinusoid": the paper's, in which a query
// meets a projection of the sinusoid of its distance, with two learned biases and a causal mask.
#include <cmath>

#include "base/error.h"

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct TransformerXl : StepOptions {
  TransformerXl() { optimizer = "adam"; }

  std::int64_t sequence = 256;
  std::int64_t segment = 128;
  std::int64_t layers = 8;
  std::int64_t hidden = 1024;
  std::int64_t heads = 16;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 32000;
  std::string positions = "table";
  double dropout = 0;

  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }
  bool sinusoid() const { return positions == "sinusoid"; }

  static OptionSchema<TransformerXl> schema() {
    using Xl = TransformerXl;
    return step_schema<Xl>()
        .integer("sequence", &Xl::sequence, 1, 1 << 24, "Tokens of an example.")
        .integer("segment", &Xl::segment, 1, 1 << 20,
                 "Tokens of a segment, and of the memory; it divides the sequence.")
        .integer("layers", &Xl::layers, 1, 10'000, "Of the decoder.")
        .integer("hidden", &Xl::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Xl::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("intermediate", &Xl::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("vocabulary", &Xl::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .choice("positions", &Xl::positions, {"table", "sinusoid"},
                "A learned bias for each pair of places, or the paper's relative encoding.")
        .real("dropout", &Xl::dropout, 0, 0.99, "Of residual branches and inner activations.");
  }
};

struct Norm {
  Value weight;
  Value bias;
};

struct Layer {
  Value q, kv, o;
  Value table;                 // positions=table
  Value r, content, distance;  // positions=sinusoid
  Value inner, inner_bias, outer, outer_bias;
  Norm attention_norm, output_norm;
};

// What all layers and segments share.
struct Shared {
  Value distances;  // sinusoids [memory + segment, hidden]
  Value mask;
};

class Builder {
 public:
  Builder(Net& net, const TransformerXl& options) : net_(net), options_(options) {
    if (options_.sinusoid()) {
      shared_.distances = net.buffer("distances", {2 * options.segment, options.hidden});
      shared_.mask = causal_mask(net, options.segment, options.segment);
    }
    for (std::int64_t i = 0; i < options.layers; ++i) layers_.push_back(parameters(i));
  }

  // The layers' inputs, which are the memory of the next segment, are left in `memory`.
  Value segment(std::int64_t index, Value x, Values& memory) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto at = net_.scope("layers", static_cast<std::int64_t>(i));
      const auto scope = net_.scope("segment", index);
      const Value seen = concat(net_, {memory[i], x}, 1);
      memory[i] = x;
      const Value attended = attention(layers_[i], x, seen);
      x = normalise(layers_[i].attention_norm, add(net_, x, drop(attended)));
      x = normalise(layers_[i].output_norm, add(net_, x, drop(feed_forward(layers_[i], x))));
    }
    return x;
  }

  // Gradients end here: truncated back-propagation. ONNX knows no such operator; attributes that
  // begin with two underscores are allowed on any.
  Value detach(std::size_t layer, const Value& x) {
    const auto at = net_.scope("layers", static_cast<std::int64_t>(layer));
    return net_.add_one("Identity", {x}, tensor_type(x.shape, x.dtype),
                        {{"__stop_gradient", std::int64_t{1}}});
  }

 private:
  Layer parameters(std::int64_t index) {
    const auto at = net_.scope("layers", index);
    const std::int64_t hidden = options_.hidden;
    Layer layer;
    layer.q = net_.parameter("q.weight", {hidden, hidden});
    layer.kv = net_.parameter("kv.weight", {2 * hidden, hidden});
    layer.o = net_.parameter("o.weight", {hidden, hidden});
    if (options_.sinusoid()) {
      const std::int64_t size = hidden / options_.heads;
      layer.r = net_.parameter("r.weight", {hidden, hidden});
      layer.content = net_.parameter("content_bias", {options_.heads, 1, size});
      layer.distance = net_.parameter("distance_bias", {options_.heads, 1, size});
    } else {
      layer.table =
          net_.parameter("position_bias", {options_.heads, options_.segment, 2 * options_.segment});
    }
    layer.inner = net_.parameter("inner.weight", {options_.inner(), hidden});
    layer.inner_bias = net_.parameter("inner.bias", {options_.inner()});
    layer.outer = net_.parameter("outer.weight", {hidden, options_.inner()});
    layer.outer_bias = net_.parameter("outer.bias", {hidden});
    layer.attention_norm = norm("attention_norm");
    layer.output_norm = norm("output_norm");
    return layer;
  }

  Norm norm(const std::string& name) {
    return {net_.parameter(name + ".weight", {options_.hidden}),
            net_.parameter(name + ".bias", {options_.hidden})};
  }

  Value normalise(const Norm& norm, const Value& x) {
    return net_.add_one("LayerNormalization", {x, norm.weight, norm.bias},
                        tensor_type(x.shape, x.dtype),
                        {{"axis", std::int64_t{-1}}, {"epsilon", 1e-5}});
  }

  Value drop(const Value& x) { return dropout(net_, x, options_.dropout); }

  Value attention(const Layer& layer, const Value& x, const Value& seen) {
    const Value q = split_heads(net_, project(net_, x, layer.q), options_.heads);
    const Values both = split_evenly(net_, project(net_, seen, layer.kv), 2, -1);
    const Value k = split_heads(net_, both[0], options_.heads);
    const Value v = split_heads(net_, both[1], options_.heads);
    const Value attended = options_.sinusoid()
                               ? matmul(net_, softmax(net_, relative_scores(layer, q, k)), v)
                               : attend(net_, q, k, v, {.mask = &layer.table});
    return project(net_, merge_heads(net_, attended), layer.o);
  }

  // Equation 1 of the paper's section 3.3 and, for the distances, its appendix B: the scores of all
  // distances are computed at once and every row is then moved to where its distances begin.
  Value relative_scores(const Layer& layer, const Value& q, const Value& k) {
    const std::int64_t heads = options_.heads;
    const std::int64_t queries = q.dim(2);
    const std::int64_t keys = k.dim(2);
    const Value r =
        reshape(net_, project(net_, shared_.distances, layer.r), {keys, heads, q.last()});
    const Value content =
        matmul(net_, add(net_, q, layer.content), transpose(net_, k, {0, 1, 3, 2}));
    const Value distance =
        matmul(net_, add(net_, q, layer.distance), transpose(net_, r, {1, 2, 0}));
    const Value padded = pad(net_, distance, {0, 0, 0, 1, 0, 0, 0, 0});
    const Value skewed = reshape(net_, padded, {q.dim(0), heads, keys + 1, queries});
    const Value shifted =
        reshape(net_, slice(net_, skewed, 2, 1, keys + 1), {q.dim(0), heads, queries, keys});
    const Value scores =
        scale(net_, add(net_, content, shifted), 1 / std::sqrt(static_cast<double>(q.last())));
    return add(net_, scores, shared_.mask);
  }

  Value feed_forward(const Layer& layer, const Value& x) {
    const Value inner = relu(net_, project(net_, x, layer.inner, layer.inner_bias));
    return project(net_, drop(inner), layer.outer, layer.outer_bias);
  }

  Net& net_;
  const TransformerXl& options_;
  Shared shared_;
  std::vector<Layer> layers_;
};

struct Tables {
  Value words;
  Value decoder, decoder_bias;
};

void check(const TransformerXl& options) {
  if (options.sequence % options.segment != 0) {
    fail_option("sequence {} is not made of segments of {}; expected a multiple", options.sequence,
                options.segment);
  }
  if (options.hidden % options.heads != 0) {
    fail_option("hidden {} is not divisible by {} heads", options.hidden, options.heads);
  }
}

void build(Net& net, const TransformerXl& options) {
  check(options);
  const std::int64_t length = options.segment;
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  // Before the first segment there is nothing: zeros, the same for all layers.
  const Value nothing = net.input("memory", {options.batch, length, options.hidden});
  Tables tables;
  {
    const auto scope = net.scope("embedding");
    tables.words = net.parameter("weight", {options.vocabulary, options.hidden});
  }
  {
    const auto scope = net.scope("projection");
    tables.decoder = net.parameter("weight", {options.vocabulary, options.hidden});
    tables.decoder_bias = net.parameter("bias", {options.vocabulary});
  }
  Builder builder(net, options);
  Values memory(static_cast<std::size_t>(options.layers), nothing);
  Values losses;
  for (std::int64_t i = 0; i < options.sequence / length; ++i) {
    const std::int64_t start = i * length;
    Value x;
    {
      const auto scope = net.scope("embedding.segment", i);
      x = gather(net, tables.words, slice(net, ids, 1, start, start + length));
    }
    if (i > 0) {
      for (std::size_t k = 0; k < memory.size(); ++k) memory[k] = builder.detach(k, memory[k]);
    }
    x = builder.segment(i, x, memory);
    const auto scope = net.scope("projection.segment", i);
    losses.push_back(classification_loss(net, project(net, x, tables.decoder, tables.decoder_bias),
                                         slice(net, labels, 1, start, start + length)));
  }
  sum(net, losses);
}

ModelInfo transformer_xl(std::int64_t layers) {
  return model<TransformerXl>(
      {.name = fmt::format("transformer-xl-{}", layers),
       .summary = fmt::format("Transformer-XL of {} layers, two segments in a step.", layers),
       .source = "Dai et al. 2019, with the sizes of the benchmark of learned placers"},
      build, {{"layers", fmt::format("{}", layers)}});
}

}  // namespace

std::vector<ModelInfo> transformer_xl_models() {
  return {transformer_xl(2), transformer_xl(4), transformer_xl(8)};
}

}  // namespace emplace::zoo

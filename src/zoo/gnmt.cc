// Wu et al. 2016, "Google's Neural Machine Translation System": an encoder of LSTM layers of which
// the first reads the sentence in both directions, a decoder of as many layers, and additive
// attention (Bahdanau et al. 2015) of the decoder's first layer over the encoder's outputs. From
// the third layer on, a layer's input is added to its output. What attention found goes to the
// upper decoder layers at the same step and to the first at the next. All is unrolled in time.
#include "zoo/gnmt.h"

#include "zoo/model.h"
#include "zoo/models.h"
#include "zoo/recurrent.h"

namespace emplace::zoo {
namespace {

constexpr int kFirstResidual = 2;  // the third layer

struct Gnmt : StepOptions {
  std::int64_t layers = GnmtShape{}.layers;
  std::int64_t hidden = GnmtShape{}.hidden;
  std::int64_t sequence = GnmtShape{}.sequence;
  std::int64_t vocabulary = GnmtShape{}.vocabulary;

  Gnmt() {
    batch = GnmtShape{}.batch;
    optimizer = "adam";
  }

  static OptionSchema<Gnmt> schema() {
    return step_schema<Gnmt>()
        .integer("layers", &Gnmt::layers, 2, 256, "LSTM layers of the encoder and of the decoder.")
        .integer("hidden", &Gnmt::hidden, 1, 1 << 16, "Width of the layers and word vectors.")
        .integer("sequence", &Gnmt::sequence, 1, 1 << 12, "Words of the source and of the target.")
        .integer("vocabulary", &Gnmt::vocabulary, 2, 1 << 24, "Words of each language.");
  }
};

// Reads a sentence, each word's inputs in turn, and returns what the layer says of each word.
Values read(Net& net, LstmLayer& layer, const std::vector<Values>& words, bool residual) {
  Values outputs;
  for (std::size_t t = 0; t < words.size(); ++t) {
    outputs.push_back(layer.step(net, words[t], static_cast<std::int64_t>(t), residual));
  }
  return outputs;
}

Values read_backwards(Net& net, LstmLayer& layer, const std::vector<Values>& words) {
  Values outputs(words.size());
  for (std::size_t t = words.size(); t-- > 0;) {
    outputs[t] = layer.step(net, words[t], static_cast<std::int64_t>(t));
  }
  return outputs;
}

// [n, hidden] of every source word.
Values encode(Net& net, const GnmtShape& shape, const WordVectors& vectors) {
  std::vector<Values> words;
  for (std::int64_t t = 0; t < shape.sequence; ++t) words.push_back({vectors.step(net, t)});
  const auto scope = net.scope("encoder");
  LstmLayer forward(net, "layer.0.fw", shape.hidden, shape.hidden);
  LstmLayer backward(net, "layer.0.bw", shape.hidden, shape.hidden);
  const Values from_left = read(net, forward, words, false);
  const Values from_right = read_backwards(net, backward, words);
  for (std::size_t t = 0; t < words.size(); ++t) words[t] = {from_left[t], from_right[t]};

  Values outputs;
  for (std::int64_t i = 1; i < shape.layers; ++i) {
    const std::int64_t in = i == 1 ? 2 * shape.hidden : shape.hidden;
    LstmLayer layer(net, fmt::format("layer.{}", i), in, shape.hidden);
    outputs = read(net, layer, words, i >= kFirstResidual);
    for (std::size_t t = 0; t < words.size(); ++t) words[t] = {outputs[t]};
  }
  return outputs;
}

// v . tanh(W q + U k) for every source word's k, and the mean of the k weighted by its softmax.
class AdditiveAttention {
 public:
  AdditiveAttention(Net& net, const Values& states) {
    const auto scope = net.scope("attention");
    const std::int64_t hidden = states[0].last();
    query_ = net.parameter("query.weight", {hidden, hidden});
    score_ = net.parameter("score.weight", {1, hidden});
    Values rows;
    for (const Value& state : states) rows.push_back(unsqueeze(net, state, 1));
    memory_ = concat(net, rows, 1);
    keys_ = linear(net, "key", memory_, hidden, false);
  }

  // [n, hidden] to [n, hidden].
  Value look(Net& net, const Value& query, std::int64_t step) const {
    const auto scope = net.scope("attention");
    const auto step_scope = net.scope("step", step);
    const Value asked = unsqueeze(net, gemm(net, query, query_, std::nullopt), 1);
    const Value match = tanh(net, add(net, keys_, asked));
    const Value flat = reshape(net, match, {-1, match.last()});
    const Value scores =
        reshape(net, gemm(net, flat, score_, std::nullopt), {match.dim(0), match.dim(1)});
    const Value weights = unsqueeze(net, softmax(net, scores), 1);
    return squeeze(net, matmul(net, weights, memory_), 1);
  }

 private:
  Value query_;
  Value score_;
  Value memory_;  // [n, words, hidden]
  Value keys_;
};

class Decoder {
 public:
  Decoder(Net& net, const GnmtShape& shape, const Values& states) : attention_(net, states) {
    const auto scope = net.scope("decoder");
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      layers_.emplace_back(net, fmt::format("layer.{}", i), 2 * shape.hidden, shape.hidden);
    }
    context_ = zeros(net, {shape.batch, shape.hidden});
  }

  // The top layer's output for a word's vector.
  Value step(Net& net, const Value& vector, std::int64_t step) {
    Value x = run(net, 0, vector, step);
    context_ = attention_.look(net, x, step);
    for (std::size_t i = 1; i < layers_.size(); ++i) x = run(net, i, x, step);
    return x;
  }

 private:
  Value run(Net& net, std::size_t i, const Value& x, std::int64_t step) {
    const auto scope = net.scope("decoder");
    return layers_[i].step(net, {x, context_}, step, i >= kFirstResidual);
  }

  AdditiveAttention attention_;
  std::vector<LstmLayer> layers_;
  Value context_;
};

void build(Net& net, const Gnmt& options) {
  build_gnmt(net, {.batch = options.batch,
                   .sequence = options.sequence,
                   .layers = options.layers,
                   .hidden = options.hidden,
                   .vocabulary = options.vocabulary});
}

ModelInfo gnmt(std::int64_t layers) {
  return model<Gnmt>(
      {.name = fmt::format("gnmt-{}", layers),
       .summary = fmt::format("Translation with {}-layer LSTMs and attention, unrolled.", layers),
       .source = "Wu et al. 2016"},
      build, {{"layers", fmt::format("{}", layers)}});
}

}  // namespace

void build_gnmt(Net& net, const GnmtShape& shape) {
  const Shape words{shape.batch, shape.sequence};
  const WordVectors source(net, "source_embedding", shape.vocabulary, shape.hidden,
                           net.input("source", words, DType::kInt64));
  Decoder decoder(net, shape, encode(net, shape, source));
  const WordVectors target(net, "target_embedding", shape.vocabulary, shape.hidden,
                           net.input("target", words, DType::kInt64));
  WordClassifier classifier(net, "projection", shape.hidden, shape.vocabulary,
                            net.input("next_words", words, DType::kInt64));
  for (std::int64_t t = 0; t < shape.sequence; ++t) {
    classifier.step(net, decoder.step(net, target.step(net, t), t), t);
  }
  classifier.total(net);
}

std::vector<ModelInfo> gnmt_models() {
  return {gnmt(2), gnmt(4), gnmt(8)};
}

}  // namespace emplace::zoo

// The language model of device placement papers (Mirhoseini et al. 2017, "Device Placement
// Optimization with Reinforcement Learning"): a stack of LSTM layers (Zaremba et al. 2014,
// Jozefowicz et al. 2016), unrolled in time, with a softmax over all words at every step.
#include "zoo/model.h"
#include "zoo/models.h"
#include "zoo/recurrent.h"

namespace emplace::zoo {
namespace {

struct RnnLm : StepOptions {
  std::int64_t layers = 4;
  std::int64_t hidden = 2048;
  std::int64_t sequence = 40;
  std::int64_t vocabulary = 32'000;

  RnnLm() { batch = 64; }

  static OptionSchema<RnnLm> schema() {
    return step_schema<RnnLm>()
        .integer("layers", &RnnLm::layers, 1, 1024, "LSTM layers.")
        .integer("hidden", &RnnLm::hidden, 1, 1 << 16, "Width of the layers and word vectors.")
        .integer("sequence", &RnnLm::sequence, 1, 1 << 13, "Steps that are unrolled.")
        .integer("vocabulary", &RnnLm::vocabulary, 2, 1 << 24, "Words.");
  }
};

void build(Net& net, const RnnLm& options) {
  const Shape words{options.batch, options.sequence};
  const WordVectors vectors(net, "embedding", options.vocabulary, options.hidden,
                            net.input("words", words, DType::kInt64));
  std::vector<LstmLayer> layers;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    layers.emplace_back(net, fmt::format("layer.{}", i), options.hidden, options.hidden);
  }
  WordClassifier classifier(net, "projection", options.hidden, options.vocabulary,
                            net.input("next_words", words, DType::kInt64));
  for (std::int64_t t = 0; t < options.sequence; ++t) {
    Value x = vectors.step(net, t);
    for (LstmLayer& layer : layers) x = layer.step(net, {x}, t);
    classifier.step(net, x, t);
  }
  classifier.total(net);
}

}  // namespace

std::vector<ModelInfo> rnnlm_models() {
  return {model<RnnLm>({.name = "rnnlm",
                        .summary = "LSTM language model, unrolled in time.",
                        .source = "Zaremba et al. 2014; Mirhoseini et al. 2017"},
                       build)};
}

}  // namespace emplace::zoo

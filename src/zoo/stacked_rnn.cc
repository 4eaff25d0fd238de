// The large recurrent network on which Wang et al. 2019 ("Supporting Very Large Models using
// Automatic Dataflow Graph Partitioning", Tofu) partition tensors: six to ten LSTM layers of 4K to
// 8K units, 20 steps. The widths of input and output are chosen here: narrow, so that the weights,
// gradients and momentum of 10 layers of 8K come to 57 GiB and nearly all of it is the layers'.
#include "zoo/model.h"
#include "zoo/models.h"
#include "zoo/recurrent.h"

namespace emplace::zoo {
namespace {

struct StackedRnn : StepOptions {
  std::int64_t layers = 10;
  std::int64_t hidden = 8192;
  std::int64_t sequence = 20;
  std::int64_t input = 512;
  std::int64_t classes = 512;

  StackedRnn() {
    batch = 128;
    optimizer = "momentum";
  }

  static OptionSchema<StackedRnn> schema() {
    return step_schema<StackedRnn>()
        .integer("layers", &StackedRnn::layers, 1, 1024, "LSTM layers.")
        .integer("hidden", &StackedRnn::hidden, 1, 1 << 17, "Width of the layers.")
        .integer("sequence", &StackedRnn::sequence, 1, 1 << 13, "Steps that are unrolled.")
        .integer("input", &StackedRnn::input, 1, 1 << 17, "Width of the input at a step.")
        .integer("classes", &StackedRnn::classes, 2, 1 << 24, "What a step's output is one of.");
  }
};

void build(Net& net, const StackedRnn& options) {
  std::vector<LstmLayer> layers;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    layers.emplace_back(net, fmt::format("layer.{}", i), i == 0 ? options.input : options.hidden,
                        options.hidden);
  }
  WordClassifier classifier(net, "projection", options.hidden, options.classes,
                            net.input("labels", {options.batch, options.sequence}, DType::kInt64));
  for (std::int64_t t = 0; t < options.sequence; ++t) {
    Value x = net.input(fmt::format("input.{}", t), {options.batch, options.input});
    for (LstmLayer& layer : layers) x = layer.step(net, {x}, t);
    classifier.step(net, x, t);
  }
  classifier.total(net);
}

}  // namespace

std::vector<ModelInfo> stacked_rnn_models() {
  return {model<StackedRnn>({.name = "stacked-rnn",
                             .summary = "Wide LSTM layers that need many devices' memory.",
                             .source = "Wang et al. 2019 (Tofu)"},
                            build)};
}

}  // namespace emplace::zoo

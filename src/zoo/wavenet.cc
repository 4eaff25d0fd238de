// Van den Oord et al. 2016, "WaveNet: A Generative Model for Raw Audio": gated causal convolutions
// whose dilation doubles from layer to layer, in several rounds; each layer adds to the next one's
// input and to the output.
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct WaveNet : StepOptions {
  std::int64_t sequence = 4096;
  std::int64_t layers = 40;
  std::int64_t cycle = 10;
  std::int64_t hidden = 256;
  std::int64_t skip = 256;
  std::int64_t levels = 256;

  WaveNet() { batch = 8; }
  static OptionSchema<WaveNet> schema() {
    return step_schema<WaveNet>()
        .integer("sequence", &WaveNet::sequence, 1, 1 << 24, "Samples of audio.")
        .integer("layers", &WaveNet::layers, 1, 1000, "Dilated layers.")
        .integer("cycle", &WaveNet::cycle, 1, 20, "Layers until the dilation is one again.")
        .integer("hidden", &WaveNet::hidden, 1, 1 << 16, "Channels from layer to layer.")
        .integer("skip", &WaveNet::skip, 1, 1 << 16, "Channels to the output.")
        .integer("levels", &WaveNet::levels, 2, 1 << 16, "Values that a sample may have.");
  }
};

Value gated_convolution(Net& net, const Value& x, std::int64_t dilation) {
  const std::int64_t hidden = x.dim(1);
  // Padded in front alone: a sample does not see those after it.
  const Value padded = pad(net, x, {0, 0, dilation, 0, 0, 0});
  const Value both =
      conv_layer(net, "dilated", padded, 2 * hidden, {.kernel = {2}, .dilation = {dilation}}, true);
  const Values parts = split_evenly(net, both, 2, 1);
  const Value signal = tanh(net, parts[0]);
  return mul(net, signal, sigmoid(net, parts[1]));
}

Value extract_features(Net& net, const WaveNet& options) {
  const Value audio = net.input("audio", {options.batch, 1, options.sequence});
  Value x = conv_layer(net, "input", audio, options.hidden, {}, true);
  Value total;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto scope = net.scope("layer", i);
    const Value gated = gated_convolution(net, x, std::int64_t{1} << (i % options.cycle));
    const Value skip = conv_layer(net, "skip", gated, options.skip, {}, true);
    total = i == 0 ? skip : add(net, total, skip);
    // What the last layer would hand on, nothing reads.
    if (i + 1 < options.layers) {
      x = add(net, x, conv_layer(net, "residual", gated, options.hidden, {}, true));
    }
  }
  return total;
}

void build(Net& net, const WaveNet& options) {
  Value x = extract_features(net, options);
  const Value samples = net.input("samples", {options.batch, options.sequence}, DType::kInt64);
  const auto scope = net.scope("output");
  x = conv_layer(net, "0", relu(net, x), options.skip, {}, true);
  x = conv_layer(net, "1", relu(net, x), options.levels, {}, true);
  cross_entropy(net, x, samples);
}

}  // namespace

std::vector<ModelInfo> wavenet_models() {
  return {model<WaveNet>({.name = "wavenet",
                          .summary = "Gated dilated causal convolutions on raw audio.",
                          .source = "van den Oord et al. 2016"},
                         build)};
}

}  // namespace emplace::zoo

// He et al. 2016, "Deep Residual Learning for Image Recognition", the networks of bottlenecks (with
// the stride in the 3 x 3 convolution, as torchvision has them), and wide ones in two readings:
// Wang et al. 2019 (Tofu), "Supporting Very Large Models using Automatic Dataflow Graph
// Partitioning", widen every convolution; Zagoruyko and Komodakis 2016, "Wide Residual Networks",
// as torchvision has it for ImageNet, only what is inside of a bottleneck.
#include <array>

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

std::vector<std::string> depths() {
  return {"50", "101", "152"};
}

struct ResNet : ImageOptions {
  std::string layers = "50";

  static OptionSchema<ResNet> schema() {
    return image_schema<ResNet>().choice("layers", &ResNet::layers, depths(),
                                         "Layers with weights.");
  }
};

struct WideResNet : ImageOptions {
  std::string layers = "152";
  std::int64_t width = 10;
  std::string widen = "all";

  static OptionSchema<WideResNet> schema() {
    return image_schema<WideResNet>()
        .choice("layers", &WideResNet::layers, depths(), "Layers with weights.")
        .integer("width", &WideResNet::width, 1, 64, "Channels, as a multiple of ResNet's.")
        .choice("widen", &WideResNet::widen, {"all", "inner"},
                "Every convolution (Tofu), or the bottlenecks' inner ones (torchvision).");
  }
};

struct Widths {
  std::int64_t all = 1;
  std::int64_t inner = 1;  // on top of `all`
};

std::array<std::int64_t, 4> blocks_of(const std::string& layers) {
  if (layers == "50") return {3, 4, 6, 3};
  if (layers == "101") return {3, 4, 23, 3};
  return {3, 8, 36, 3};
}

Value bottleneck(Net& net, const Value& input, std::int64_t inner, std::int64_t out,
                 std::int64_t stride) {
  Value x = relu(net, batch_norm(net, "bn1", conv_layer(net, "conv1", input, inner, {})));
  x = conv_layer(net, "conv2", x, inner, same(3, stride));
  x = relu(net, batch_norm(net, "bn2", x));
  x = batch_norm(net, "bn3", conv_layer(net, "conv3", x, out, {}));

  Value shortcut = input;
  if (stride != 1 || input.dim(1) != out) {
    const auto scope = net.scope("downsample");
    shortcut = conv_layer(net, "0", input, out, {.kernel = {1}, .stride = {stride}});
    shortcut = batch_norm(net, "1", shortcut);
  }
  return relu(net, add(net, x, shortcut));
}

void build_residual(Net& net, const ImageOptions& options, const std::string& layers,
                    const Widths& widths) {
  Value x = input_images(net, options);
  x = conv_layer(net, "conv1", x, 64 * widths.all, same(7, 2));
  x = relu(net, batch_norm(net, "bn1", x));
  {
    const auto scope = net.scope("maxpool");
    x = max_pool(net, x, same(3, 2));
  }
  const auto blocks = blocks_of(layers);
  std::int64_t channels = 64 * widths.all;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, channels *= 2) {
    for (std::int64_t i = 0; i < blocks[stage]; ++i) {
      const auto scope = net.scope(fmt::format("layer{}", stage + 1), i);
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = bottleneck(net, x, channels * widths.inner, 4 * channels, stride);
    }
  }
  {
    const auto scope = net.scope("avgpool");
    x = global_average_pool(net, x);
  }
  image_loss(net, linear(net, "fc", x, options.classes));
}

void build(Net& net, const ResNet& options) {
  build_residual(net, options, options.layers, {});
}

void build_wide(Net& net, const WideResNet& options) {
  const bool all = options.widen == "all";
  build_residual(net, options, options.layers,
                 {.all = all ? options.width : 1, .inner = all ? 1 : options.width});
}

ModelInfo resnet(const std::string& layers, std::int64_t parameters) {
  return model<ResNet>({.name = "resnet-" + layers,
                        .summary = "Residual bottlenecks, " + layers + " layers, ImageNet.",
                        .source = "He et al. 2016; torchvision resnet" + layers,
                        .parameters = parameters},
                       build, {{"layers", layers}});
}

}  // namespace

std::vector<ModelInfo> resnet_models() {
  return {resnet("50", 25'557'032), resnet("101", 44'549'160), resnet("152", 60'192'808),
          model<WideResNet>({.name = "wide-resnet",
                             .summary = "ResNet with every convolution several times as wide.",
                             .source = "Wang et al. 2019 (Tofu), WResNet-152-10"},
                            build_wide),
          model<WideResNet>({.name = "wide-resnet-50-2",
                             .summary = "ResNet-50 with the inner convolutions twice as wide.",
                             .source = "Zagoruyko and Komodakis 2016; torchvision wide_resnet50_2",
                             .parameters = 68'883'240},
                            build_wide, {{"layers", "50"}, {"width", "2"}, {"widen", "inner"}})};
}

}  // namespace emplace::zoo

// Huang et al. 2017, "Densely Connected Convolutional Networks": DenseNet-BC for ImageNet, where
// every layer of a block reads the outputs of all layers before it.
#include <array>

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct DenseNet : ImageOptions {
  std::string layers = "121";
  std::int64_t growth = 32;

  static OptionSchema<DenseNet> schema() {
    return image_schema<DenseNet>()
        .choice("layers", &DenseNet::layers, {"121", "161", "169", "201"}, "Layers with weights.")
        .integer("growth", &DenseNet::growth, 1, 1024, "Channels that each layer adds.");
  }
};

std::array<std::int64_t, 4> blocks_of(const std::string& layers) {
  if (layers == "121") return {6, 12, 24, 16};
  if (layers == "161") return {6, 12, 36, 24};
  if (layers == "169") return {6, 12, 32, 32};
  return {6, 12, 48, 32};
}

Value norm_relu(Net& net, std::string_view name, const Value& x) {
  return relu(net, batch_norm(net, name, x));
}

Value dense_block(Net& net, const Value& input, std::int64_t layers, std::int64_t growth) {
  Values features{input};
  for (std::int64_t i = 1; i <= layers; ++i) {
    const auto scope = net.scope(fmt::format("denselayer{}", i));
    Value x = norm_relu(net, "norm1", concat(net, features, 1));
    x = conv_layer(net, "conv1", x, 4 * growth, {});
    x = conv_layer(net, "conv2", norm_relu(net, "norm2", x), growth, same(3));
    features.push_back(x);
  }
  return concat(net, features, 1);
}

Value transition(Net& net, const Value& x) {
  const Value halved = conv_layer(net, "conv", norm_relu(net, "norm", x), x.dim(1) / 2, {});
  return average_pool(net, halved, {.kernel = {2}, .stride = {2}});
}

Value extract_features(Net& net, const DenseNet& options) {
  Value x = input_images(net, options);
  const auto scope = net.scope("features");
  x = conv_layer(net, "conv0", x, 2 * options.growth, same(7, 2));
  x = max_pool(net, norm_relu(net, "norm0", x), same(3, 2));
  const auto blocks = blocks_of(options.layers);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0) {
      const auto between = net.scope(fmt::format("transition{}", i));
      x = transition(net, x);
    }
    const auto block = net.scope(fmt::format("denseblock{}", i + 1));
    x = dense_block(net, x, blocks[i], options.growth);
  }
  return global_average_pool(net, norm_relu(net, "norm5", x));
}

void build(Net& net, const DenseNet& options) {
  image_loss(net, linear(net, "classifier", extract_features(net, options), options.classes));
}

ModelInfo densenet(const std::string& layers, const std::string& growth, std::int64_t parameters) {
  return model<DenseNet>({.name = "densenet-" + layers,
                          .summary = "Densely connected blocks, " + layers + " layers, ImageNet.",
                          .source = "Huang et al. 2017; torchvision densenet" + layers,
                          .parameters = parameters},
                         build, {{"layers", layers}, {"growth", growth}});
}

}  // namespace

std::vector<ModelInfo> densenet_models() {
  return {densenet("121", "32", 7'978'856), densenet("161", "48", 28'681'000),
          densenet("169", "32", 14'149'480), densenet("201", "32", 20'013'928)};
}

}  // namespace emplace::zoo

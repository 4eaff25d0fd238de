// Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks": AlexNet on
// one device, as torchvision has it.
#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct AlexNet : ImageOptions {
  std::int64_t width = 4096;

  static OptionSchema<AlexNet> schema() {
    return classifier_schema<AlexNet>().integer("width", &AlexNet::width, 1, 1 << 20,
                                                "Outputs of the hidden linear layers.");
  }
};

Value conv_relu(Net& net, std::string_view name, const Value& x, std::int64_t out,
                const ConvShape& shape) {
  return relu(net, conv_layer(net, name, x, out, shape, true));
}

Value pool(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  return max_pool(net, x, {.kernel = {3}, .stride = {2}});
}

Value extract_features(Net& net, const AlexNet& options) {
  Value x = input_images(net, options);
  const auto scope = net.scope("features");
  x = conv_relu(net, "0", x, 64, {.kernel = {11}, .stride = {4}, .padding = {2}});
  x = pool(net, "2", x);
  x = conv_relu(net, "3", x, 192, same(5));
  x = pool(net, "5", x);
  x = conv_relu(net, "6", x, 384, same(3));
  x = conv_relu(net, "8", x, 256, same(3));
  x = conv_relu(net, "10", x, 256, same(3));
  return pool(net, "12", x);
}

Value classify(Net& net, const Value& features, const AlexNet& options) {
  const auto scope = net.scope("classifier");
  Value x = dropout(net, reshape(net, features, {features.dim(0), -1}), 0.5);
  x = relu(net, linear(net, "1", x, options.width));
  x = dropout(net, x, 0.5);
  x = relu(net, linear(net, "4", x, options.width));
  return linear(net, "6", x, options.classes);
}

void build(Net& net, const AlexNet& options) {
  image_loss(net, classify(net, extract_features(net, options), options));
}

}  // namespace

std::vector<ModelInfo> alexnet_models() {
  return {model<AlexNet>({.name = "alexnet",
                          .summary = "Five convolutions, three linear layers, ImageNet.",
                          .source = "Krizhevsky 2014; torchvision alexnet",
                          .parameters = 61'100'840},
                         build)};
}

}  // namespace emplace::zoo

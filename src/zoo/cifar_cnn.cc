// The CNN of TensorFlow's CIFAR-10 tutorial, after Krizhevsky's cuda-convnet; Gao et al. 2018
// (Spotlight) placed it. On random crops of 24 x 24 pixels.
#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct CifarCnn : ImageOptions {
  CifarCnn() {
    batch = 128;
    image = 24;
    classes = 10;
    optimizer = "sgd";
  }
  static OptionSchema<CifarCnn> schema() { return image_schema<CifarCnn>(8); }
};

Value conv_relu(Net& net, std::string_view name, const Value& x) {
  return relu(net, conv_layer(net, name, x, 64, same(5), true));
}

Value halve(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  return max_pool(net, x, same_padding(x.dim(2), 3, 2));
}

// Across nine neighbouring channels (Krizhevsky et al. 2012).
Value local_norm(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  return net.add_one("LRN", {x}, tensor_type(x.shape, x.dtype),
                     {{"size", std::int64_t{9}}, {"bias", 1.0}, {"alpha", 0.001}, {"beta", 0.75}});
}

void build(Net& net, const CifarCnn& options) {
  Value x = input_images(net, options);
  x = local_norm(net, "norm1", halve(net, "pool1", conv_relu(net, "conv1", x)));
  x = halve(net, "pool2", local_norm(net, "norm2", conv_relu(net, "conv2", x)));
  x = relu(net, linear(net, "local3", reshape(net, x, {options.batch, -1}), 384));
  x = relu(net, linear(net, "local4", x, 192));
  image_loss(net, linear(net, "softmax_linear", x, options.classes));
}

}  // namespace

std::vector<ModelInfo> cifar_cnn_models() {
  return {model<CifarCnn>({.name = "cifar-10-cnn",
                           .summary = "Two convolutions, three linear layers, 24 x 24 images.",
                           .source = "TensorFlow CIFAR-10 tutorial; Gao et al. 2018 (Spotlight)",
                           .parameters = 1'068'298},
                          build)};
}

}  // namespace emplace::zoo

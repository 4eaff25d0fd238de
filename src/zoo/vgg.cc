// Simonyan and Zisserman 2015, "Very Deep Convolutional Networks for Large-Scale Image
// Recognition": 3 x 3 convolutions in five stages, their configurations D and E.
#include <array>

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Vgg : ImageOptions {
  std::string layers = "16";

  static OptionSchema<Vgg> schema() {
    return classifier_schema<Vgg>().choice("layers", &Vgg::layers, {"16", "19"},
                                           "Layers with weights.");
  }
};

Value extract_features(Net& net, const Vgg& options) {
  constexpr std::array<std::int64_t, 5> kChannels{64, 128, 256, 512, 512};
  Value x = input_images(net, options);
  std::int64_t index = 0;  // activations and pools count as layers too
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    const int convolutions = stage < 2 ? 2 : options.layers == "16" ? 3 : 4;
    for (int i = 0; i < convolutions; ++i) {
      x = conv_layer(net, fmt::format("features.{}", index++), x, kChannels[stage], same(3), true);
      const auto scope = net.scope("features", index++);
      x = relu(net, x);
    }
    const auto scope = net.scope("features", index++);
    x = max_pool(net, x, {.kernel = {2}, .stride = {2}});
  }
  return x;
}

Value classify(Net& net, const Value& features, std::int64_t classes) {
  const auto scope = net.scope("classifier");
  Value x = reshape(net, features, {features.dim(0), -1});
  x = dropout(net, relu(net, linear(net, "0", x, 4096)), 0.5);
  x = dropout(net, relu(net, linear(net, "3", x, 4096)), 0.5);
  return linear(net, "6", x, classes);
}

void build(Net& net, const Vgg& options) {
  image_loss(net, classify(net, extract_features(net, options), options.classes));
}

}  // namespace

std::vector<ModelInfo> vgg_models() {
  return {model<Vgg>({.name = "vgg-16",
                      .summary = "3 x 3 convolutions in five stages, 16 layers, ImageNet.",
                      .source = "Simonyan and Zisserman 2015; torchvision vgg16",
                      .parameters = 138'357'544},
                     build),
          model<Vgg>({.name = "vgg-19",
                      .summary = "3 x 3 convolutions in five stages, 19 layers, ImageNet.",
                      .source = "Simonyan and Zisserman 2015; torchvision vgg19",
                      .parameters = 143'667'240},
                     build, {{"layers", "19"}})};
}

}  // namespace emplace::zoo

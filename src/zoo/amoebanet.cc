// Real et al. 2019, "Regularized Evolution for Image Classifier Architecture Search": AmoebaNet-D,
// as Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using Pipeline
// Parallelism", scaled it by cells and channels.
//
// The cell joins the states 0, 3, 4 and 6, as the authors' TensorFlow code does; the paper's figure
// joins 4, 5 and 6. With the former the sizes that GPipe printed come out: (18, 208) has 81.5
// million parameters (82M there), (18, 416) 319.0 (318M), (36, 544) 1,056 (1.05B), with the latter
// 13 % less.
#include <array>

#include "base/error.h"

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct AmoebaNet : ImageOptions {
  std::int64_t layers = 18;
  std::int64_t filters = 208;

  static OptionSchema<AmoebaNet> schema() {
    return image_schema<AmoebaNet>()
        .integer("layers", &AmoebaNet::layers, 3, 999, "Normal cells, a multiple of 3.")
        .integer("filters", &AmoebaNet::filters, 8, 1 << 14,
                 "Channels in the first third of the cells, a multiple of 8.");
  }
};

enum class Kind { kNone, kConv1, kConv3, kConv7, kMax2, kMax3, kAverage3 };

struct Operation {
  std::size_t state;  // that it reads: the input, the one before, then the sums so far
  Kind kind;
};

// Two and two are added up.
using Cell = std::array<Operation, 10>;

constexpr Cell kNormal{{{1, Kind::kConv1},
                        {1, Kind::kMax3},
                        {1, Kind::kNone},
                        {0, Kind::kConv7},
                        {0, Kind::kConv1},
                        {0, Kind::kConv7},
                        {2, Kind::kMax3},
                        {2, Kind::kNone},
                        {1, Kind::kAverage3},
                        {5, Kind::kConv1}}};
constexpr Cell kReduction{{{0, Kind::kMax2},
                           {0, Kind::kMax3},
                           {2, Kind::kNone},
                           {1, Kind::kConv3},
                           {2, Kind::kConv7},
                           {2, Kind::kMax3},
                           {3, Kind::kNone},
                           {1, Kind::kMax2},
                           {2, Kind::kAverage3},
                           {3, Kind::kConv1}}};

// Through a quarter of the channels.
Value bottleneck(Net& net, const Value& input, const std::vector<ConvShape>& shapes) {
  const std::int64_t channels = input.dim(1);
  Value x = relu_conv_bn(net, "pre", input, channels / 4);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    x = relu_conv_bn(net, fmt::format("conv_{}", i), x, channels / 4, shapes[i]);
  }
  return relu_conv_bn(net, "post", x, channels);
}

Value apply(Net& net, const Value& x, Kind kind, std::int64_t stride) {
  const auto window = [&](std::int64_t kernel) { return same_padding(x.dim(2), kernel, stride); };
  switch (kind) {
    case Kind::kNone:
      return x;
    case Kind::kConv1:
      return relu_conv_bn(net, "1x1", x, x.dim(1), window(1));
    case Kind::kConv3:
      return bottleneck(net, x, {window(3)});
    case Kind::kConv7:
      return bottleneck(
          net, x, {{.kernel = {1, 7}, .padding = {0, 3}}, {.kernel = {7, 1}, .padding = {3, 0}}});
    case Kind::kMax2:
      return max_pool(net, x, window(2));
    case Kind::kMax3:
      return max_pool(net, x, window(3));
    case Kind::kAverage3:
      return average_pool(net, x, window(3));
  }
  return x;
}

Value build_cell(Net& net, const Cell& cell, const Value& x, const Value& previous,
                 std::int64_t channels) {
  const bool reduces = &cell == &kReduction;
  Value before = previous;
  if (previous.dim(2) != x.dim(2)) {
    before = factorized_reduction(net, "prev", previous, channels);
  } else if (previous.dim(1) != channels) {
    before = relu_conv_bn(net, "prev", previous, channels);
  }
  Values states{relu_conv_bn(net, "beginning", x, channels), before};
  for (std::size_t i = 0; i < cell.size(); i += 2) {
    const auto scope = net.scope(fmt::format("comb_iter_{}", i / 2));
    const auto branch = [&](std::string_view name, const Operation& operation) {
      const auto side = net.scope(name);
      const std::int64_t stride = reduces && operation.state < 2 ? 2 : 1;
      return apply(net, states[operation.state], operation.kind, stride);
    };
    const Value left = branch("left", cell[i]);
    states.push_back(add(net, left, branch("right", cell[i + 1])));
  }
  if (reduces) return concat(net, {states[4], states[5], states[6]}, 1);
  return concat(net, {states[0], states[3], states[4], states[6]}, 1);
}

void build(Net& net, const AmoebaNet& options) {
  if (options.layers % 3 != 0) {
    fail_option("option 'layers': expected a multiple of 3, got {}", options.layers);
  }
  if (options.filters % 8 != 0) {
    fail_option("option 'filters': expected a multiple of 8, got {}", options.filters);
  }
  std::int64_t channels = options.filters / 4;
  Value x = conv_layer(net, "stem.conv0", input_images(net, options), channels,
                       {.kernel = {3}, .stride = {2}});
  x = batch_norm(net, "stem.conv0_bn", x);
  Value previous = x;
  const auto append = [&](const std::string& name, const Cell& cell) {
    const auto scope = net.scope(name);
    const Value output = build_cell(net, cell, x, previous, channels);
    previous = x;
    x = output;
  };
  const auto reduce = [&](const std::string& name) {
    channels *= 2;
    append(name, kReduction);
  };
  reduce("cell_stem_0");
  reduce("cell_stem_1");
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::int64_t stage = 3 * i / options.layers;
    if (stage > 0 && 3 * i % options.layers == 0) {
      reduce(fmt::format("reduction_cell_{}", stage - 1));
    }
    append(fmt::format("cell_{}", i), kNormal);
  }
  const Value features = dropout(net, global_average_pool(net, relu(net, x)), 0.5);
  image_loss(net, linear(net, "final_layer", features, options.classes));
}

}  // namespace

std::vector<ModelInfo> amoebanet_models() {
  return {model<AmoebaNet>({.name = "amoebanet-d",
                            .summary = "Evolved cells, scaled by GPipe, ImageNet.",
                            .source = "Real et al. 2019; Huang et al. 2019 (GPipe), where it has "
                                      "82M"},
                           build)};
}

}  // namespace emplace::zoo

// Zoph et al. 2018, "Learning Transferable Architectures for Scalable Image Recognition": NASNet-A
// for ImageNet, as Keras has it, and a smaller network of its normal cell alone.
#include "base/error.h"

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kNasnetEpsilon = 1e-3;

struct NasNet : ImageOptions {
  std::int64_t layers = 12;
  std::int64_t filters = 1056;
  std::int64_t stem = 32;
  bool skip_reduction = false;

  static OptionSchema<NasNet> schema() {
    return image_schema<NasNet>()
        .integer("layers", &NasNet::layers, 3, 999, "Normal cells, a multiple of 3.")
        .integer("filters", &NasNet::filters, 96, 96 << 10,
                 "Channels before the classifier, a multiple of 96.")
        .integer("stem", &NasNet::stem, 1, 1 << 14, "Channels of the first convolution.")
        .flag("skip_reduction", &NasNet::skip_reduction,
              "A cell after a reduction also reads what was before the reduction's input.");
  }
};

struct SmallNasNet : ImageOptions {
  std::int64_t layers = 15;
  std::int64_t filters = 44;

  static OptionSchema<SmallNasNet> schema() {
    return image_schema<SmallNasNet>()
        .integer("layers", &SmallNasNet::layers, 3, 999, "Cells after the stem, a multiple of 3.")
        .integer("filters", &SmallNasNet::filters, 2, 1 << 14,
                 "Channels of each op in the first third of the cells, even.");
  }
};

void check_multiple(std::string_view option, std::int64_t value, std::int64_t of) {
  if (value % of != 0)
    fail_option("option '{}': expected a multiple of {}, got {}", option, of, value);
}

ConvShape window(const Value& x, std::int64_t kernel, std::int64_t stride) {
  return same_padding(x.dim(2), kernel, stride);
}

// Twice: activation, a convolution within and one across channels, normalisation.
Value separable(Net& net, std::string_view name, const Value& input, std::int64_t filters,
                std::int64_t kernel, std::int64_t stride) {
  const auto scope = net.scope(name);
  Value x = input;
  for (int layer = 1; layer <= 2; ++layer) {
    ConvShape depthwise = window(x, kernel, layer == 1 ? stride : 1);
    depthwise.groups = x.dim(1);
    x = conv_layer(net, fmt::format("depthwise_{}", layer), relu(net, x), x.dim(1), depthwise);
    x = conv_layer(net, fmt::format("pointwise_{}", layer), x, filters, {});
    x = batch_norm(net, fmt::format("bn_{}", layer), x, kNasnetEpsilon);
  }
  return x;
}

// Of the five sums of the normal cell, from this input and the one before, both of `filters`
// channels. A stride makes an average of what is taken as it is otherwise.
Values normal_sums(Net& net, const Value& h, const Value& p, std::int64_t filters,
                   std::int64_t stride) {
  const auto pooled = [&](const Value& x) { return average_pool(net, x, window(x, 3, stride)); };
  const auto taken = [&](const Value& x) { return stride == 1 ? x : pooled(x); };
  const auto filtered = [&](std::string_view name, const Value& x, std::int64_t kernel) {
    return separable(net, name, x, filters, kernel, stride);
  };
  Values sums;
  sums.push_back(
      sum(net, {filtered("comb_iter_0.left", h, 5), filtered("comb_iter_0.right", p, 3)}));
  sums.push_back(
      sum(net, {filtered("comb_iter_1.left", p, 5), filtered("comb_iter_1.right", p, 3)}));
  sums.push_back(sum(net, {pooled(h), taken(p)}));
  sums.push_back(sum(net, {pooled(p), pooled(p)}));
  sums.push_back(sum(net, {filtered("comb_iter_4.left", h, 3), taken(h)}));
  return sums;
}

// What was before the input, as large and as wide as the cell wants it.
Value adjust(Net& net, const Value& previous, const Value& x, std::int64_t filters) {
  if (previous.dim(2) != x.dim(2)) {
    return factorized_reduction(net, "prev", previous, filters, kNasnetEpsilon);
  }
  if (previous.dim(1) == filters) return previous;
  return relu_conv_bn(net, "prev", previous, filters, {}, kNasnetEpsilon);
}

Value normal_cell(Net& net, const Value& x, const Value& previous, std::int64_t filters) {
  const Value p = adjust(net, previous, x, filters);
  const Value h = relu_conv_bn(net, "beginning", x, filters, {}, kNasnetEpsilon);
  Values parts{p};
  for (const Value& sum : normal_sums(net, h, p, filters, 1)) parts.push_back(sum);
  return concat(net, parts, 1);
}

// `p` is adjusted.
Value reduction_cell(Net& net, const Value& x, const Value& p, std::int64_t filters) {
  const Value h = relu_conv_bn(net, "beginning", x, filters, {}, kNasnetEpsilon);
  const auto halved = [&](std::string_view name, const Value& from, std::int64_t kernel) {
    return separable(net, name, from, filters, kernel, 2);
  };
  const ConvShape pool = window(h, 3, 2);
  const Value first =
      sum(net, {halved("comb_iter_0.left", h, 5), halved("comb_iter_0.right", p, 7)});
  const Value second = sum(net, {max_pool(net, h, pool), halved("comb_iter_1.right", p, 7)});
  const Value third = sum(net, {average_pool(net, h, pool), halved("comb_iter_2.right", p, 5)});
  const Value fourth = add(net, second, average_pool(net, first, window(first, 3, 1)));
  const Value fifth =
      sum(net, {separable(net, "comb_iter_4.left", first, filters, 3, 1), max_pool(net, h, pool)});
  return concat(net, {second, third, fourth, fifth}, 1);
}

void classify(Net& net, const Value& x, std::int64_t classes) {
  const Value features = global_average_pool(net, relu(net, x));
  image_loss(net, linear(net, "final_layer", features, classes));
}

Value stem_convolution(Net& net, const Value& images, std::int64_t out, std::int64_t padding) {
  const ConvShape shape{.kernel = {3}, .stride = {2}, .padding = {padding}};
  return batch_norm(net, "conv0_bn", conv_layer(net, "conv0", images, out, shape), kNasnetEpsilon);
}

void build(Net& net, const NasNet& options) {
  check_multiple("layers", options.layers, 3);
  check_multiple("filters", options.filters, 96);
  // The last cells join six tensors of four times as many.
  const std::int64_t filters = options.filters / 24;

  Value previous = stem_convolution(net, input_images(net, options), options.stem, 0);
  Value x = previous;
  const auto reduce = [&](const std::string& name, std::int64_t width, bool first) {
    const auto scope = net.scope(name);
    return reduction_cell(net, x, first ? x : adjust(net, previous, x, width), width);
  };
  x = reduce("cell_stem_0", filters / 4, true);
  const Value next = reduce("cell_stem_1", filters / 2, false);
  previous = x;
  x = next;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::int64_t stage = 3 * i / options.layers;
    const std::int64_t width = filters << stage;
    if (stage > 0 && 3 * i % options.layers == 0) {
      const Value smaller = reduce(fmt::format("reduction_cell_{}", stage - 1), width, false);
      if (!options.skip_reduction) previous = x;
      x = smaller;
    }
    const auto scope = net.scope(fmt::format("cell_{}", i));
    const Value output = normal_cell(net, x, previous, width);
    previous = x;
    x = output;
  }
  classify(net, x, options.classes);
}

// With a stride the normal cell is the reduction cell too, and a strided convolution adjusts sizes.
Value small_cell(Net& net, const Value& x, const Value& previous, std::int64_t filters,
                 std::int64_t stride) {
  const Value h = relu_conv_bn(net, "beginning", x, filters, {}, kNasnetEpsilon);
  const ConvShape fit{.kernel = {1}, .stride = {previous.dim(2) == x.dim(2) ? 1 : 2}};
  const Value p = relu_conv_bn(net, "prev", previous, filters, fit, kNasnetEpsilon);
  return concat(net, normal_sums(net, h, p, filters, stride), 1);
}

void build_small(Net& net, const SmallNasNet& options) {
  check_multiple("layers", options.layers, 3);
  check_multiple("filters", options.filters, 2);
  Value x = stem_convolution(net, input_images(net, options), 32, 1);
  Value previous = x;
  const auto append = [&](const std::string& name, std::int64_t filters, std::int64_t stride) {
    const auto scope = net.scope(name);
    const Value output = small_cell(net, x, previous, filters, stride);
    previous = x;
    x = output;
  };
  append("cell_stem_0", options.filters / 2, 2);
  append("cell_stem_1", options.filters / 2, 2);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::int64_t stage = 3 * i / options.layers;
    const bool reduces = stage > 0 && 3 * i % options.layers == 0;
    append(fmt::format("cell_{}", i), options.filters << stage, reduces ? 2 : 1);
  }
  classify(net, x, options.classes);
}

}  // namespace

std::vector<ModelInfo> nasnet_models() {
  const std::string source = "Zoph et al. 2018; Keras ";
  return {model<NasNet>({.name = "nasnet-a-mobile",
                         .summary = "Searched cells, for mobile devices, ImageNet.",
                         .source = source + "NASNetMobile",
                         .parameters = 5'289'978},
                        build),
          model<NasNet>({.name = "nasnet-a-large",
                         .summary = "Searched cells, for accuracy, ImageNet.",
                         .source = source + "NASNetLarge",
                         .parameters = 88'753'150},
                        build,
                        {{"image", "331"},
                         {"layers", "18"},
                         {"filters", "4032"},
                         {"stem", "96"},
                         {"skip_reduction", "true"}}),
          model<SmallNasNet>({.name = "nasnet-small",
                              .summary = "NASNet-A's normal cell alone, for reductions too.",
                              .source = "after Zoph et al. 2018, simplified"},
                             build_small)};
}

}  // namespace emplace::zoo

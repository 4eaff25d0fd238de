// Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision": Inception-v3,
// with the module names of torchvision.
#include "base/error.h"

#include "zoo/image_model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr std::int64_t kImage = 299;

struct Inception : ImageOptions {
  bool aux = false;

  Inception() { image = kImage; }
  static OptionSchema<Inception> schema() {
    return image_schema<Inception>(75).flag(
        "aux", &Inception::aux, "The auxiliary classifier in the middle, which training has.");
  }
};

Value unit(Net& net, std::string_view name, const Value& x, std::int64_t out,
           const ConvShape& shape = {}) {
  const auto scope = net.scope(name);
  return relu(net, batch_norm(net, "bn", conv_layer(net, "conv", x, out, shape), 1e-3));
}

ConvShape row(std::int64_t kernel) {
  return {.kernel = {1, kernel}, .padding = {0, kernel / 2}};
}
ConvShape column(std::int64_t kernel) {
  return {.kernel = {kernel, 1}, .padding = {kernel / 2, 0}};
}

ConvShape halving() {
  return {.kernel = {3}, .stride = {2}};
}

Value pool_branch(Net& net, const Value& x, std::int64_t out) {
  return unit(net, "branch_pool", average_pool(net, x, same(3), true), out);
}

// 35 x 35.
Value module_a(Net& net, std::string_view name, const Value& x, std::int64_t pool_out) {
  const auto scope = net.scope(name);
  const Value one = unit(net, "branch1x1", x, 64);
  const Value five = unit(net, "branch5x5_2", unit(net, "branch5x5_1", x, 48), 64, same(5));
  Value twice = unit(net, "branch3x3dbl_1", x, 64);
  twice = unit(net, "branch3x3dbl_2", twice, 96, same(3));
  twice = unit(net, "branch3x3dbl_3", twice, 96, same(3));
  return concat(net, {one, five, twice, pool_branch(net, x, pool_out)}, 1);
}

// To 17 x 17.
Value module_b(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  const Value three = unit(net, "branch3x3", x, 384, halving());
  Value twice = unit(net, "branch3x3dbl_1", x, 64);
  twice = unit(net, "branch3x3dbl_2", twice, 96, same(3));
  twice = unit(net, "branch3x3dbl_3", twice, 96, halving());
  return concat(net, {three, twice, max_pool(net, x, halving())}, 1);
}

Value module_c(Net& net, std::string_view name, const Value& x, std::int64_t inner) {
  const auto scope = net.scope(name);
  const Value one = unit(net, "branch1x1", x, 192);
  Value seven = unit(net, "branch7x7_1", x, inner);
  seven = unit(net, "branch7x7_2", seven, inner, row(7));
  seven = unit(net, "branch7x7_3", seven, 192, column(7));
  Value twice = unit(net, "branch7x7dbl_1", x, inner);
  twice = unit(net, "branch7x7dbl_2", twice, inner, column(7));
  twice = unit(net, "branch7x7dbl_3", twice, inner, row(7));
  twice = unit(net, "branch7x7dbl_4", twice, inner, column(7));
  twice = unit(net, "branch7x7dbl_5", twice, 192, row(7));
  return concat(net, {one, seven, twice, pool_branch(net, x, 192)}, 1);
}

// To 8 x 8.
Value module_d(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  const Value three = unit(net, "branch3x3_2", unit(net, "branch3x3_1", x, 192), 320, halving());
  Value seven = unit(net, "branch7x7x3_1", x, 192);
  seven = unit(net, "branch7x7x3_2", seven, 192, row(7));
  seven = unit(net, "branch7x7x3_3", seven, 192, column(7));
  seven = unit(net, "branch7x7x3_4", seven, 192, halving());
  return concat(net, {three, seven, max_pool(net, x, halving())}, 1);
}

Value module_e(Net& net, std::string_view name, const Value& x) {
  const auto scope = net.scope(name);
  const Value one = unit(net, "branch1x1", x, 320);
  const Value three = unit(net, "branch3x3_1", x, 384);
  const Value both = concat(net,
                            {unit(net, "branch3x3_2a", three, 384, row(3)),
                             unit(net, "branch3x3_2b", three, 384, column(3))},
                            1);
  Value twice = unit(net, "branch3x3dbl_1", x, 448);
  twice = unit(net, "branch3x3dbl_2", twice, 384, same(3));
  const Value last = concat(net,
                            {unit(net, "branch3x3dbl_3a", twice, 384, row(3)),
                             unit(net, "branch3x3dbl_3b", twice, 384, column(3))},
                            1);
  return concat(net, {one, both, last, pool_branch(net, x, 192)}, 1);
}

Value stem(Net& net, Value x) {
  x = unit(net, "Conv2d_1a_3x3", x, 32, halving());
  x = unit(net, "Conv2d_2a_3x3", x, 32, {.kernel = {3}});
  x = unit(net, "Conv2d_2b_3x3", x, 64, same(3));
  x = max_pool(net, x, halving());
  x = unit(net, "Conv2d_3b_1x1", x, 80);
  x = unit(net, "Conv2d_4a_3x3", x, 192, {.kernel = {3}});
  return max_pool(net, x, halving());
}

Value auxiliary_logits(Net& net, Value x, std::int64_t classes) {
  const auto scope = net.scope("AuxLogits");
  x = average_pool(net, x, {.kernel = {5}, .stride = {3}});
  x = unit(net, "conv1", unit(net, "conv0", x, 128), 768, {.kernel = {5}});
  return linear(net, "fc", global_average_pool(net, x), classes);
}

void build(Net& net, const Inception& options) {
  if (options.aux && options.image < kImage) {
    fail_option("option 'aux' needs an 'image' of {} or more, got {}", kImage, options.image);
  }
  Value x = stem(net, input_images(net, options));
  x = module_a(net, "Mixed_5b", x, 32);
  x = module_a(net, "Mixed_5c", x, 64);
  x = module_a(net, "Mixed_5d", x, 64);
  x = module_b(net, "Mixed_6a", x);
  x = module_c(net, "Mixed_6b", x, 128);
  x = module_c(net, "Mixed_6c", x, 160);
  x = module_c(net, "Mixed_6d", x, 160);
  x = module_c(net, "Mixed_6e", x, 192);
  const Value middle = x;
  x = module_d(net, "Mixed_7a", x);
  x = module_e(net, "Mixed_7b", x);
  x = module_e(net, "Mixed_7c", x);
  x = dropout(net, global_average_pool(net, x), 0.5);

  const Value labels = net.input("labels", {options.batch}, DType::kInt64);
  const Value loss = classification_loss(net, linear(net, "fc", x, options.classes), labels);
  if (!options.aux) return;
  const Value logits = auxiliary_logits(net, middle, options.classes);
  const auto scope = net.scope("AuxLogits");
  add(net, loss, scale(net, classification_loss(net, logits, labels), 0.4));
}

}  // namespace

std::vector<ModelInfo> inception_models() {
  return {model<Inception>({.name = "inception-v3",
                            .summary = "Factorised convolutions in parallel branches, ImageNet.",
                            .source = "Szegedy et al. 2016; torchvision inception_v3, which has "
                                      "27,161,264 with aux=true",
                            .parameters = 23'834'568},
                           build)};
}

}  // namespace emplace::zoo

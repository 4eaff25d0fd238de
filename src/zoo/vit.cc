// The vision transformer (Dosovitskiy et al. 2021), as torchvision has it: patches as tokens, a
// class token, learned positions, layers normalised before their residual branches.
#include "base/error.h"

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kVitEpsilon = 1e-6;

struct VisionTransformer : AttentionStep {
  VisionTransformer() { optimizer = "adam"; }

  std::int64_t image = 224;
  std::int64_t patch = 16;
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t intermediate = 0;
  std::int64_t classes = 1000;
  double dropout = 0;

  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }

  static OptionSchema<VisionTransformer> schema() {
    using Vit = VisionTransformer;
    return attention_schema<Vit>()
        .integer("image", &Vit::image, 1, 1 << 16, "Height and width of the images.")
        .integer("patch", &Vit::patch, 1, 1 << 16, "Of a patch; it divides the image.")
        .integer("layers", &Vit::layers, 1, 10'000, "Of the encoder.")
        .integer("hidden", &Vit::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Vit::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("intermediate", &Vit::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("classes", &Vit::classes, 1, 1 << 24, "Of images.")
        .real("dropout", &Vit::dropout, 0, 0.99, "Of embeddings and residual branches.");
  }
};

Value attention(Net& net, const Value& x, const VisionTransformer& options) {
  const auto scope = net.scope("self_attention");
  const Values parts = split_evenly(net, linear(net, "in_proj", x, 3 * options.hidden), 3, -1);
  const Value q = split_heads(net, parts[0], options.heads);
  const Value k = split_heads(net, parts[1], options.heads);
  const Value v = split_heads(net, parts[2], options.heads);
  const Value attended = attend(net, q, k, v, {.fused = options.fused()});
  return linear(net, "out_proj", merge_heads(net, attended), options.hidden);
}

Value feed_forward(Net& net, const Value& x, const VisionTransformer& options) {
  const auto scope = net.scope("mlp");
  const Value inner = gelu(net, linear(net, "linear_1", x, options.inner()));
  const Value y = linear(net, "linear_2", dropout(net, inner, options.dropout), options.hidden);
  return dropout(net, y, options.dropout);
}

// [n, 3, image, image] to [n, patches, hidden].
Value patches_of(Net& net, const Value& images, const VisionTransformer& options) {
  const Value patches = conv_layer(net, "conv_proj", images, options.hidden,
                                   {.kernel = {options.patch}, .stride = {options.patch}}, true);
  const Value flat = reshape(net, patches, {options.batch, options.hidden, -1});
  return transpose(net, flat, {0, 2, 1});
}

void build(Net& net, const VisionTransformer& options) {
  if (options.image % options.patch != 0) {
    fail_option("an image of {} is not made of patches of {}; expected a multiple", options.image,
                options.patch);
  }
  const Value images = net.input("images", {options.batch, 3, options.image, options.image});
  const Value labels = net.input("labels", {options.batch}, DType::kInt64);
  const Value patches = patches_of(net, images, options);
  const Value token = expand(net, net.parameter("class_token", {1, 1, options.hidden}),
                             {options.batch, 1, options.hidden});
  Value x = concat(net, {token, patches}, 1);
  {
    const auto scope = net.scope("encoder");
    x = add(net, x, net.parameter("pos_embedding", {1, x.dim(1), options.hidden}));
    x = dropout(net, x, options.dropout);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("layers", i);
      const Value attended = attention(net, layer_norm(net, "ln_1", x, kVitEpsilon), options);
      x = add(net, dropout(net, attended, options.dropout), x);
      x = add(net, x, feed_forward(net, layer_norm(net, "ln_2", x, kVitEpsilon), options));
    }
    x = layer_norm(net, "ln", x, kVitEpsilon);
  }
  const Value first = reshape(net, slice(net, x, 1, 0, 1), {options.batch, options.hidden});
  classification_loss(net, linear(net, "heads.head", first, options.classes), labels);
}

}  // namespace

std::vector<ModelInfo> vit_models() {
  return {
      model<VisionTransformer>({.name = "vit-b-16",
                                .summary = "Vision transformer, base, patches of 16.",
                                .source = "Dosovitskiy et al. 2021; torchvision vit_b_16",
                                .parameters = 86'567'656},
                               build),
      model<VisionTransformer>({.name = "vit-l-16",
                                .summary = "Vision transformer, large, patches of 16.",
                                .source = "Dosovitskiy et al. 2021; torchvision vit_l_16",
                                .parameters = 304'326'632},
                               build, {{"layers", "24"}, {"hidden", "1024"}, {"heads", "16"}}),
  };
}

}  // namespace emplace::zoo

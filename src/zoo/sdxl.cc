// The U-Net of Stable Diffusion XL (Podell et al. 2023), as Hugging Face's UNet2DConditionModel has
// it: residual blocks that are told the time step, transformers over the pixels that also look at
// the prompt, and connections from each level down to the same level up. Time steps and sizes come
// in as their sinusoids; the loss is the mean square of what is left of the noise.
#include "base/error.h"

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Sdxl : AttentionStep {
  Sdxl() {
    attention = "fused";
    batch = 2;
    dtype = "float16";
    optimizer = "adam";
  }

  std::int64_t image = 128;
  std::int64_t width = 320;
  std::int64_t head_size = 64;
  std::int64_t prompt = 77;
  std::int64_t prompt_width = 2048;
  std::int64_t deep = 10;
  std::int64_t groups = 32;

  std::int64_t embedded() const { return 4 * width; }

  static OptionSchema<Sdxl> schema() {
    return attention_schema<Sdxl>()
        .integer(
            "image", &Sdxl::image, 4, 1 << 16,
            "Height and width of the latent image, an eighth of the picture's; a multiple of 4.")
        .integer("width", &Sdxl::width, 1, 1 << 20, "Channels of the first of three levels.")
        .integer("head_size", &Sdxl::head_size, 1, 1 << 16, "Width of a head of attention.")
        .integer("prompt", &Sdxl::prompt, 1, 1 << 20, "Tokens of a prompt.")
        .integer("prompt_width", &Sdxl::prompt_width, 1, 1 << 20, "Of the encoded prompt.")
        .integer("deep", &Sdxl::deep, 1, 1000, "Layers of the lowest level's transformers.")
        .integer("groups", &Sdxl::groups, 1, 1 << 20, "Of channels that are normalised together.");
  }
};

class UNet {
 public:
  UNet(Net& net, const Sdxl& options) : net_(net), options_(options) {}

  Value build() {
    if (options_.image % 4 != 0) {
      fail_option("an image of {} cannot be halved twice; expected a multiple of 4",
                  options_.image);
    }
    const std::int64_t n = options_.batch;
    const Value latent = net_.input("sample", {n, 4, options_.image, options_.image});
    prompt_ = net_.input("encoder_hidden_states", {n, options_.prompt, options_.prompt_width});
    embed_conditions();
    Value x = conv_layer(net_, "conv_in", latent, options_.width, same(3), true);
    skips_.push_back(x);
    for (std::int64_t level = 0; level < kLevels; ++level) x = go_down(x, level);
    x = middle(x);
    for (std::int64_t level = kLevels; level-- > 0;) x = go_up(x, level);
    x = silu(net_, group_norm(net_, "conv_norm_out", x, options_.groups));
    return conv_layer(net_, "conv_out", x, 4, same(3), true);
  }

 private:
  static constexpr std::int64_t kLevels = 3;

  std::int64_t channels(std::int64_t level) const { return options_.width << level; }
  // Layers of each transformer of the level; 0: it has none.
  std::int64_t depth(std::int64_t level) const {
    return level == 0 ? 0 : level == 1 ? 2 : options_.deep;
  }

  Value perceptron(std::string_view name, const Value& x) {
    const auto scope = net_.scope(name);
    const Value inner = silu(net_, linear(net_, "linear_1", x, options_.embedded()));
    return linear(net_, "linear_2", inner, options_.embedded());
  }

  // The time step, and the sizes of the picture (six numbers) with the pooled prompt.
  void embed_conditions() {
    constexpr std::int64_t kSizes = 6 * 256 + 1280;
    const Value time = net_.input("time_proj", {options_.batch, options_.width});
    const Value sizes = net_.input("add_embeds", {options_.batch, kSizes});
    const Value from_time = perceptron("time_embedding", time);
    condition_ = silu(net_, add(net_, from_time, perceptron("add_embedding", sizes)));
  }

  Value resnet(std::int64_t index, const Value& x, std::int64_t out) {
    const auto scope = net_.scope("resnets", index);
    Value y = silu(net_, group_norm(net_, "norm1", x, options_.groups));
    y = conv_layer(net_, "conv1", y, out, same(3), true);
    const Value told = linear(net_, "time_emb_proj", condition_, out);
    y = add(net_, y, reshape(net_, told, {options_.batch, out, 1, 1}));
    y = silu(net_, group_norm(net_, "norm2", y, options_.groups));
    y = conv_layer(net_, "conv2", y, out, same(3), true);
    if (x.dim(1) == out) return add(net_, x, y);
    return add(net_, conv_layer(net_, "conv_shortcut", x, out, same(1), true), y);
  }

  Value attention(std::string_view name, const Value& x, const Value& seen) {
    const auto scope = net_.scope(name);
    const std::int64_t width = x.last();
    if (width % options_.head_size != 0) {
      fail_option("module '{}': a width of {} is not made of heads of {}", net_.module(), width,
                  options_.head_size);
    }
    const std::int64_t heads = width / options_.head_size;
    const Value q = split_heads(net_, linear(net_, "to_q", x, width, false), heads);
    const Value k = split_heads(net_, linear(net_, "to_k", seen, width, false), heads);
    const Value v = split_heads(net_, linear(net_, "to_v", seen, width, false), heads);
    const Value attended = attend(net_, q, k, v, {.fused = options_.fused()});
    return linear(net_, "to_out.0", merge_heads(net_, attended), width);
  }

  Value feed_forward(const Value& x) {
    const auto scope = net_.scope("ff.net");
    const Values parts = split_evenly(net_, linear(net_, "0.proj", x, 8 * x.last()), 2, -1);
    const Value gate = gelu(net_, parts[1]);
    return linear(net_, "2", mul(net_, parts[0], gate), x.last());
  }

  // Over the pixels of x [n, channels, height, width].
  Value transformer(std::int64_t index, const Value& x, std::int64_t layers) {
    constexpr double kEpsilon = 1e-6;
    const auto scope = net_.scope("attentions", index);
    const Value normed = group_norm(net_, "norm", x, options_.groups, kEpsilon);
    const Value flat = reshape(net_, normed, {x.dim(0), x.dim(1), -1});
    Value y = linear(net_, "proj_in", transpose(net_, flat, {0, 2, 1}), x.dim(1));
    for (std::int64_t i = 0; i < layers; ++i) {
      const auto at = net_.scope("transformer_blocks", i);
      const Value own = layer_norm(net_, "norm1", y);
      y = add(net_, y, attention("attn1", own, own));
      y = add(net_, y, attention("attn2", layer_norm(net_, "norm2", y), prompt_));
      y = add(net_, y, feed_forward(layer_norm(net_, "norm3", y)));
    }
    y = transpose(net_, linear(net_, "proj_out", y, x.dim(1)), {0, 2, 1});
    return add(net_, x, reshape(net_, y, x.shape));
  }

  Value go_down(Value x, std::int64_t level) {
    const auto scope = net_.scope("down_blocks", level);
    for (std::int64_t i = 0; i < 2; ++i) {
      x = resnet(i, x, channels(level));
      if (depth(level) > 0) x = transformer(i, x, depth(level));
      skips_.push_back(x);
    }
    if (level + 1 == kLevels) return x;
    x = conv_layer(net_, "downsamplers.0.conv", x, channels(level), same(3, 2), true);
    skips_.push_back(x);
    return x;
  }

  Value middle(Value x) {
    const auto scope = net_.scope("mid_block");
    x = resnet(0, x, x.dim(1));
    x = transformer(0, x, options_.deep);
    return resnet(1, x, x.dim(1));
  }

  Value go_up(Value x, std::int64_t level) {
    const auto scope = net_.scope("up_blocks", kLevels - 1 - level);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Value joined = concat(net_, {x, skips_.back()}, 1);
      skips_.pop_back();
      x = resnet(i, joined, channels(level));
      if (depth(level) > 0) x = transformer(i, x, depth(level));
    }
    if (level == 0) return x;
    return conv_layer(net_, "upsamplers.0.conv", twice(x), channels(level), same(3), true);
  }

  // Every pixel as four.
  Value twice(const Value& x) {
    const Shape apart{x.dim(0), x.dim(1), x.dim(2), 1, x.dim(3), 1};
    const Shape wide{x.dim(0), x.dim(1), x.dim(2), 2, x.dim(3), 2};
    const Value repeated = expand(net_, reshape(net_, x, apart), wide);
    return reshape(net_, repeated, {x.dim(0), x.dim(1), 2 * x.dim(2), 2 * x.dim(3)});
  }

  Net& net_;
  const Sdxl& options_;
  Value prompt_;
  Value condition_;
  Values skips_;
};

void build(Net& net, const Sdxl& options) {
  Value left;
  {
    const auto scope = net.scope("unet");
    left = UNet(net, options).build();
  }
  const Value noise = net.input("noise", left.shape);
  const auto scope = net.scope("loss");
  const Value rest = sub(net, left, noise);
  reduce(net, "ReduceMean", mul(net, rest, rest), {0, 1, 2, 3}, false);
}

}  // namespace

std::vector<ModelInfo> sdxl_models() {
  return {model<Sdxl>({.name = "sdxl-unet",
                       .summary = "The U-Net of Stable Diffusion XL: images from noise.",
                       .source = "Podell et al. 2023; Hugging Face UNet2DConditionModel, "
                                 "stable-diffusion-xl-base-1.0",
                       .parameters = 2'567'463'684},
                      build)};
}

}  // namespace emplace::zoo

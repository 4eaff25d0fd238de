#include "zoo/image_model.h"

#include <algorithm>

#include "base/check.h"

namespace emplace::zoo {

Value input_images(Net& net, const ImageOptions& options) {
  return net.input("images", {options.batch, 3, options.image, options.image});
}

Value image_loss(Net& net, const Value& logits) {
  return classification_loss(net, logits, net.input("labels", {logits.dim(0)}, DType::kInt64));
}

ConvShape same_padding(std::int64_t size, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t steps = (size + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((steps - 1) * stride + kernel - size, 0);
  return {.kernel = {kernel},
          .stride = {stride},
          .padding = {total / 2},
          .end_padding = {total - total / 2}};
}

Value relu_conv_bn(Net& net, std::string_view name, const Value& x, std::int64_t out,
                   const ConvShape& shape, double epsilon) {
  const auto scope = net.scope(name);
  return batch_norm(net, "bn", conv_layer(net, "conv", relu(net, x), out, shape), epsilon);
}

Value factorized_reduction(Net& net, std::string_view name, const Value& x, std::int64_t out,
                           double epsilon) {
  EMPLACE_CHECK(out % 2 == 0);
  const auto scope = net.scope(name);
  const ConvShape every_other{.kernel = {1}, .stride = {2}};
  const Value active = relu(net, x);
  const Value even = conv_layer(net, "path1", average_pool(net, active, every_other), out / 2, {});

  const std::int64_t height = x.dim(2);
  const std::int64_t width = x.dim(3);
  const Values range{pad(net, active, {0, 0, 0, 0, 0, 0, 1, 1}), net.constant({1, 1}),
                     net.constant({height + 1, width + 1}), net.constant({2, 3})};
  const Value shifted = net.add_one("Slice", range, tensor_type(x.shape, x.dtype));
  const Value odd = conv_layer(net, "path2", average_pool(net, shifted, every_other), out / 2, {});
  return batch_norm(net, "bn", concat(net, {even, odd}, 1), epsilon);
}

}  // namespace emplace::zoo

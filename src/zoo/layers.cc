#include "zoo/layers.h"

#include "graph/precision.h"

namespace emplace::zoo {

Value linear(Net& net, std::string_view name, const Value& x, std::int64_t out, bool bias) {
  const auto scope = net.scope(name);
  const Value weight = net.parameter("weight", {out, x.last()});
  std::optional<Value> offset;
  if (bias) offset = net.parameter("bias", {out});
  return project(net, x, weight, offset);
}

Value project(Net& net, const Value& x, const Value& weight, const std::optional<Value>& bias) {
  Shape shape = x.shape;
  shape.back() = weight.dim(0);
  return reshape(net, gemm(net, reshape(net, x, {-1, x.last()}), weight, bias), shape);
}

ConvShape same(std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
  return {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}, .groups = groups};
}

Value conv_layer(Net& net, std::string_view name, const Value& x, std::int64_t out,
                 const ConvShape& shape, bool bias) {
  const auto scope = net.scope(name);
  Shape weights{out, x.dim(1) / shape.groups};
  for (std::size_t i = 2; i < x.rank(); ++i) {
    weights.push_back(shape.kernel.size() == 1 ? shape.kernel[0] : shape.kernel.at(i - 2));
  }
  const Value weight = net.parameter("weight", weights);
  std::optional<Value> offset;
  if (bias) offset = net.parameter("bias", {out});
  return conv(net, x, weight, offset, shape);
}

Value batch_norm(Net& net, std::string_view name, const Value& x, double epsilon) {
  const auto scope = net.scope(name);
  const std::int64_t channels = x.dim(1);
  const Values inputs{x, net.parameter("weight", {channels}), net.parameter("bias", {channels}),
                      net.buffer("running_mean", {channels}),
                      net.buffer("running_var", {channels})};
  return net.add_one("BatchNormalization", inputs, tensor_type(x.shape, x.dtype),
                     {{"epsilon", epsilon}});
}

Value group_norm(Net& net, std::string_view name, const Value& x, std::int64_t groups,
                 double epsilon) {
  const auto scope = net.scope(name);
  const Values inputs{x, net.parameter("weight", {x.dim(1)}), net.parameter("bias", {x.dim(1)})};
  return net.add_one("GroupNormalization", inputs, tensor_type(x.shape, x.dtype),
                     {{"num_groups", groups}, {"epsilon", epsilon}});
}

Value layer_norm(Net& net, std::string_view name, const Value& x, double epsilon) {
  const auto scope = net.scope(name);
  const Values inputs{x, net.parameter("weight", {x.last()}), net.parameter("bias", {x.last()})};
  return net.add_one("LayerNormalization", inputs, tensor_type(x.shape, x.dtype),
                     {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
}

Value rms_norm(Net& net, std::string_view name, const Value& x, double epsilon) {
  const auto scope = net.scope(name);
  return net.add_one("RMSNormalization", {x, net.parameter("weight", {x.last()})},
                     tensor_type(x.shape, x.dtype),
                     {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
}

Value conv_bn_relu(Net& net, std::string_view name, const Value& x, std::int64_t out,
                   const ConvShape& shape) {
  const auto scope = net.scope(name);
  return relu(net, batch_norm(net, "bn", conv_layer(net, "conv", x, out, shape)));
}

Value embedding(Net& net, std::string_view name, const Value& ids, std::int64_t rows,
                std::int64_t width) {
  const auto scope = net.scope(name);
  return gather(net, net.parameter("weight", {rows, width}), ids);
}

Value dropout(Net& net, const Value& x, double probability) {
  if (!net.training() || probability == 0) return x;
  const Value ratio = net.scalar(probability);
  return net.add("Dropout", {x, ratio},
                 {tensor_type(x.shape, x.dtype), tensor_type(x.shape, DType::kBool)})[0];
}

LstmWeights lstm_weights(Net& net, std::string_view name, std::int64_t in, std::int64_t hidden) {
  const auto scope = net.scope(name);
  return {.input = net.parameter("weight_ih", {4 * hidden, in}),
          .hidden = net.parameter("weight_hh", {4 * hidden, hidden}),
          .input_bias = net.parameter("bias_ih", {4 * hidden}),
          .hidden_bias = net.parameter("bias_hh", {4 * hidden})};
}

LstmState lstm_step(Net& net, const Value& x, const LstmState& state, const LstmWeights& weights) {
  const Value from_input = gemm(net, x, weights.input, weights.input_bias);
  const Value from_state = gemm(net, state.hidden, weights.hidden, weights.hidden_bias);
  const Value gates = add(net, from_input, from_state);
  const Values parts = split_evenly(net, gates, 4, 1);
  const Value in = sigmoid(net, parts[0]);
  const Value forget = sigmoid(net, parts[1]);
  const Value candidate = tanh(net, parts[2]);
  const Value out = sigmoid(net, parts[3]);
  const Value kept = mul(net, forget, state.cell);
  const Value cell = add(net, kept, mul(net, in, candidate));
  return {.hidden = mul(net, out, tanh(net, cell)), .cell = cell};
}

Value cast(Net& net, const Value& x, DType dtype) {
  if (x.dtype == dtype) return x;
  return net.add_one("Cast", {x}, tensor_type(x.shape, dtype), {{"to", onnx_type_number(dtype)}});
}

Value classification_loss(Net& net, const Value& logits, const Value& labels) {
  const auto scope = net.scope("loss");
  const Value rows = reshape(net, logits, {-1, logits.last()});
  return cross_entropy(net, rows, reshape(net, labels, {-1}));
}

}  // namespace emplace::zoo

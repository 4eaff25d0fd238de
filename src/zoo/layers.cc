#include "zoo/layers.h"

#include <cmath>

#include "base/error.h"

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

Value split_heads(Net& net, const Value& x, std::int64_t heads) {
  if (x.last() % heads != 0) {
    fail_option("module '{}': a width of {} is not divisible by {} heads", net.module(), x.last(),
                heads);
  }
  const Value apart = reshape(net, x, {x.dim(0), x.dim(1), heads, x.last() / heads});
  return transpose(net, apart, {0, 2, 1, 3});
}

Value merge_heads(Net& net, const Value& x) {
  const Value together = transpose(net, x, {0, 2, 1, 3});
  return reshape(net, together, {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

namespace {

// Each key (or value) head for as many queries as there are to it.
Value repeat_heads(Net& net, const Value& x, std::int64_t heads) {
  if (x.dim(1) == heads) return x;
  if (heads % x.dim(1) != 0) {
    fail_option("module '{}': {} heads are not a multiple of {} key heads", net.module(), heads,
                x.dim(1));
  }
  const Value apart = unsqueeze(net, x, 2);
  const Value repeated =
      expand(net, apart, {x.dim(0), x.dim(1), heads / x.dim(1), x.dim(2), x.dim(3)});
  return reshape(net, repeated, {x.dim(0), heads, x.dim(2), x.dim(3)});
}

}  // namespace

Value attend(Net& net, const Value& q, const Value& k, const Value& v,
             const AttentionOptions& options) {
  const Value keys = transpose(net, repeat_heads(net, k, q.dim(1)), {0, 1, 3, 2});
  Value scores = scale(net, matmul(net, q, keys), 1 / std::sqrt(static_cast<double>(q.last())));
  if (options.mask != nullptr) scores = add(net, scores, *options.mask);
  const Value weights = dropout(net, softmax(net, scores), options.dropout);
  return matmul(net, weights, repeat_heads(net, v, q.dim(1)));
}

Value causal_mask(Net& net, std::int64_t length, std::int64_t before) {
  return net.input("causal_mask", {1, 1, length, before + length});
}

RotaryTables rotary_tables(Net& net, std::int64_t length, std::int64_t size) {
  const auto scope = net.scope("rotary");
  return {.cos = net.buffer("cos", {length, size}), .sin = net.buffer("sin", {length, size})};
}

Value rotate(Net& net, const Value& x, const RotaryTables& tables) {
  if (x.last() % 2 != 0) {
    fail_option(
        "module '{}': heads of {} elements cannot be rotated in pairs; expected an even size",
        net.module(), x.last());
  }
  const Values halves = split_evenly(net, x, 2, -1);
  const Value turned = concat(net, {unary(net, "Neg", halves[1]), halves[0]}, -1);
  const Value along = mul(net, x, tables.cos);
  return add(net, along, mul(net, turned, tables.sin));
}

Value grouped_attention(Net& net, std::string_view name, const Value& x,
                        const GroupedAttention& options) {
  const auto scope = net.scope(name);
  const std::int64_t hidden = x.last();
  if (hidden % options.heads != 0) {
    fail_option("module '{}': a width of {} is not divisible by {} heads", net.module(), hidden,
                options.heads);
  }
  const std::int64_t key_width = hidden / options.heads * options.key_heads;
  const Value q = split_heads(net, linear(net, "q_proj", x, hidden, false), options.heads);
  const Value k = split_heads(net, linear(net, "k_proj", x, key_width, false), options.key_heads);
  const Value v = split_heads(net, linear(net, "v_proj", x, key_width, false), options.key_heads);
  const Value queries = rotate(net, q, options.positions);
  const Value keys = rotate(net, k, options.positions);
  const Value attended = attend(net, queries, keys, v, {.mask = &options.mask});
  return linear(net, "o_proj", merge_heads(net, attended), hidden, false);
}

Value classification_loss(Net& net, const Value& logits, const Value& labels) {
  const auto scope = net.scope("loss");
  const Value rows = reshape(net, logits, {-1, logits.last()});
  return cross_entropy(net, rows, reshape(net, labels, {-1}));
}

}  // namespace emplace::zoo

#include "zoo/attention.h"

#include <cmath>

#include "base/error.h"

#include "zoo/layers.h"
#include "zoo/operators.h"

namespace emplace::zoo {
namespace {

void require_multiple(const Net& net, std::int64_t heads, std::int64_t key_heads) {
  if (heads % key_heads == 0) return;
  fail_option("module '{}': {} heads are not a multiple of {} key heads", net.module(), heads,
              key_heads);
}

// Each key (or value) head for as many queries as there are to it.
Value repeat_heads(Net& net, const Value& x, std::int64_t heads) {
  if (x.dim(1) == heads) return x;
  require_multiple(net, heads, x.dim(1));
  const Value apart = unsqueeze(net, x, 2);
  const Value repeated =
      expand(net, apart, {x.dim(0), x.dim(1), heads / x.dim(1), x.dim(2), x.dim(3)});
  return reshape(net, repeated, {x.dim(0), heads, x.dim(2), x.dim(3)});
}

Value fused_attention(Net& net, const Value& q, const Value& k, const Value& v,
                      const AttentionOptions& options) {
  require_multiple(net, q.dim(1), k.dim(1));
  Values inputs{q, k, v};
  if (options.sinks != nullptr) inputs.push_back(*options.sinks);
  Attributes attributes;
  if (options.causal) attributes.set("is_causal", std::int64_t{1});
  if (options.causal && options.window > 0) attributes.set("window", options.window);
  if (net.training() && options.dropout > 0) attributes.set("dropout", options.dropout);
  std::vector<TensorType> outputs{tensor_type({q.dim(0), q.dim(1), q.dim(2), v.last()}, q.dtype)};
  if (net.training()) {
    outputs.push_back(tensor_type({q.dim(0), q.dim(1), q.dim(2)}, DType::kFloat32));
  }
  return net.add("FlashAttention", inputs, outputs, attributes)[0];
}

// Of scores [n, heads, length, keys], with a sink as one more key that is left out again.
Value probabilities(Net& net, const Value& scores, const Value* sinks) {
  if (sinks == nullptr) return softmax(net, scores);
  const Shape column{scores.dim(0), scores.dim(1), scores.dim(2), 1};
  const Value apart = reshape(net, *sinks, {1, scores.dim(1), 1, 1});
  const Value joined = concat(net, {scores, expand(net, apart, column)}, -1);
  return slice(net, softmax(net, joined), -1, 0, scores.last());
}

}  // namespace

Value attend(Net& net, const Value& q, const Value& k, const Value& v,
             const AttentionOptions& options) {
  if (options.fused) return fused_attention(net, q, k, v, options);
  const Value keys = transpose(net, repeat_heads(net, k, q.dim(1)), {0, 1, 3, 2});
  Value scores = scale(net, matmul(net, q, keys), 1 / std::sqrt(static_cast<double>(q.last())));
  if (options.mask != nullptr) scores = add(net, scores, *options.mask);
  const Value weights = dropout(net, probabilities(net, scores, options.sinks), options.dropout);
  return matmul(net, weights, repeat_heads(net, v, q.dim(1)));
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

Value causal_mask(Net& net, std::int64_t length, std::int64_t before) {
  return net.input("causal_mask", {1, 1, length, before + length});
}

std::optional<Value> mask_unless(bool fused, Net& net, std::int64_t length) {
  if (fused) return std::nullopt;
  return causal_mask(net, length);
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
  if (options.size == 0 && hidden % options.heads != 0) {
    fail_option("module '{}': a width of {} is not divisible by {} heads", net.module(), hidden,
                options.heads);
  }
  const std::int64_t size = options.size > 0 ? options.size : hidden / options.heads;
  const auto heads = [&](std::string_view part, std::int64_t count) {
    return split_heads(net, linear(net, part, x, count * size, options.biases), count);
  };
  const Value q = heads("q_proj", options.heads);
  const Value k = heads("k_proj", options.key_heads);
  const Value v = heads("v_proj", options.key_heads);
  const Value queries = rotate(net, q, options.positions);
  const Value keys = rotate(net, k, options.positions);
  std::optional<Value> sinks;
  if (options.sinks) sinks = net.parameter("sinks", {options.heads});
  const Value attended = attend(net, queries, keys, v,
                                {.fused = !options.mask,
                                 .mask = options.mask ? &*options.mask : nullptr,
                                 .causal = true,
                                 .window = options.window,
                                 .sinks = sinks ? &*sinks : nullptr});
  return linear(net, "o_proj", merge_heads(net, attended), hidden, options.biases);
}

}  // namespace emplace::zoo

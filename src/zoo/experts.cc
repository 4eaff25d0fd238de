#include "zoo/experts.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

#include "zoo/layers.h"
#include "zoo/operators.h"

namespace emplace::zoo {
namespace {

struct Best {
  Value values;
  Value indices;
};

// Along the last axis.
Best top_k(Net& net, const Value& x, std::int64_t k) {
  Shape shape = x.shape;
  shape.back() = k;
  const Values both = net.add("TopK", {x, net.constant({k})},
                              {tensor_type(shape, x.dtype), tensor_type(shape, DType::kInt64)},
                              {{"axis", std::int64_t{-1}}});
  return {both[0], both[1]};
}

Value to_one(Net& net, const Value& weights) {
  return div(net, weights, reduce(net, "ReduceSum", weights, {1}, true));
}

// Of scores [tokens, experts] in float32: the weights [tokens, chosen], and whose they are.
Best choose(Net& net, const Value& scores, const Routing& routing) {
  if (routing.weights == Routing::Weights::kSoftmax) {
    const Best best = top_k(net, softmax(net, scores), routing.chosen);
    return {to_one(net, best.values), best.indices};
  }
  if (routing.weights == Routing::Weights::kSoftmaxOfChosen) {
    const Best best = top_k(net, scores, routing.chosen);
    return {softmax(net, best.values), best.indices};
  }
  const Value all = sigmoid(net, scores);
  const Value correction =
      cast(net, net.buffer("e_score_correction_bias", {routing.experts}), DType::kFloat32);
  const Best best = top_k(net, add(net, all, correction), routing.chosen);
  const Value weights =
      net.add_one("GatherElements", {all, best.indices}, tensor_type(best.indices.shape, all.dtype),
                  {{"axis", std::int64_t{1}}});
  const Value even = to_one(net, weights);
  return {
      routing.scale == 1 ? even : mul(net, even, cast(net, net.scalar(routing.scale), even.dtype)),
      best.indices};
}

}  // namespace

std::int64_t expert_capacity(std::int64_t tokens, const Routing& routing, double share) {
  if (routing.chosen > routing.experts) {
    fail_option("a token cannot choose {} of {} experts; expected chosen to be at most experts",
                routing.chosen, routing.experts);
  }
  const double even =
      static_cast<double>(routing.chosen * tokens) / static_cast<double>(routing.experts);
  return std::clamp(static_cast<std::int64_t>(std::ceil(share * even)), std::int64_t{1}, tokens);
}

Routes route(Net& net, std::string_view name, const Value& x, const Value& zeros,
             const Routing& routing) {
  // In single precision whatever the model's, as published.
  const Value scores =
      cast(net, linear(net, name, x, routing.experts, routing.bias), DType::kFloat32);
  const Best chosen = choose(net, scores, routing);
  const Value table =
      net.add_one("ScatterElements", {zeros, chosen.indices, chosen.values},
                  tensor_type(zeros.shape, zeros.dtype), {{"axis", std::int64_t{1}}});
  const Best best = top_k(net, transpose(net, table, {1, 0}), routing.capacity);
  return {best.values, best.indices};
}

Value empty_table(Net& net, std::int64_t tokens, std::int64_t experts) {
  const Shape shape{tokens, experts};
  return net.add_one("ConstantOfShape", {net.constant(shape)}, tensor_type(shape, DType::kFloat32));
}

Value mix(Net& net, const Value& x, const Value& residual, const Routes& routes, std::int64_t parts,
          const std::function<Value(const Value&)>& expert) {
  const std::int64_t experts = routes.tokens.dim(0);
  if (experts % parts != 0) {
    fail_option("module '{}': {} experts are not divisible into {} parts", net.module(), experts,
                parts);
  }
  const std::int64_t each = experts / parts;
  const Values tokens = split_evenly(net, routes.tokens, parts, 0);
  const Values weights = split_evenly(net, cast(net, routes.weights, net.dtype()), parts, 0);
  Values results;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto at = net.scope("experts", i);
    const auto index = static_cast<std::size_t>(i);
    Value own = gather(net, x, reshape(net, tokens[index], {-1}));
    const Value weight = reshape(net, weights[index], {-1, 1});
    if (each > 1) own = reshape(net, own, {each, -1, x.last()});
    const Value result = reshape(net, expert(own), {-1, x.last()});
    results.push_back(mul(net, result, weight));
  }
  const Value rows = reshape(net, routes.tokens, {-1, 1});
  return net.add_one("ScatterND", {residual, rows, concat(net, results, 0)},
                     tensor_type(residual.shape, residual.dtype),
                     {{"reduction", std::string("add")}});
}

Value expert_linear(Net& net, std::string_view name, const Value& x, std::int64_t out, bool bias) {
  if (x.rank() == 2) return linear(net, name, x, out, bias);
  const auto scope = net.scope(name);
  const Value y = matmul(net, x, net.parameter("weight", {x.dim(0), x.last(), out}));
  return bias ? add(net, y, net.parameter("bias", {x.dim(0), 1, out})) : y;
}

}  // namespace emplace::zoo

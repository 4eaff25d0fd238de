// Attention in one op and its gradient, by what the op hands out beside its result: the logarithm
// of the sum that each softmax divides by. Examples are taken a few at a time, so that the scores,
// which are never kept, stay small.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

#include "exec/native.h"
#include "exec/random.h"
#include "exec/team_products.h"

namespace emplace::exec {
namespace {

// Q [batch, heads, queries, size], K and V with as many heads or fewer, each of which then serves
// several; perhaps sinks: a score for each head that takes its share of every softmax and adds
// nothing.
struct Heads {
  std::int64_t batch, heads, queries, size, key_heads, keys;
  double scale = 1;
  bool causal = false;
  std::int64_t window = 0;  // how many keys a query sees; 0: all before it
  std::optional<Chance> chance = {};
  std::uint64_t key = 0;

  std::int64_t each() const { return heads / key_heads; }
};

Heads heads_of(const Site& site, std::size_t q) {
  const Shape& query = site.in(q);
  const Shape& key = site.in(q + 1);
  if (query.size() != 4 || key.size() != 4 || key[1] == 0 || query[1] % key[1] != 0) {
    fail_input("expected [batch, heads, length, size], with heads that divide the queries'");
  }
  Heads heads{.batch = query[0],
              .heads = query[1],
              .queries = query[2],
              .size = query[3],
              .key_heads = key[1],
              .keys = key[2]};
  heads.scale = site.call.real("scale", 1 / std::sqrt(static_cast<double>(query[3])));
  heads.causal = site.call.integer("is_causal", 0) != 0;
  heads.window = site.call.integer("window", 0);
  heads.key = site.call.stream.key;
  if (const double ratio = site.call.real("dropout", 0); ratio > 0) {
    heads.chance.emplace(site.call, Shape{query[0], query[1], query[2], key[2]}, ratio);
  }
  return heads;
}

// Which keys each query does not see; not defined: it sees all.
Tensor hidden_keys(const Heads& heads, const torch::Device& device) {
  if (!heads.causal) return {};
  const std::int64_t ahead = heads.keys - heads.queries;
  const Tensor all =
      torch::ones({heads.queries, heads.keys}, torch::TensorOptions(torch::kBool).device(device));
  const Tensor past = all.tril(ahead);
  return (heads.window > 0 ? past.triu(ahead - heads.window + 1) : past).logical_not();
}

Tensor for_all_heads(const Tensor& x, std::int64_t each) {
  return each == 1 ? x : x.repeat_interleave(each, 1);
}

// Sums what a key's heads were used for.
Tensor by_key_heads(const Tensor& x, const Heads& heads) {
  if (heads.each() == 1) return x;
  return x.reshape({x.size(0), heads.key_heads, heads.each(), x.size(2), x.size(3)}).sum(2);
}

// Sums of 16 bits would be too coarse.
Tensor in_float(const Tensor& x) {
  const bool narrow = x.scalar_type() == torch::kHalf || x.scalar_type() == torch::kBFloat16;
  return narrow ? x.to(torch::kFloat) : x;
}

Tensor scores_of(const Heads& heads, const Tensor& q, const Tensor& k, const Tensor& hidden) {
  const Tensor scores = in_float(team_matmul(q * heads.scale, k.transpose(-2, -1)));
  if (!hidden.defined()) return scores;
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

Tensor sums_of(const Tensor& scores, const Tensor& sinks) {
  const Tensor sums = scores.logsumexp(-1);
  return sinks.defined() ? at::logaddexp(sums, in_float(sinks).reshape({1, -1, 1})) : sums;
}

// How many examples have scores of some megabytes together.
std::int64_t examples_at_once(const Heads& heads) {
  constexpr std::int64_t kElements = 1 << 23;
  const std::int64_t each = heads.heads * heads.queries * heads.keys;
  return std::clamp<std::int64_t>(kElements / std::max<std::int64_t>(each, 1), 1,
                                  std::max<std::int64_t>(heads.batch, 1));
}

Stream attention_stream(const OpStep& step, const Heads& heads) {
  return {.key = heads.key, .step = step.step, .clock = step.clock};
}

Tensor attention_mask(const OpStep& step, const Heads& heads, const Tensor& like) {
  return heads.chance ? heads.chance->mask(attention_stream(step, heads), like.device()) : Tensor();
}

Run compile_flash_attention(const Site& site) {
  if (site.size() < 3) fail_input("has {} inputs, expected at least 3", site.size());
  return [heads = heads_of(site, 0), at_once = examples_at_once(heads_of(site, 0))](OpStep& step) {
    const Tensor sinks = step.inputs.size() > 3 ? step.inputs[3] : Tensor();
    const Tensor hidden = hidden_keys(heads, step.inputs[0].device());
    const Tensor mask = attention_mask(step, heads, step.inputs[0]);
    Tensors results;
    Tensors all_sums;
    for (std::int64_t i = 0; i < heads.batch; i += at_once) {
      const std::int64_t count = std::min(at_once, heads.batch - i);
      const auto part = [&](const Tensor& x) { return x.narrow(0, i, count); };
      const Tensor k = for_all_heads(part(step.inputs[1]), heads.each());
      const Tensor v = for_all_heads(part(step.inputs[2]), heads.each());
      const Tensor scores = scores_of(heads, part(step.inputs[0]), k, hidden);
      const Tensor sums = sums_of(scores, sinks);
      Tensor weights = (scores - sums.unsqueeze(-1)).exp();
      if (mask.defined()) weights = masked(weights, part(mask), heads.chance->scale());
      results.push_back(team_matmul(weights.to(v.scalar_type()), v));
      all_sums.push_back(sums);
    }
    step.outputs[0] = results.size() == 1 ? results[0] : at::cat(results);
    if (step.outputs.size() > 1) {
      step.outputs[1] = all_sums.size() == 1 ? all_sums[0] : at::cat(all_sums);
    }
  };
}

// What a part of the examples needs of the op.
struct Backward {
  Tensor dy, q, k, v, y, sums, mask;
};

// Of queries, keys, values and, by example, sinks.
Tensors part_gradients(const Heads& heads, const Backward& at, const Tensor& hidden,
                       const Tensor& sinks) {
  const Tensor k = for_all_heads(at.k, heads.each());
  const Tensor v = for_all_heads(at.v, heads.each());
  const Tensor scores = scores_of(heads, at.q, k, hidden);
  const Tensor sums = at.sums.defined() ? at.sums : sums_of(scores, sinks);
  const Tensor weights = (scores - sums.unsqueeze(-1)).exp();
  Tensor used = weights;
  Tensor dweights = in_float(team_matmul(at.dy, v.transpose(-2, -1)));
  if (at.mask.defined()) {
    used = masked(weights, at.mask, heads.chance->scale());
    dweights = masked(dweights, at.mask, heads.chance->scale());
  }
  const Tensor mean = in_float(at.dy * at.y).sum(-1);
  const auto type = at.q.scalar_type();
  const Tensor dscores = (weights * (dweights - mean.unsqueeze(-1)) * heads.scale).to(type);
  used = used.to(type);
  Tensors result{team_matmul(dscores, k),
                 by_key_heads(team_matmul(dscores.transpose(-2, -1), at.q), heads),
                 by_key_heads(team_matmul(used.transpose(-2, -1), at.dy), heads)};
  if (sinks.defined()) {
    const Tensor shares = (in_float(sinks).reshape({1, -1, 1}) - sums).exp();
    result.push_back(-(mean * shares).sum(2));
  }
  return result;
}

// Reads the gradient, the inputs, Y, and the sums where the op kept them.
Run compile_flash_attention_grad(const Site& site) {
  if (site.size() < 5) fail_input("has {} inputs, expected 5 to 7", site.size());
  const bool has_sums = site.inputs.back().shape.size() == 3;
  const std::size_t inputs = site.size() - 1 - (has_sums ? 2 : 1);
  if (inputs != 3 && inputs != 4) fail_input("has {} inputs, expected 5 to 7", site.size());
  return [heads = heads_of(site, 1), at_once = examples_at_once(heads_of(site, 1)), has_sums,
          inputs, wanted = site.wanted()](OpStep& step) {
    const Tensor sinks = inputs == 4 ? step.inputs[4] : Tensor();
    const Tensor hidden = hidden_keys(heads, step.inputs[0].device());
    const Tensor mask = attention_mask(step, heads, step.inputs[0]);
    std::array<Tensors, 4> parts;
    for (std::int64_t i = 0; i < heads.batch; i += at_once) {
      const std::int64_t count = std::min(at_once, heads.batch - i);
      const auto part = [&](const Tensor& x) { return x.narrow(0, i, count); };
      const Backward at{.dy = part(step.inputs[0]),
                        .q = part(step.inputs[1]),
                        .k = part(step.inputs[2]),
                        .v = part(step.inputs[3]),
                        .y = part(step.inputs[inputs + 1]),
                        .sums = has_sums ? part(step.inputs[inputs + 2]) : Tensor(),
                        .mask = mask.defined() ? part(mask) : Tensor()};
      Tensors found = part_gradients(heads, at, hidden, sinks);
      for (std::size_t k = 0; k < found.size(); ++k) parts[k].push_back(std::move(found[k]));
    }
    const auto whole = [&](std::size_t k) {
      return parts[k].size() == 1 ? parts[k][0] : at::cat(parts[k]);
    };
    const Tensor dsinks = sinks.defined() ? whole(3).sum(0) : Tensor();
    hand_out(step, wanted, {whole(0), whole(1), whole(2), dsinks});
  };
}

}  // namespace

void add_native_attention(CompilerTable& table) {
  table["FlashAttention"] = compile_flash_attention;
  table["FlashAttentionGrad"] = compile_flash_attention_grad;
}

}  // namespace emplace::exec

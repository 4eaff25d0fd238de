// Attention in one op, with masks and what was kept of earlier steps, but without lengths:
// sequences are whole. What else there is to these operators is refused (supported.cc).
// FlashAttention is in native_attention.cc.
#include <algorithm>
#include <cmath>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// [batch, length, heads x size] as [batch, heads, length, size].
Tensor apart(const Tensor& x, std::int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

Tensor together(const Tensor& x, const Shape& shape) {
  return shape.size() == 4 ? x : x.transpose(1, 2).reshape(shape);
}

struct Options {
  double scale = 0;  // 0: one over the root of a head's size
  bool causal = false;
  std::int64_t past = 0;  // keys of earlier steps, which every query sees if causal
  Tensor mask = {};       // added to the scores, or says which count
};

// Keys and values may have fewer heads than queries; each then serves several.
Tensor attend(const Tensor& q, Tensor k, Tensor v, const Options& options) {
  if (k.size(1) == 0 || v.size(1) == 0) fail_input("has no heads");
  k = k.repeat_interleave(q.size(1) / k.size(1), 1);
  v = v.repeat_interleave(q.size(1) / v.size(1), 1);
  const double scale =
      options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const double never = -std::numeric_limits<double>::infinity();
  Tensor scores = q.matmul(k.transpose(-2, -1)) * scale;
  if (options.mask.defined()) {
    scores = options.mask.is_floating_point()
                 ? scores + options.mask
                 : scores.masked_fill(options.mask.logical_not(), never);
  }
  if (options.causal) {
    const Tensor later =
        torch::ones({q.size(2), k.size(2)}, q.options().dtype(torch::kBool).requires_grad(false))
            .triu(options.past + 1);
    scores = scores.masked_fill(later, never);
  }
  return scores.softmax(-1).matmul(v);
}

// Queries, keys and values; those that were one tensor may be listed once. From position `past` on
// may be keys and values of earlier steps; all of them together are what is put out after Y.
Tensors separate_attention(const Call& call, std::int64_t heads, std::int64_t key_heads,
                           Options options, std::size_t past, const Tensor& bias = {}) {
  Tensor q = call.in(0);
  Tensor k = call.has(1) ? call.in(1) : q;
  Tensor v = call.has(2) ? call.in(2) : k;
  if (bias.defined()) {
    const auto parts = bias.split_with_sizes({q.size(-1), k.size(-1), v.size(-1)});
    q = q + parts[0];
    k = k + parts[1];
    v = v + parts[2];
  }
  k = apart(k, key_heads);
  v = apart(v, key_heads);
  if (const Tensor kept = call.given_at(past); kept.defined()) {
    options.past = kept.size(2);
    k = at::cat({kept, k}, 2);
    v = at::cat({call.given_at(past + 1), v}, 2);
  }
  Tensors results{together(attend(apart(q, heads), k, v, options), call.shape())};
  if (call.outputs.size() > 1) results.push_back(k);
  if (call.outputs.size() > 2) results.push_back(v);
  return results;
}

// What ONNX Runtime adds to the scores of keys that do not count.
Tensor filter_of(const Call& call, const Tensor& counts, const Tensor& like) {
  const double filter = call.real("mask_filter_value", -10000);
  return torch::zeros(counts.sizes(), like.options().requires_grad(false))
      .masked_fill(counts.logical_not(), filter)
      .unsqueeze(1)
      .unsqueeze(1);
}

// Which keys count, [batch, keys], or how many do, [batch].
Tensor counting_keys(const Tensor& mask, std::int64_t keys) {
  if (mask.dim() == 2) return mask.to(torch::kBool);
  return torch::arange(keys, mask.options()).unsqueeze(0) < mask.unsqueeze(1);
}

// Contrib operator: input [batch, length, in], weights [in, 3 x hidden], bias [3 x hidden], perhaps
// which keys count.
Tensor packed_attention(const Call& call) {
  Tensor all = call.in(0).matmul(call.in(1));
  if (const Tensor bias = call.given_at(2); bias.defined()) all = all + bias;
  const Tensors parts = all.chunk(3, -1);
  if (parts.size() < 3) fail_input("has weights of no queries, keys and values");
  const std::int64_t heads = call.integer("num_heads", 1);
  Options options{.scale = call.real("scale", 0), .causal = call.integer("unidirectional", 0) != 0};
  if (const Tensor mask = call.given_at(3); mask.defined()) {
    options.mask = filter_of(call, counting_keys(mask, all.size(1)), all);
  }
  return together(
      attend(apart(parts[0], heads), apart(parts[1], heads), apart(parts[2], heads), options),
      call.shape());
}

// ONNX's own (opset 23): Q, K, V, perhaps a mask, past keys and values.
Tensors attention(const Call& call) {
  if (call.has(1) && call.in(0).dim() == 3 && call.in(1).dim() == 2) {
    return {packed_attention(call)};
  }
  const Options options{.scale = call.real("scale", 0),
                        .causal = call.integer("is_causal", 0) != 0,
                        .mask = call.given_at(3)};
  const std::int64_t heads = call.integer("q_num_heads", 1);
  return separate_attention(call, heads, call.integer("kv_num_heads", heads), options, 4);
}

// Q, K, V, perhaps a bias of all three, which keys count [batch, keys], what is added to scores,
// past keys and values.
Tensors multi_head_attention(const Call& call) {
  const std::int64_t heads = call.integer("num_heads", 1);
  Options options{.scale = call.real("scale", 0),
                  .causal = call.integer("unidirectional", 0) != 0,
                  .mask = call.given_at(5)};
  if (const Tensor counts = call.given_at(4); counts.defined()) {
    options.mask = filter_of(call, counts.to(torch::kBool), call.in(0));
  }
  return separate_attention(call, heads, heads, options, 6, call.given_at(3));
}

// Q, K, V, perhaps past keys and values, then lengths, which are those of whole sequences, tables
// of rotations, and what is added to scores.
Tensors group_query_attention(const Call& call) {
  const std::int64_t heads = call.integer("num_heads", 1);
  return separate_attention(
      call, heads, call.integer("kv_num_heads", heads),
      {.scale = call.real("scale", 0), .causal = true, .mask = call.given_at(10)}, 3);
}

struct RotaryInputs {
  Tensor cos, sin;  // [batch, length, half] or broadcast to that
};

// ONNX: X, cos, sin, perhaps positions. Contrib: X, positions, cos, sin.
RotaryInputs rotary_inputs(const Call& call, std::int64_t length) {
  const std::size_t tables = call.in(1).is_floating_point() ? 1 : 2;
  RotaryInputs result{call.in(tables), call.in(tables + 1)};
  if (tables == 1 && !call.has(3)) return result;
  Tensor positions = tables == 1 ? call.in(3) : call.in(1);
  if (positions.dim() < 2)
    positions = positions.reshape({1, 1}) + torch::arange(length, positions.options());
  for (Tensor* table : {&result.cos, &result.sin}) {
    const Tensor rows = table->index_select(0, positions.flatten());
    *table = rows.reshape({positions.size(0), positions.size(1), table->size(1)});
  }
  return result;
}

Tensor rotary_embedding(const Call& call) {
  const Tensor& given = call.in(0);
  const std::int64_t half_of_table = call.in(call.in(1).is_floating_point() ? 1 : 2).size(-1);
  std::int64_t heads = call.integer("num_heads", 0);
  if (half_of_table == 0) fail_input("has tables of no angles");
  if (heads == 0) heads = given.dim() == 4 ? given.size(1) : given.size(2) / (2 * half_of_table);
  const Tensor x = apart(given, heads);  // [batch, heads, length, size]
  const std::int64_t rotated = call.integer("rotary_embedding_dim", 0) != 0
                                   ? call.integer("rotary_embedding_dim", 0)
                                   : x.size(3);
  RotaryInputs tables = rotary_inputs(call, x.size(2));
  const Tensor cos = tables.cos.unsqueeze(-3).narrow(-1, 0, rotated / 2);
  const Tensor sin = tables.sin.unsqueeze(-3).narrow(-1, 0, rotated / 2);
  const Tensor turning = x.narrow(3, 0, rotated);
  const bool pairs = call.integer("interleaved", 0) != 0;
  const Tensor a = pairs ? turning.slice(3, 0, rotated, 2) : turning.narrow(3, 0, rotated / 2);
  const Tensor b =
      pairs ? turning.slice(3, 1, rotated, 2) : turning.narrow(3, rotated / 2, rotated / 2);
  const Tensor first = a * cos - b * sin;
  const Tensor second = b * cos + a * sin;
  const Tensor turned =
      pairs ? at::stack({first, second}, -1).flatten(-2) : at::cat({first, second}, -1);
  const Tensor result = at::cat({turned, x.narrow(3, rotated, x.size(3) - rotated)}, -1);
  return together(result, call.shape());
}

}  // namespace

void add_attention(KernelTable& table) {
  table["Attention"] = attention;
  table["MultiHeadAttention"] = multi_head_attention;
  table["GroupQueryAttention"] = group_query_attention;
  table["RotaryEmbedding"] = single(rotary_embedding);
}

}  // namespace emplace::exec

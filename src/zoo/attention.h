// Attention, in single ops or fused, and the option that chooses between the two.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/model.h"
#include "zoo/net.h"

namespace emplace::zoo {

// The options of every transformer. Models since 2022 are fused by default; older ones are as they
// were published.
struct AttentionStep : StepOptions {
  std::string attention = "plain";

  bool fused() const { return attention == "fused"; }
};

template <class Options>
OptionSchema<Options> attention_schema() {
  return step_schema<Options>().choice(
      "attention", &Options::attention, {"plain", "fused"},
      "In single ops, or as one op that keeps no scores (FlashAttention).");
}

// softmax(q k^T / sqrt(size) + mask) v, on [n, heads, length, size]; keys and values may have fewer
// heads, each then serves several queries, and values may have another size.
struct AttentionOptions {
  double dropout = 0;  // of the probabilities
  // One op, "FlashAttention" (Dao et al. 2022), whose second output in training is the logarithm of
  // each softmax's sum: what its backward pass computes the scores again from.
  bool fused = false;
  const Value* mask = nullptr;   // added to the scores, unless fused
  bool causal = false;           // fused: no position sees a later one
  std::int64_t window = 0;       // causal: only the last so many; 0: all
  const Value* sinks = nullptr;  // [heads], scores that take a share of each softmax
};
Value attend(Net& net, const Value& q, const Value& k, const Value& v,
             const AttentionOptions& options = {});
// [n, length, heads x size] to [n, heads, length, size], and back.
Value split_heads(Net& net, const Value& x, std::int64_t heads);
Value merge_heads(Net& net, const Value& x);

// What is added to the scores so that no position sees a later one: one input for all layers. With
// `before` further keys ahead of the first query, which all queries see.
Value causal_mask(Net& net, std::int64_t length, std::int64_t before = 0);
// The mask where attention is not fused, which needs none.
std::optional<Value> mask_unless(bool fused, Net& net, std::int64_t length);

// Positions as rotations of pairs of elements (Su et al. 2021), the pairs being an element of each
// half as Llama's are. The tables are [length, size].
struct RotaryTables {
  Value cos;
  Value sin;
};
RotaryTables rotary_tables(Net& net, std::int64_t length, std::int64_t size);
Value rotate(Net& net, const Value& x, const RotaryTables& tables);  // [n, heads, length, size]

// Self-attention of x [n, length, hidden] in which several queries share a key and a value (Ainslie
// et al. 2023; with as many key heads as heads it is the usual one), rotated.
struct GroupedAttention {
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t size = 0;  // of a head; 0: the width over the heads
  RotaryTables positions = {};
  std::optional<Value> mask = {};  // nothing: fused
  std::int64_t window = 0;
  bool biases = false;
  bool sinks = false;
};
Value grouped_attention(Net& net, std::string_view name, const Value& x,
                        const GroupedAttention& options);

}  // namespace emplace::zoo

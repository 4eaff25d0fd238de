#include "io/onnx_functions.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <onnx/defs/parser.h>

#include "base/check.h"
#include "base/error.h"

#include "io/onnx_conventions.h"

namespace emplace {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;

// Constants are cast to the input's type, so that the bodies hold for every type of float.
constexpr const char* kGelu = R"(
Gelu (X) => (Y) {
  half = Constant <value_float = 0.5> ()
  one = Constant <value_float = 1.0> ()
  root_half = Constant <value_float = 0.70710678118654752> ()
  half_like = CastLike (half, X)
  one_like = CastLike (one, X)
  root_half_like = CastLike (root_half, X)
  scaled = Mul (X, root_half_like)
  error = Erf (scaled)
  sum = Add (error, one_like)
  weighted = Mul (X, sum)
  Y = Mul (weighted, half_like)
})";

constexpr const char* kGeluTanh = R"(
GeluTanh (X) => (Y) {
  half = Constant <value_float = 0.5> ()
  one = Constant <value_float = 1.0> ()
  cubic = Constant <value_float = 0.044715> ()
  root = Constant <value_float = 0.79788456080286536> ()
  half_like = CastLike (half, X)
  one_like = CastLike (one, X)
  cubic_like = CastLike (cubic, X)
  root_like = CastLike (root, X)
  square = Mul (X, X)
  cube = Mul (square, X)
  cubic_term = Mul (cube, cubic_like)
  inner = Add (X, cubic_term)
  scaled = Mul (inner, root_like)
  bent = Tanh (scaled)
  sum = Add (bent, one_like)
  weighted = Mul (X, sum)
  Y = Mul (weighted, half_like)
})";

constexpr const char* kSwish = R"(
Swish (X) => (Y) {
  gate = Sigmoid (X)
  Y = Mul (X, gate)
})";

// In float32, as the operator's stash_type is by default: squares overflow float16 soon. The axes
// are all from `axis` on.
constexpr const char* kRmsNormalization = R"(
RMSNormalization <axis, axes, epsilon> (X, scale) => (Y) {
  wide = Cast <to = 1> (X)
  square = Mul (wide, wide)
  mean = ReduceMean <axes : ints = @axes, keepdims = 1> (square)
  least = Constant <value_float : float = @epsilon> ()
  sum = Add (mean, least)
  root = Sqrt (sum)
  normal = Div (wide, root)
  narrow = CastLike (normal, X)
  Y = Mul (narrow, scale)
})";

// Statistics in float32, as in RMSNormalization. `grouped` is the shape [n, groups, rest], `axes`
// those that the scale lacks.
constexpr const char* kGroupNormalization = R"(
GroupNormalization <num_groups, grouped, axes, epsilon> (X, scale, bias) => (Y) {
  parts = Constant <value_ints : ints = @grouped> ()
  apart = Reshape (X, parts)
  wide = Cast <to = 1> (apart)
  mean = ReduceMean <axes = [2], keepdims = 1> (wide)
  rest = Sub (wide, mean)
  square = Mul (rest, rest)
  variance = ReduceMean <axes = [2], keepdims = 1> (square)
  least = Constant <value_float : float = @epsilon> ()
  sum = Add (variance, least)
  root = Sqrt (sum)
  normal = Div (rest, root)
  narrow = CastLike (normal, X)
  shape = Shape (X)
  whole = Reshape (narrow, shape)
  at = Constant <value_ints : ints = @axes> ()
  each_scale = Unsqueeze (scale, at)
  each_bias = Unsqueeze (bias, at)
  scaled = Mul (whole, each_scale)
  Y = Add (scaled, each_bias)
})";

// Fused attention in single operators: queries in groups of those that share a key, [batch, key
// heads, group, length, size].
constexpr const char* kScores = R"(
  groups = Shape <start = 0, end = 2> (K)
  rest = Shape <start = 2> (Q)
  any = Constant <value_ints = [-1]> ()
  apart = Concat <axis = 0> (groups, any, rest)
  q = Reshape (Q, apart)
  second = Constant <value_ints = [2]> ()
  k = Unsqueeze (K, second)
  v = Unsqueeze (V, second)
  turned = Transpose <perm = [0, 1, 2, 4, 3]> (k)
  raw = MatMul (q, turned)
  size = Shape <start = 3, end = 4> (Q)
  real_size = Cast <to = 1> (size)
  root = Sqrt (real_size)
  root_like = CastLike (root, Q)
  scores = Div (raw, root_like)
)";
// Of the keys up to a query's own place the last `window`.
constexpr const char* kCausalMask = R"(
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  first_axis = Constant <value_ints = [0]> ()
  one_list = Constant <value_ints = [1]> ()
  query_list = Shape <start = 2, end = 3> (Q)
  key_list = Shape <start = 2, end = 3> (K)
  queries = Squeeze (query_list, first_axis)
  keys = Squeeze (key_list, first_axis)
  rows = Range (zero, queries, one)
  ahead = Sub (keys, queries)
  last = Add (rows, ahead)
  last_column = Unsqueeze (last, one_list)
  columns = Range (zero, keys, one)
  past = LessOrEqual (columns, last_column)
  length = Constant <value_int : int = @window> ()
  before = Sub (last_column, length)
  inside = Greater (columns, before)
  visible = And (past, inside)
  never = Constant <value_float = -65504.0> ()
  never_like = CastLike (never, Q)
  masked = Where (visible, scores, never_like)
)";
constexpr const char* kAttended = R"(
  y = MatMul (weights, v)
  head = Shape <start = 0, end = 3> (Q)
  tail = Shape <start = 3> (V)
  back = Concat <axis = 0> (head, tail)
  Y = Reshape (y, back)
})";

constexpr const char* kSoftmaxOfScores = R"(
  weights = Softmax <axis = -1> (scores)
)";
constexpr const char* kSoftmaxOfMasked = R"(
  weights = Softmax <axis = -1> (masked)
)";
// A sink is one more key, which is left out again.
constexpr const char* kSinkColumn = R"(
  key_heads = Shape <start = 1, end = 2> (K)
  by_head = Concat <axis = 0> (one_list, key_heads, any, one_list, one_list)
  sink = Reshape (sinks, by_head)
  most = Shape <start = 0, end = 4> (scores)
  column_shape = Concat <axis = 0> (most, one_list)
  column = Expand (sink, column_shape)
  joined = Concat <axis = -1> (masked, column)
  all = Softmax <axis = -1> (joined)
  last_axis = Constant <value_ints = [4]> ()
  weights = Slice (all, first_axis, key_list, last_axis)
)";

constexpr const char* kFullAttention = "FlashAttention (Q, K, V) => (Y) {";
constexpr const char* kCausalAttention = "FlashAttentionCausal <window> (Q, K, V) => (Y) {";
constexpr const char* kSinkAttention = "FlashAttentionSinks <window> (Q, K, V, sinks) => (Y) {";

// Longer than any sequence.
constexpr std::int64_t kNoWindow = std::int64_t{1} << 40;

struct Body {
  std::string_view name;  // of the function
  std::string_view type;  // of the operator that it stands for
  int inputs;
  std::array<const char*, 5> parts;  // of its text
};

constexpr Body kBodies[] = {
    {"FlashAttention", "FlashAttention", 3, {kFullAttention, kScores, kSoftmaxOfScores, kAttended}},
    {"FlashAttentionCausal",
     "FlashAttention",
     3,
     {kCausalAttention, kScores, kCausalMask, kSoftmaxOfMasked, kAttended}},
    {"FlashAttentionSinks",
     "FlashAttention",
     4,
     {kSinkAttention, kScores, kCausalMask, kSinkColumn, kAttended}},
    {"Gelu", "Gelu", 1, {kGelu}},
    {"GeluTanh", "Gelu", 1, {kGeluTanh}},
    {"GroupNormalization", "GroupNormalization", 3, {kGroupNormalization}},
    {"RMSNormalization", "RMSNormalization", 2, {kRmsNormalization}},
    {"Swish", "Swish", 1, {kSwish}}};

const Body* find_body(std::string_view name) {
  for (const Body& body : kBodies) {
    if (body.name == name) return &body;
  }
  return nullptr;
}

onnx::FunctionProto parse_function(const Body& body) {
  std::string text =
      fmt::format(R"(<domain: "{}", opset_import: ["" : {}]>)", kFunctionDomain, kWrittenOpset);
  for (const char* part : body.parts) text += part != nullptr ? part : "";
  onnx::FunctionProto function;
  const auto status = onnx::OnnxParser::Parse(function, text.c_str());
  EMPLACE_CHECK(status.IsOK());
  return function;
}

AttributeProto& add_attribute(NodeProto& node, const char* name,
                              AttributeProto::AttributeType type) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void expect_attributes(std::string_view type, const Attributes& attributes,
                       std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : attributes.entries()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail_input("attributes: the function for {} does not have '{}'", type, name);
    }
  }
}

std::string_view gelu_function(const Attributes& attributes) {
  expect_attributes("Gelu", attributes, {"approximate"});
  const std::string_view approximate = attributes.text("approximate", "none");
  if (approximate == "none") return "Gelu";
  if (approximate == "tanh") return "GeluTanh";
  fail_input("attributes: approximate: '{}' is not one of none, tanh", approximate);
}

void add_norm_attributes(const Attributes& attributes, std::size_t rank, NodeProto& node) {
  expect_attributes("RMSNormalization", attributes, {"axis", "epsilon"});
  const auto size = static_cast<std::int64_t>(rank);
  const std::int64_t axis = attributes.integer("axis", -1);
  if (axis < -size || axis >= size) {
    fail_input("attributes: axis: there is no axis {} of {}", axis, size);
  }
  add_attribute(node, "axis", AttributeProto::INT).set_i(axis);
  AttributeProto& axes = add_attribute(node, "axes", AttributeProto::INTS);
  for (std::int64_t i = axis < 0 ? axis : axis - size; i < 0; ++i) axes.add_ints(i);
  constexpr double kEpsilon = 1e-5;  // the operator's own default
  add_attribute(node, "epsilon", AttributeProto::FLOAT)
      .set_f(static_cast<float>(attributes.real("epsilon", kEpsilon)));
}

void add_group_attributes(const Attributes& attributes, std::size_t rank, NodeProto& node) {
  expect_attributes("GroupNormalization", attributes, {"num_groups", "epsilon"});
  const std::int64_t groups = attributes.integer("num_groups", 1);
  add_attribute(node, "num_groups", AttributeProto::INT).set_i(groups);
  AttributeProto& grouped = add_attribute(node, "grouped", AttributeProto::INTS);
  for (const std::int64_t dim : {std::int64_t{0}, groups, std::int64_t{-1}}) grouped.add_ints(dim);
  AttributeProto& axes = add_attribute(node, "axes", AttributeProto::INTS);
  for (std::size_t i = 1; i + 1 < rank; ++i) axes.add_ints(static_cast<std::int64_t>(i));
  constexpr double kEpsilon = 1e-5;  // the operator's own default
  add_attribute(node, "epsilon", AttributeProto::FLOAT)
      .set_f(static_cast<float>(attributes.real("epsilon", kEpsilon)));
}

std::string_view attention_function(const Attributes& attributes, NodeProto& node) {
  expect_attributes("FlashAttention", attributes, {"is_causal", "window"});
  const bool causal = attributes.integer("is_causal", 0) != 0;
  const bool sinks = node.input_size() > 3;
  if (sinks && !causal) fail_input("inputs: the function for sinks is causal, and this is not");
  if (!causal) return "FlashAttention";
  const std::int64_t window = attributes.integer("window", 0);
  add_attribute(node, "window", AttributeProto::INT).set_i(window > 0 ? window : kNoWindow);
  return sinks ? "FlashAttentionSinks" : "FlashAttentionCausal";
}

void restore_attributes(std::string_view function, NodeProto& node) {
  if (function == "GeluTanh") {
    add_attribute(node, "approximate", AttributeProto::STRING).set_s("tanh");
  }
  if (function == "FlashAttentionCausal" || function == "FlashAttentionSinks") {
    add_attribute(node, "is_causal", AttributeProto::INT).set_i(1);
  }
  auto& attributes = *node.mutable_attribute();
  const auto for_the_body = [](const AttributeProto& attribute) {
    return attribute.name() == "axes" || attribute.name() == "grouped" ||
           (attribute.name() == "window" && attribute.i() == kNoWindow);
  };
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(), for_the_body),
                   attributes.end());
}

}  // namespace

bool has_onnx_function(std::string_view type) {
  return std::any_of(std::begin(kBodies), std::end(kBodies),
                     [&](const Body& body) { return body.type == type; });
}

void OnnxFunctions::call(std::string_view type, const Attributes& attributes, std::size_t rank,
                         NodeProto& node) {
  std::string_view name = type;
  if (type == "Gelu") {
    name = gelu_function(attributes);
  } else if (type == "RMSNormalization") {
    add_norm_attributes(attributes, rank, node);
  } else if (type == "GroupNormalization") {
    add_group_attributes(attributes, rank, node);
  } else if (type == "FlashAttention") {
    name = attention_function(attributes, node);
  } else {
    expect_attributes(type, attributes, {});
  }
  const Body* body = find_body(name);
  EMPLACE_CHECK(body != nullptr);
  if (node.input_size() != body->inputs || node.output_size() != 1) {
    fail_input("has {} inputs and {} outputs; {} takes {} and gives 1", node.input_size(),
               node.output_size(), type, body->inputs);
  }
  node.set_domain(std::string(kFunctionDomain));
  node.set_op_type(std::string(name));
  used_.insert(std::string(name));
}

void OnnxFunctions::add_to(onnx::ModelProto& model) const {
  if (used_.empty()) return;
  for (const std::string& name : used_) *model.add_functions() = parse_function(*find_body(name));
  auto* import = model.add_opset_import();
  import->set_domain(std::string(kFunctionDomain));
  import->set_version(1);
}

void restore_operators(onnx::ModelProto& model) {
  const bool calls =
      std::any_of(model.functions().begin(), model.functions().end(),
                  [](const auto& function) { return function.domain() == kFunctionDomain; });
  if (!calls) return;
  std::unordered_set<std::string> declared;
  for (const auto& value : model.graph().value_info()) declared.insert(value.name());
  for (const auto& value : model.graph().output()) declared.insert(value.name());
  for (NodeProto& node : *model.mutable_graph()->mutable_node()) {
    if (node.domain() != kFunctionDomain) continue;
    const Body* body = find_body(node.op_type());
    const bool typed =
        std::all_of(node.output().begin(), node.output().end(),
                    [&](const std::string& name) { return declared.contains(name); });
    if (body == nullptr || !typed) continue;
    restore_attributes(body->name, node);
    node.set_op_type(std::string(body->type));
    node.clear_domain();
  }
}

}  // namespace emplace

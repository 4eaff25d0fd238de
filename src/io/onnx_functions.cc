#include "io/onnx_functions.h"

#include <algorithm>
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

struct Body {
  std::string_view name;  // of the function
  std::string_view type;  // of the operator that it stands for
  int inputs;
  const char* text;
};

constexpr Body kBodies[] = {{"Gelu", "Gelu", 1, kGelu},
                            {"GeluTanh", "Gelu", 1, kGeluTanh},
                            {"RMSNormalization", "RMSNormalization", 2, kRmsNormalization},
                            {"Swish", "Swish", 1, kSwish}};

const Body* find_body(std::string_view name) {
  for (const Body& body : kBodies) {
    if (body.name == name) return &body;
  }
  return nullptr;
}

onnx::FunctionProto parse_function(const Body& body) {
  const std::string text = fmt::format(R"(<domain: "{}", opset_import: ["" : {}]>{})",
                                       kFunctionDomain, kWrittenOpset, body.text);
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

void restore_attributes(std::string_view function, NodeProto& node) {
  if (function == "GeluTanh") {
    add_attribute(node, "approximate", AttributeProto::STRING).set_s("tanh");
  }
  auto& attributes = *node.mutable_attribute();
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(),
                                  [](const auto& attribute) { return attribute.name() == "axes"; }),
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

#include "io/onnx_meaning.h"

#include <algorithm>

#include "graph/tensor_type.h"

#include "io/onnx_conventions.h"
#include "io/onnx_node.h"

namespace emplace {
namespace {

constexpr int kNewest = 1'000'000;

int opset_of(const OnnxNode& node) {
  const auto found = node.opsets->find("");
  return found == node.opsets->end() ? kNewest : found->second;
}

void flatten_softmax(const VisitedNode& visited, Attributes& attributes) {
  if (visited.inputs.empty() || visited.inputs[0] == nullptr || !visited.inputs[0]->known) return;
  const Shape& shape = visited.inputs[0]->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  constexpr std::int64_t kUsual = 1;
  std::int64_t axis = attributes.integer("axis", kUsual);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return;
  attributes.set("axis", axis);
  if (count_elements({shape.begin() + axis + 1, shape.end()}) != 1) {
    attributes.set("flattened", std::int64_t{1});
  }
}

// The scales of all axes; nothing where they are not given, or not known.
std::vector<double> scales_of(const VisitedNode& visited, const Attributes& attributes,
                              std::size_t position) {
  if (position >= visited.inputs.size() || visited.inputs[0] == nullptr) return {};
  const OnnxValue* given = visited.inputs[position];
  if (given == nullptr || !given->data || given->data->values.empty()) return {};
  const std::size_t rank = visited.inputs[0]->shape.size();
  const auto axes = attributes.integers("axes");
  const auto& values = given->data->values;
  if (values.size() != (axes.empty() ? rank : axes.size())) return {};
  std::vector<double> scales(rank, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t axis = static_cast<std::int64_t>(i);
    if (!axes.empty()) axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i];
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return {};
    scales[static_cast<std::size_t>(axis)] = static_cast<double>(values[i]);
  }
  return scales;
}

void say_scales(const VisitedNode& visited, int opset, Attributes& attributes) {
  constexpr int kFirstResize = 10;
  const bool resize = visited.node.proto.op_type() == "Resize";
  const bool first = resize && opset <= kFirstResize;
  const std::vector<double> scales = scales_of(visited, attributes, resize && !first ? 2 : 1);
  if (!scales.empty()) attributes.set("scales", scales);
  if (!first) return;
  attributes.set(std::string(kOmittedInputs), std::vector<std::int64_t>{1});
  attributes.set("coordinate_transformation_mode", "asymmetric");
  const auto grows = [](double scale) { return scale >= 1; };
  const auto shrinks = [](double scale) { return scale <= 1; };
  // Where scales are not known, axes are looked at one by one.
  const bool up = !scales.empty() && std::all_of(scales.begin(), scales.end(), grows);
  const bool down = !scales.empty() && std::all_of(scales.begin(), scales.end(), shrinks);
  attributes.set("nearest_mode", up ? "floor" : down ? "ceil" : "simple");
}

}  // namespace

void say_meaning(const VisitedNode& visited, Attributes& attributes) {
  const onnx::NodeProto& proto = visited.node.proto;
  if (!canonical_domain(proto.domain()).empty()) return;
  const std::string& type = proto.op_type();
  const int opset = opset_of(visited.node);
  constexpr int kSoftmaxOfOneAxis = 13;
  if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax") {
    if (opset < kSoftmaxOfOneAxis) flatten_softmax(visited, attributes);
  } else if (type == "Resize" || type == "Upsample") {
    say_scales(visited, opset, attributes);
  }
}

}  // namespace emplace

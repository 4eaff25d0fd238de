#include "tensor/captured/translation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "graph/copy.h"

namespace emplace::captured {
namespace {

bool is_in_order(const std::vector<std::int64_t>& perm) {
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

Shape in_order_of(const Shape& shape, const std::vector<std::int64_t>& perm) {
  Shape result;
  for (const std::int64_t from : perm) result.push_back(shape[static_cast<std::size_t>(from)]);
  return result;
}

void scale_work(OpSpec& spec, double share) {
  if (share == 1) return;
  const auto part = [&](std::int64_t amount) {
    return static_cast<std::int64_t>(static_cast<double>(amount) * share + 0.5);
  };
  if (spec.flops) spec.flops = part(*spec.flops);
  if (spec.bytes_moved) spec.bytes_moved = part(*spec.bytes_moved);
  spec.temp_bytes = part(spec.temp_bytes);
  for (auto& [device, time] : spec.time_us) {
    time = Decimal::from_double(time.to_double() * share, 3);
  }
}

}  // namespace

Translation::Translation(const Graph& graph, std::set<OpId> stay)
    : graph_(graph),
      stay_(std::move(stay)),
      builder_(graph.name(), graph.source()),
      values_(graph.num_tensors()) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    trains_ = trains_ || graph.phase(op) == Phase::kBackward;
    attributed_ = attributed_ || (!graph.is_source(op) && !graph.attributes(op).empty());
  }
}

void Translation::run() {
  for (op_ = 0; op_ < graph_.num_ops(); ++op_) {
    keeps_buffers_ = false;
    const RuleRow* row = graph_.is_source(op_) ? nullptr : find_rule(type());
    const bool known = row != nullptr && !stay_.contains(op_) && has_shapes(op_) &&
                       (attributed_ || !row->by_attributes);
    if (!known || !row->rule(*this, row->onnx)) copy();
  }
}

std::vector<std::optional<TensorId>> Translation::tensors() const {
  std::vector<std::optional<TensorId>> result;
  for (const auto& value : values_) {
    result.push_back(value && value->steps.empty() ? value->root : std::nullopt);
  }
  return result;
}

std::string_view Translation::type() const {
  std::string_view type = graph_.type(op_);
  if (type.ends_with('_') && type != "copy_") type.remove_suffix(1);
  return type;
}

bool Translation::has_shapes(OpId op) const {
  const auto known = [&](TensorId tensor) { return graph_.has_shape(tensor); };
  return std::ranges::all_of(graph_.inputs(op), known) &&
         std::ranges::all_of(graph_.outputs(op), known);
}

std::optional<std::size_t> Translation::axis(std::initializer_list<std::string_view> names,
                                             std::size_t rank,
                                             std::optional<std::int64_t> otherwise) const {
  std::optional<std::int64_t> axis = otherwise;
  for (const std::string_view name : names) {
    if (!given(name)) continue;
    const auto* list = std::get_if<std::vector<std::int64_t>>(attributes().find(name));
    if (list != nullptr && list->size() != 1) return std::nullopt;
    axis = list != nullptr ? list->front() : attributes().integer(name, axis.value_or(0));
  }
  const auto size = static_cast<std::int64_t>(rank);
  if (!axis || *axis < -size || *axis >= size) return std::nullopt;
  return static_cast<std::size_t>(*axis < 0 ? *axis + size : *axis);
}

std::optional<std::vector<std::size_t>> Translation::wanted_of_three() const {
  const auto mask = attributes().integers("output_mask");
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < 3; ++i) {
    if (mask.size() == 3 ? mask[i] != 0 : num_outputs() == 3) wanted.push_back(i);
  }
  if (wanted.size() != num_outputs()) return std::nullopt;
  return wanted;
}

Value Translation::first_output_of_producer(std::size_t input) const {
  const OpId producer = graph_.producer(graph_.inputs(op_)[input]);
  const auto& first = values_[graph_.outputs(producer)[0]];
  if (!first) throw NotMade{producer};
  return *first;
}

std::optional<double> Translation::number_of_producer(std::size_t input,
                                                      std::string_view name) const {
  const Attributes& given = graph_.attributes(graph_.producer(graph_.inputs(op_)[input]));
  if (given.find(name) == nullptr) return std::nullopt;
  return given.real(name, 0);
}

const Value& Translation::value(std::size_t input) const {
  const TensorId tensor = graph_.inputs(op_)[input];
  if (!values_[tensor]) throw NotMade{graph_.producer(tensor)};
  return *values_[tensor];
}

TensorId Translation::view_of(TensorId from, const ViewStep& step) {
  const auto [at, added] = views_.try_emplace(ViewKey{from, step.perm, step.shape});
  if (!added) return at->second;
  TensorSpec output = specs_[from];
  output.shape = step.shape;
  OpSpec spec{.name = free_name(std::string(graph_.op_name(step.origin))),
              .type = step.perm.empty() ? "Reshape" : "Transpose",
              .inputs = {from},
              .phase = graph_.phase(step.origin),
              .view = true,
              .module = std::string(graph_.module(step.origin))};
  if (!step.perm.empty()) spec.attributes.set("perm", step.perm);
  spec.outputs = {at->second = builder_.add_tensor(output)};
  specs_.push_back(std::move(output));
  add_op(std::move(spec));
  return at->second;
}

TensorId Translation::take(const Value& value) {
  if (!value.root) {
    const TensorId one = number(value.number, value.dtype);
    if (value.root_shape.empty()) return one;
    return add("filled", "Expand", {one},
               TensorSpec{.shape = value.root_shape, .dtype = value.dtype}, {}, true);
  }
  TensorId tensor = *value.root;
  for (const ViewStep& step : value.steps) tensor = view_of(tensor, step);
  return tensor;
}

TensorId Translation::operand(std::size_t input) {
  const Value& read = value(input);
  return read.root ? take(read) : number(read.number, read.dtype);
}

TensorId Translation::number(double value, DType dtype) {
  const auto [at, added] = numbers_.try_emplace({value, dtype});
  if (!added) return at->second;
  const TensorSpec output{.shape = {}, .dtype = dtype};
  OpSpec spec{.name = free_name(fmt::format("number {}", value)), .type = "constant"};
  const bool whole = dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool;
  spec.attributes.set(
      "value", whole ? AttributeValue(static_cast<std::int64_t>(value)) : AttributeValue(value));
  spec.outputs = {at->second = builder_.add_tensor(output)};
  specs_.push_back(output);
  builder_.add_op(spec);
  return at->second;
}

Value Translation::permuted(Value value, const std::vector<std::int64_t>& perm) const {
  if (is_in_order(perm)) return value;
  if (!value.root) {
    value.root_shape = in_order_of(value.root_shape, perm);
    return value;
  }
  if (value.steps.empty() || value.steps.back().perm.empty()) {
    value.steps.push_back({perm, in_order_of(value.shape(), perm), op_});
    return value;
  }
  ViewStep& last = value.steps.back();
  last = {in_order_of(last.perm, perm), in_order_of(last.shape, perm), op_};
  if (is_in_order(last.perm)) value.steps.pop_back();
  return value;
}

Value Translation::reshaped(Value value, Shape shape) const {
  if (value.shape() == shape) return value;
  if (!value.root) {
    value.root_shape = std::move(shape);
    return value;
  }
  if (!value.steps.empty() && value.steps.back().perm.empty()) value.steps.pop_back();
  if (value.shape() != shape) value.steps.push_back({{}, std::move(shape), op_});
  return value;
}

void Translation::set(std::size_t output, Value value) {
  values_[graph_.outputs(op_)[output]] = std::move(value);
}

std::string Translation::free_name(std::string name) const {
  while (builder_.has_op(name) || (name != graph_.op_name(op_) && graph_.find_op(name) &&
                                   graph_.is_source(*graph_.find_op(name)))) {
    name += '+';
  }
  return name;
}

OpSpec Translation::own_spec() const {
  OpSpec spec = spec_of_op(graph_, op_);
  for (const OpId before : graph_.after(op_)) {
    const std::string name(graph_.op_name(before));
    // What is a view here may be gone.
    const bool comes = before > op_ && find_rule(graph_.type(before)) == nullptr;
    if (comes || builder_.has_op(name)) spec.after.push_back(name);
  }
  return spec;
}

void Translation::add_op(OpSpec spec) {
  spec.name = free_name(std::move(spec.name));
  builder_.add_op(spec);
}

void Translation::emit(std::string_view type, std::vector<TensorId> inputs,
                       std::initializer_list<std::size_t> outputs, Attributes attributes,
                       Part part) {
  OpSpec spec = own_spec();
  if (!part.suffix.empty()) spec.name += fmt::format("/{}", part.suffix);
  spec.type = type;
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  if (keeps_buffers_) spec.persistent_bytes = 0;
  scale_work(spec, part.share);
  for (const std::size_t output : outputs) {
    const TensorId old = graph_.outputs(op_)[output];
    specs_.push_back(spec_of_tensor(graph_, old));
    spec.outputs.push_back(builder_.add_tensor(specs_.back()));
    values_[old] = Value{.root = spec.outputs.back(), .root_shape = shape_of(old)};
  }
  add_op(std::move(spec));
}

void Translation::replace(std::string_view type, std::vector<TensorId> inputs,
                          Attributes attributes) {
  switch (num_outputs()) {
    case 0:
      return emit(type, std::move(inputs), {}, std::move(attributes));
    case 1:
      return emit(type, std::move(inputs), {0}, std::move(attributes));
    case 2:
      return emit(type, std::move(inputs), {0, 1}, std::move(attributes));
    default:
      return emit(type, std::move(inputs), {0, 1, 2}, std::move(attributes));
  }
}

TensorId Translation::product(std::vector<TensorId> inputs, const Shape& shape,
                              Attributes attributes) {
  OpSpec spec = own_spec();
  spec.type = "MatMul";
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  specs_.push_back({.shape = shape, .dtype = out_type()});
  const TensorId product = builder_.add_tensor(specs_.back());
  spec.outputs = {product};
  add_op(std::move(spec));
  return product;
}

std::vector<TensorId> Translation::add(std::string_view suffix, std::string_view type,
                                       std::vector<TensorId> inputs,
                                       const std::vector<TensorSpec>& outputs,
                                       Attributes attributes, bool view) {
  OpSpec spec{.name = fmt::format("{}/{}", graph_.op_name(op_), suffix),
              .type = std::string(type),
              .inputs = std::move(inputs),
              .phase = graph_.phase(op_),
              .view = view,
              .module = std::string(graph_.module(op_)),
              .attributes = std::move(attributes)};
  for (const TensorSpec& output : outputs) {
    specs_.push_back(output);
    spec.outputs.push_back(builder_.add_tensor(output));
  }
  std::vector<TensorId> result = spec.outputs;
  add_op(std::move(spec));
  return result;
}

TensorId Translation::add(std::string_view suffix, std::string_view type,
                          std::vector<TensorId> inputs, TensorSpec output, Attributes attributes,
                          bool view) {
  return add(suffix, type, std::move(inputs), std::vector<TensorSpec>{std::move(output)},
             std::move(attributes), view)[0];
}

TensorId Translation::add_buffer(std::string_view suffix, const TensorSpec& spec) {
  OpSpec buffer{.name = free_name(fmt::format("{}/{}", graph_.op_name(op_), suffix)),
                .type = "buffer",
                .module = std::string(graph_.module(op_))};
  specs_.push_back(spec);
  buffer.outputs = {builder_.add_tensor(spec)};
  builder_.add_op(buffer);
  keeps_buffers_ = true;
  return buffer.outputs[0];
}

void Translation::replace_by_constant(Attributes attributes) {
  replace("constant", {}, std::move(attributes));
}

void Translation::copy() {
  OpSpec spec = own_spec();
  const auto inputs = graph_.inputs(op_);
  for (std::size_t i = 0; i < inputs.size(); ++i) spec.inputs.push_back(take(i));
  for (const TensorId old : graph_.outputs(op_)) {
    specs_.push_back(spec_of_tensor(graph_, old));
    spec.outputs.push_back(builder_.add_tensor(specs_.back()));
    values_[old] = Value{.root = spec.outputs.back(), .root_shape = shape_of(old)};
  }
  add_op(std::move(spec));
}

}  // namespace emplace::captured

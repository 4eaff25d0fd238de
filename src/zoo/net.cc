#include "zoo/net.h"

#include "base/error.h"
#include "base/limits.h"

#include "graph/op_costs.h"

namespace emplace::zoo {
namespace {

TensorSpec spec_of(const TensorType& type) {
  return {.shape = type.shape, .dtype = type.dtype};
}

}  // namespace

Net::Net(std::string name, NetOptions options)
    : options_(options), builder_(std::move(name), "zoo") {}

Net::Scope::Scope(Net& net, std::string_view name) : net_(net), length_(net.module_.size()) {
  if (!net_.module_.empty()) net_.module_ += '.';
  net_.module_ += name;
}

Net::Scope::~Scope() {
  net_.module_.resize(length_);
}

Net::Scope Net::scope(std::string_view name, std::int64_t index) {
  return Scope(*this, fmt::format("{}.{}", name, index));
}

std::string Net::unique_name(std::string_view stem) {
  std::string name = module_.empty() ? std::string(stem) : fmt::format("{}.{}", module_, stem);
  const std::int64_t count = names_[name]++;
  if (count == 0) return name;
  // "relu_1" might itself be taken.
  return unique_name(fmt::format("{}_{}", stem, count));
}

Value Net::source(std::string name, std::string_view type, Shape shape, DType dtype,
                  Attributes attributes) {
  const auto tensors = builder_.add({.name = std::move(name),
                                     .type = std::string(type),
                                     .module = module_,
                                     .attributes = std::move(attributes)},
                                    {{.shape = shape, .dtype = dtype}});
  return {tensors[0], std::move(shape), dtype};
}

Value Net::input(std::string_view name, Shape shape) {
  return input(name, std::move(shape), options_.dtype);
}

Value Net::input(std::string_view name, Shape shape, DType dtype) {
  return source(unique_name(name), "input", std::move(shape), dtype);
}

Value Net::parameter(std::string_view name, Shape shape) {
  return source(unique_name(name), "parameter", std::move(shape), options_.dtype);
}

Value Net::buffer(std::string_view name, Shape shape) {
  return source(unique_name(name), "buffer", std::move(shape), options_.dtype);
}

Value Net::constant(const std::vector<std::int64_t>& values) {
  const std::string key = fmt::format("{}:{}", module_, fmt::join(values, ","));
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  const auto count = static_cast<std::int64_t>(values.size());
  return constants_[key] = source(unique_name("constant"), "constant", {count}, DType::kInt64,
                                  {{"value", values}});
}

Value Net::scalar(double value) {
  const std::string key = fmt::format("{}:scalar {}", module_, value);
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  return constants_[key] =
             source(unique_name("constant"), "constant", {}, options_.dtype, {{"value", value}});
}

Values Net::add(std::string_view type, const Values& inputs, const std::vector<TensorType>& outputs,
                Attributes attributes) {
  if (num_ops() >= limits::kZooOps) {
    fail_option("with these sizes the forward pass has more than {} ops", limits::kZooOps);
  }
  std::string name = unique_name(type);
  const CostRow* row = find_cost_row("", type);
  if (row == nullptr) row = find_cost_row("com.microsoft", type);
  if (row == nullptr) fail_option("op '{}': there is no cost rule for operator '{}'", name, type);

  std::vector<TensorType> read;
  for (const Value& value : inputs) read.push_back(tensor_type(value.shape, value.dtype));
  std::vector<const TensorType*> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // A tensor that is read twice is one operand for the costs.
    std::size_t first = 0;
    while (inputs[first].id != inputs[i].id) ++first;
    in.push_back(&read[first]);
  }
  std::vector<const TensorType*> out;
  for (const TensorType& output : outputs) out.push_back(&output);
  const auto cost = count_cost(*row, type, attributes, in, out);
  if (!cost) fail_option("op '{}': operator '{}' does not take inputs of these shapes", name, type);

  OpSpec op{.name = std::move(name),
            .type = std::string(type),
            .flops = cost->flops,
            .bytes_moved = cost->bytes_moved,
            .view = cost->view,
            .module = module_,
            .attributes = std::move(attributes)};
  for (const Value& value : inputs) op.inputs.push_back(value.id);
  std::vector<TensorSpec> specs;
  for (const TensorType& output : outputs) specs.push_back(spec_of(output));
  const auto tensors = builder_.add(std::move(op), specs);
  Values result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result.push_back({tensors[i], outputs[i].shape, outputs[i].dtype});
  }
  return result;
}

Value Net::add_one(std::string_view type, const Values& inputs, Shape shape,
                   Attributes attributes) {
  return add_one(type, inputs, tensor_type(std::move(shape), options_.dtype),
                 std::move(attributes));
}

Value Net::add_one(std::string_view type, const Values& inputs, TensorType output,
                   Attributes attributes) {
  return add(type, inputs, {std::move(output)}, std::move(attributes))[0];
}

Graph Net::build() && {
  return std::move(builder_).build();
}

}  // namespace emplace::zoo

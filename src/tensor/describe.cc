#include "tensor/describe.h"

#include <map>
#include <tuple>

namespace emplace {
namespace {

// The numbers of a constant op, as far as the graph keeps them.
std::vector<std::int64_t> numbers_of(const Graph& graph, TensorId tensor) {
  const OpId op = graph.producer(tensor);
  if (graph.role(op) != OpRole::kConstant) return {};
  const AttributeValue* value = graph.attributes(op).find("value");
  if (value == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) return *list;
  if (const auto* number = std::get_if<std::int64_t>(value)) return {*number};
  return {};
}

bool has_elements(const Graph& graph, TensorId tensor) {
  return graph.has_shape(tensor) && count_elements(graph.shape(tensor)) > 0;
}

}  // namespace

std::optional<tdl::Signature> signature_of(const Graph& graph, OpId op) {
  tdl::Signature signature{.type = std::string(graph.type(op)),
                           .attributes = graph.attributes(op),
                           .inputs = {},
                           .outputs = {}};
  for (const TensorId tensor : graph.inputs(op)) {
    if (!has_elements(graph, tensor)) return std::nullopt;
    const auto shape = graph.shape(tensor);
    signature.inputs.emplace_back(shape.begin(), shape.end());
    signature.numbers.push_back(numbers_of(graph, tensor));
  }
  for (const TensorId tensor : graph.outputs(op)) {
    if (!has_elements(graph, tensor)) return std::nullopt;
    const auto shape = graph.shape(tensor);
    signature.outputs.emplace_back(shape.begin(), shape.end());
  }
  return signature;
}

Descriptions::Descriptions(const Graph& graph)
    : of_op_(graph.num_ops()), signature_(graph.num_ops()) {
  using Key = std::tuple<std::string, Attributes, std::vector<Shape>, std::vector<Shape>,
                         std::vector<std::vector<std::int64_t>>>;
  struct Known {
    std::shared_ptr<const tdl::Description> description;
    std::uint32_t signature;
  };
  std::map<Key, Known> known;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op)) continue;
    const auto signature = signature_of(graph, op);
    if (!signature) continue;
    const auto [at, added] =
        known.try_emplace({signature->type, signature->attributes, signature->inputs,
                           signature->outputs, signature->numbers});
    if (added) {
      if (auto description = describe(*signature)) {
        at->second.description = std::make_shared<tdl::Description>(std::move(*description));
      }
      at->second.signature = static_cast<std::uint32_t>(known.size());
    }
    of_op_[op] = at->second.description;
    signature_[op] = at->second.description ? at->second.signature : 0;
  }
}

}  // namespace emplace

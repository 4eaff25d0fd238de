#include "io/examples.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace emplace {
namespace {

// What an index counts slowest: of tokens that lie one after the other, the example.
std::optional<tdl::VariableId> major_variable(const tdl::Index& index,
                                              const tdl::Description& description) {
  std::optional<tdl::VariableId> major;
  tdl::Position largest = 0;
  for (const tdl::Term& term : index.terms()) {
    if (description.variables[term.variable].extent <= 1 || term.factor <= largest) continue;
    largest = term.factor;
    major = term.variable;
  }
  return major;
}

std::optional<std::size_t> dimension_along(const tdl::Access& access,
                                           const tdl::Description& description,
                                           tdl::VariableId variable) {
  for (std::size_t d = 0; d < access.indices.size(); ++d) {
    if (major_variable(access.indices[d], description) == variable) return d;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::uint8_t> made_of_weights(const Graph& graph) {
  std::vector<std::uint8_t> weights(graph.num_tensors(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    bool some = graph.role(op) == OpRole::kParameter;
    bool all = true;
    for (const TensorId tensor : graph.inputs(op)) {
      some = some || weights[tensor] != 0;
      all =
          all && (weights[tensor] != 0 || graph.role(graph.producer(tensor)) == OpRole::kConstant);
    }
    if (!some || !all) continue;
    for (const TensorId tensor : graph.outputs(op)) weights[tensor] = 1;
  }
  return weights;
}

Examples::Examples(const Graph& graph)
    : graph_(graph),
      descriptions_(graph),
      reached_(graph.num_tensors(), 0),
      dimensions_(graph.num_tensors()),
      variables_(graph.num_ops()) {
  std::vector<OpId> rows;  // inputs that begin with a dimension
  const auto first = [&](OpId op) { return graph.shape(graph.outputs(op)[0])[0]; };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kInput || graph.outputs(op).size() != 1) continue;
    const TensorId tensor = graph.outputs(op)[0];
    if (graph.has_shape(tensor) && !graph.shape(tensor).empty()) rows.push_back(op);
  }
  // Tables of positions are inputs, too. Labels are of examples, unless they are of words.
  std::vector<OpId> telling = labels(rows);
  const bool of_others = std::any_of(rows.begin(), rows.end(), [&](OpId op) {
    return std::find(telling.begin(), telling.end(), op) == telling.end() && !telling.empty() &&
           first(op) == first(telling[0]);
  });
  if (!of_others) telling = rows;
  for (const OpId op : telling) {
    if (count_ > 1 && first(op) > 1 && first(op) != count_) {
      fail_input("inputs begin with {} and with {}; expected the same number of examples", count_,
                 first(op));
    }
    count_ = std::max(count_, first(op));
  }
  if (count_ == 0) fail_input("no input says how many examples there are");
  for (const OpId op : rows) {
    if (first(op) != count_) continue;
    inputs_.push_back(op);
    reached_[graph.outputs(op)[0]] = 1;
    if (count_ > 1) dimensions_[graph.outputs(op)[0]] = 0;
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!graph.is_source(op)) follow(op);
  }
}

bool Examples::are_read(OpId op) const {
  const auto inputs = graph_.inputs(op);
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](TensorId tensor) { return reached_[tensor] != 0; });
}

// Inputs after which the forward pass reads no weight.
std::vector<OpId> Examples::labels(const std::vector<OpId>& inputs) const {
  const std::vector<std::uint8_t> weights = made_of_weights(graph_);
  std::vector<std::uint8_t> meets(graph_.num_ops(), 0);
  for (OpId op = graph_.num_ops(); op-- > 0;) {
    for (const TensorId tensor : graph_.inputs(op)) meets[op] |= weights[tensor];
    for (const TensorId tensor : graph_.outputs(op)) {
      for (const OpId reader : graph_.consumers(tensor)) {
        if (graph_.phase(reader) == Phase::kForward && meets[reader]) meets[op] = 1;
      }
    }
  }
  std::vector<OpId> labels;
  for (const OpId op : inputs) {
    if (!meets[op] && !graph_.consumers(graph_.outputs(op)[0]).empty()) labels.push_back(op);
  }
  return labels;
}

void Examples::follow(OpId op) {
  const auto inputs = graph_.inputs(op);
  const auto outputs = graph_.outputs(op);
  for (const TensorId tensor : outputs) reached_[tensor] = are_read(op);
  const tdl::Description* description = descriptions_[op];
  if (description == nullptr) return;
  for (const tdl::Access& access : description->reads) {
    const auto dimension = dimensions_[inputs[access.position]];
    if (!dimension || *dimension >= access.indices.size()) continue;
    variables_[op] = major_variable(access.indices[*dimension], *description);
    if (variables_[op]) break;
  }
  if (!variables_[op]) return;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    dimensions_[outputs[i]] =
        dimension_along(description->writes[i], *description, *variables_[op]);
  }
}

}  // namespace emplace

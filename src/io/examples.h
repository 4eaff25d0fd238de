// Where the examples of a batch are in a step: in which inputs, and along which variable of each
// op.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

#include "tensor/describe.h"

namespace emplace {

// By tensor: parameters, and what is made of them and constants alone, as their casts.
std::vector<std::uint8_t> made_of_weights(const Graph& graph);

class Examples {
 public:
  // Of a step in the operators that are divided (tensor/prepare.h). Throws an Error where its
  // inputs do not agree on how many examples there are.
  explicit Examples(const Graph& graph);

  std::int64_t count() const { return count_; }
  // Those that have one example after the other.
  const std::vector<OpId>& inputs() const { return inputs_; }

  // Whether some input of the op is made of them.
  bool are_read(OpId op) const;
  // The variable of the op's description that runs over examples; nothing where the op reads none,
  // or how it reads them is not known.
  std::optional<tdl::VariableId> variable(OpId op) const { return variables_[op]; }
  const tdl::Description* description(OpId op) const { return descriptions_[op]; }

 private:
  std::vector<OpId> labels(const std::vector<OpId>& inputs) const;
  void follow(OpId op);

  const Graph& graph_;
  Descriptions descriptions_;
  std::int64_t count_ = 0;
  std::vector<OpId> inputs_;
  std::vector<std::uint8_t> reached_;                      // by tensor
  std::vector<std::optional<std::size_t>> dimensions_;     // that has the examples, by tensor
  std::vector<std::optional<tdl::VariableId>> variables_;  // by op
};

}  // namespace emplace

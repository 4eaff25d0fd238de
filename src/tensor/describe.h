// The description of every op of a graph, from its operator and its shapes.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

#include "tensor/tdl/definition.h"

namespace emplace {

// Operators that have a description, sorted.
std::vector<std::string_view> described_types();

// Nothing for an operator that has none, or whose shapes are not such as it takes.
std::optional<tdl::Description> describe(const tdl::Signature& op);

// The op with the shapes of its tensors; nothing where one is known by its bytes alone, or is
// empty.
std::optional<tdl::Signature> signature_of(const Graph& graph, OpId op);

// Of every op of a graph: sources and ops that cannot be described have none. Ops that are alike
// share one.
class Descriptions {
 public:
  explicit Descriptions(const Graph& graph);

  // nullptr: none.
  const tdl::Description* operator[](OpId op) const { return of_op_[op].get(); }
  // The same number for ops with equal signatures; 0: no description.
  std::uint32_t signature(OpId op) const { return signature_[op]; }

 private:
  std::vector<std::shared_ptr<const tdl::Description>> of_op_;
  std::vector<std::uint32_t> signature_;
};

}  // namespace emplace

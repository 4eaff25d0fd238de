// Every operator with a gradient rule and a kernel, with small tensors of several shapes: what
// tests of gradients and of partitions run through.
#pragma once

#include <string>
#include <vector>

#include "graph/graph_builder.h"

#include "exec/sources.h"

namespace emplace::exec {

// An operand: weights, numbers of rows or classes, or a constant.
struct Operand {
  TensorSpec tensor = {};
  std::string source = "parameter";
  Attributes attributes = {};
};

struct Case {
  std::string type;
  std::vector<Operand> inputs;
  std::vector<TensorSpec> outputs;
  Attributes attributes = {};
  SeededNumbers numbers = {};
  std::size_t repeats = 0;  // how many times more the first input is given
};

using Cases = std::vector<Case>;

const Cases& all_cases();
// Operators that no gradient passes.
const Cases& forward_cases();

// The op alone.
Graph forward_of(const Case& model);
// The op, and every output that passes gradients times other numbers for each element; the step
// that trains its operands.
Graph step_of(const Case& model);

}  // namespace emplace::exec

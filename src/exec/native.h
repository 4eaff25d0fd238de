// Kernels that are made for one op, with its attributes and shapes resolved, and then run many
// times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/compiled_op.h"

namespace emplace::exec {

// What is known of an op before it runs.
struct Site {
  Call call;  // inputs: on the CPU those whose contents are known; the others are not defined
  std::vector<TensorType> inputs;

  std::size_t size() const { return inputs.size(); }
  // Shapes; throw an Error when the op has fewer.
  const Shape& in(std::size_t i) const;
  const Shape& out(std::size_t i = 0) const { return call.shape(i); }
  std::size_t num_outputs() const { return call.outputs.size(); }
  bool is_floating(std::size_t i) const;
  bool known(std::size_t i) const { return call.has(i) && call.inputs[i].defined(); }
  // Of "<Type>Grad" ops: which inputs' gradients the outputs are.
  std::vector<std::size_t> wanted() const;
  bool wants(std::size_t input) const;
};

Site site_of(const Graph& graph, OpId op, const OpTarget& target);
// Throws an Error for what no operator has, as a stride of 0 (expected.cc).
void check_expected(const Site& site);
// Throws an Error for what kernels do not compute of the op's operator (supported.cc).
void check_supported(const Site& site);

using Run = std::function<void(OpStep&)>;
// An empty function: not for this op, which a plain kernel takes.
using Compiler = Run (*)(const Site&);
using CompilerTable = std::map<std::string, Compiler, std::less<>>;

const CompilerTable& compiler_table();
// Compiles with every call.
Kernel kernel_of(Compiler compiler);

// Puts results for all inputs where those that are wanted go.
void hand_out(OpStep& step, const std::vector<std::size_t>& wanted,
              std::initializer_list<Tensor> results);

// A tensor of the shape whose contents do not matter and are never looked at. Shared by all who
// ask.
Tensor scratch(const Shape& shape, const torch::TensorOptions& options);

// The families, which each add their compilers.
void add_native_attention(CompilerTable& table);
void add_native_convolutions(CompilerTable& table);
void add_native_dropout(CompilerTable& table);
void add_native_indexing(CompilerTable& table);
void add_native_norms(CompilerTable& table);
void add_native_pools(CompilerTable& table);
void add_native_products(CompilerTable& table);
void add_native_updates(CompilerTable& table);

}  // namespace emplace::exec

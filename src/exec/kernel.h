// What a kernel is: a function from an op's inputs to its outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"

#include "exec/torch.h"

namespace emplace::exec {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Integers = std::vector<std::int64_t>;

// The step as numbers on a GPU, where launches are recorded and run again.
struct Clock {
  Tensor number = {};  // the step and one, float32
  Tensor key = {};     // the step's part of random numbers (random.h): two of int32

  bool defined() const { return number.defined(); }
};

// The random numbers of an op (random.h).
struct Stream {
  std::uint64_t key = 0;  // of the seed and the op
  std::int64_t step = 0;
  Clock clock = {};  // counts in place of `step` if it is defined
};

// One op to be computed.
struct Call {
  std::string type;
  Attributes attributes = {};
  Tensors inputs = {};
  std::vector<TensorType> outputs = {};
  bool training = false;                           // the graph has backward ops
  torch::TensorOptions floating = torch::kDouble;  // of floating tensors that it makes
  Stream stream = {};

  Tensor zeros(const Shape& size) const { return torch::zeros(size, floating); }
  bool has(std::size_t i) const { return i < inputs.size(); }
  // Throws an Error when the op has fewer inputs.
  const Tensor& in(std::size_t i) const;
  // Operands of a binary op; x + x may list x once.
  const Tensor& left() const { return in(0); }
  const Tensor& right() const { return in(inputs.size() > 1 ? 1 : 0); }
  // Inputs are listed without those that are left out. Where the one at a position of the
  // operator's definition is listed, if it is there; and that input, not defined if it is not.
  std::optional<std::size_t> place_of(std::size_t position) const;
  Tensor given_at(std::size_t position) const;
  // Whether an output, by position of the definition, is left out before others.
  bool omits_output(std::size_t position) const;
  // Of an output.
  const Shape& shape(std::size_t output = 0) const;

  bool given(std::string_view name) const { return attributes.find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    return attributes.integer(name, otherwise);
  }
  double real(std::string_view name, double otherwise) const {
    return attributes.real(name, otherwise);
  }
  Integers integers(std::string_view name) const;
  // Of the attribute, where there is one, else of the input.
  Integers numbers(std::string_view name, std::size_t input) const;
  // The attribute `axis`, counted from the front.
  std::int64_t axis(std::int64_t rank, std::int64_t otherwise) const;
};

using Kernel = std::function<Tensors(const Call&)>;
using KernelTable = std::map<std::string, Kernel, std::less<>>;

// For kernels of one output.
using Function = std::function<Tensor(const Call&)>;
Kernel single(Function function);

const KernelTable& kernel_table();
// Whether the type's kernel differentiates another by running it again.
bool is_derived_gradient(std::string_view type);

// Contents of a tensor of integers.
Integers integers_of(const Tensor& tensor);
std::int64_t from_front(std::int64_t axis, std::int64_t rank);
// All axes of a tensor of that rank but these.
Integers all_axes_but(std::int64_t rank, std::initializer_list<std::int64_t> left_out);
// [C] as [1, C, 1, ...].
Tensor per_channel(const Tensor& values, std::int64_t rank);

Shape shape_of(const Tensor& x);
// The share of elements that a Dropout or BiasDropout drops.
double dropout_ratio(const Call& call);

// The families, which each add their kernels.
void add_elementwise(KernelTable& table);
void add_elementwise_gradients(KernelTable& table);
void add_reductions(KernelTable& table);
void add_products(KernelTable& table);
void add_pools(KernelTable& table);
void add_norms(KernelTable& table);
void add_layout(KernelTable& table);
void add_cutting(KernelTable& table);
void add_indexing(KernelTable& table);
void add_resizing(KernelTable& table);
void add_losses(KernelTable& table);
void add_recurrent(KernelTable& table);
void add_attention(KernelTable& table);
void add_parts(KernelTable& table);
void add_training(KernelTable& table);
// Those that are made of others in the table.
void add_fused(KernelTable& table);
// "<Type>Grad" of every operator in the table whose gradient follows from running it.
void add_derived_gradients(KernelTable& table);

}  // namespace emplace::exec

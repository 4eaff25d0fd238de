// Recurrent layers in one operator: examples can be cut, time and units cannot.
#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

// Which dimension of a recurrent operator's tensor counts examples; nothing for weights. X is
// [steps, batch, in], Y [steps, directions, batch, hidden], states are [directions, batch, hidden],
// lengths [batch], what is kept for the gradient [steps, batch, directions, ...].
std::optional<std::size_t> batch_dimension(const Shape& shape, Position steps, Position batch,
                                           Position directions) {
  if (shape.size() == 1) {
    return shape[0] == batch ? std::optional<std::size_t>(0) : std::nullopt;
  }
  if (shape.size() == 3) {
    const bool data = shape[1] == batch && (shape[0] == steps || shape[0] == directions);
    return data ? std::optional<std::size_t>(1) : std::nullopt;
  }
  if (shape.size() != 4 || shape[0] != steps) return std::nullopt;
  if (shape[1] == directions && shape[2] == batch) return 2;
  if (shape[1] == batch && shape[2] == directions) return 1;
  return std::nullopt;
}

struct Sizes {
  Position steps, batch, directions;
  std::size_t x = 0;  // position of X among the inputs
};

// W, R and the bias have the gates in their second dimension, and in none is it the batch.
std::optional<Sizes> sizes_of(const Signature& op, std::size_t x) {
  if (op.attributes.integer("layout", 0) != 0 || op.inputs.size() < x + 3) return std::nullopt;
  const Shape& data = op.inputs[x];
  const Shape& w = op.inputs[x + 1];
  // Where there are as many directions as examples, shapes do not tell them apart.
  if (data.size() != 3 || w.size() != 3 || w[1] == data[1] || w[0] == data[1]) return std::nullopt;
  return Sizes{data[0], data[1], w[0], x};
}

MaybeDescription describe(const Signature& signature, const Sizes& sizes) {
  Definition op(signature);
  const Index b = op.index("b", sizes.batch);
  std::size_t next = 0;
  bool found = false;
  const auto indices_of = [&](const Shape& shape, bool weights) {
    const auto batch =
        weights ? std::nullopt : batch_dimension(shape, sizes.steps, sizes.batch, sizes.directions);
    std::vector<Index> indices;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      indices.push_back(batch == d ? b : op.whole("w" + std::to_string(next++), shape[d]));
    }
    found = batch.has_value();
    return indices;
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const bool weights = i == sizes.x + 1 || i == sizes.x + 2;
    value = value + op.in(i)(indices_of(op.input(i), weights));
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const bool weights =
        op.output(i) == op.input(sizes.x + 1) || op.output(i) == op.input(sizes.x + 2);
    const std::vector<Index> indices = indices_of(op.output(i), weights);
    if (found) {
      op.out(i)(indices) = value;
    } else {
      op.out(i)(indices) = sum({b}, value);  // the gradient of weights
    }
  }
  return std::move(op).done();
}

}  // namespace

MaybeDescription recurrent(const Signature& signature) {
  const auto sizes = sizes_of(signature, 0);
  if (!sizes) return std::nullopt;
  return describe(signature, *sizes);
}

// Gradients of Y and of the last states, as far as there are such, come before the inputs; the
// first of three dimensions that W follows is X.
MaybeDescription recurrent_grad(const Signature& signature) {
  for (std::size_t x = 1; x < 4; ++x) {
    const auto sizes = sizes_of(signature, x);
    if (!sizes) continue;
    const Shape& data = signature.inputs[x];
    if (signature.inputs[x + 1][2] == data[2]) return describe(signature, *sizes);
  }
  return std::nullopt;
}

}  // namespace emplace::operators

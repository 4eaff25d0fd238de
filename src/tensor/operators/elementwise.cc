#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {

MaybeDescription elementwise(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() == 0) return std::nullopt;
  const Shape& shape = op.num_outputs() > 0 ? op.output(0) : op.input(0);
  const std::vector<Index> at = op.indices(shape);
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const auto indices = broadcast(at, shape, op.input(i));
    if (!indices) return std::nullopt;
    value = value + op.in(i)(*indices);
  }
  if (op.num_outputs() == 0) op.touches(value);
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    if (op.output(i) != shape) return std::nullopt;
    op.out(i)(at) = value;
  }
  return std::move(op).done();
}

MaybeDescription expand(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const std::vector<Index> at = op.indices(op.output(0));
  const auto indices = broadcast(at, op.output(0), op.input(0));
  if (!indices) return std::nullopt;
  op.out(0)(at) = f(op.in(0)(*indices));
  return std::move(op).done();
}

MaybeDescription dropout(const Signature& signature) {
  MaybeDescription description = elementwise(signature);
  if (!description) return description;
  description->localise = [shape = signature.outputs[0]](Piece& piece) {
    piece.attributes.set("region_begin", begins(piece.outputs[0]));
    piece.attributes.set("region_shape", shape);
  };
  return description;
}

}  // namespace emplace::operators

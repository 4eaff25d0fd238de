#include <algorithm>

#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

using tdl::Reducer;

// How partial results of the reduction are put together; nothing where they cannot be.
std::optional<Reducer> reducer_of(std::string_view type) {
  if (type == "ReduceSum" || type == "ReduceMean" || type == "ReduceL1" ||
      type == "ReduceSumSquare" || type == "GlobalAveragePool") {
    return Reducer::kSum;
  }
  if (type == "ReduceMax" || type == "GlobalMaxPool") return Reducer::kMax;
  if (type == "ReduceMin") return Reducer::kMin;
  if (type == "ReduceProd") return Reducer::kProduct;
  return std::nullopt;
}

// By dimension, whether it is reduced. Nothing where the graph does not say.
std::optional<std::vector<bool>> reduced_axes(const Signature& op, const Shape& shape) {
  std::vector<std::int64_t> axes;
  const auto given = op.attributes.integers("axes");
  axes.assign(given.begin(), given.end());
  if (axes.empty() && op.inputs.size() > 1 && op.inputs[1].size() <= 1 && op.numbers.size() > 1) {
    axes = op.numbers[1];
    if (axes.empty() && count_elements(op.inputs[1]) > 0) return std::nullopt;
  }
  std::vector<bool> reduced(shape.size(), axes.empty());
  if (axes.empty() && op.attributes.integer("noop_with_empty_axes", 0) != 0) {
    reduced.assign(shape.size(), false);
  }
  for (const std::int64_t axis : axes) {
    const auto found = axis_from_front(axis, shape.size());
    if (!found) return std::nullopt;
    reduced[*found] = true;
  }
  return reduced;
}

struct Axes {
  std::vector<std::int64_t> list;
  Position count = 1;  // elements that make one
};

Axes axes_of(const std::vector<bool>& reduced, const Shape& shape) {
  Axes axes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!reduced[d]) continue;
    axes.list.push_back(static_cast<std::int64_t>(d));
    axes.count *= shape[d];
  }
  return axes;
}

std::vector<Index> without(const std::vector<Index>& at, const std::vector<bool>& reduced,
                           bool keep) {
  std::vector<Index> result;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (!reduced[d]) result.push_back(at[d]);
    if (reduced[d] && keep) result.emplace_back(0);
  }
  return result;
}

void set_axes(Piece& piece, const Axes& axes, bool mean) {
  piece.attributes.set("axes", axes.list);
  if (mean) set_mean_count(piece, axes.count);
}

std::vector<Index> indices_over(Definition& op, const Shape& shape,
                                const std::vector<bool>& whole) {
  std::vector<Index> at;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string name = "d" + std::to_string(d);
    at.push_back(whole[d] ? op.whole(name, shape[d]) : op.index(name, shape[d]));
  }
  return at;
}

}  // namespace

MaybeDescription reduction(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const Shape& x = op.input(0);
  const auto reduced = reduced_axes(signature, x);
  const auto reducer = reducer_of(signature.type);
  if (!reduced) return std::nullopt;
  const bool keep = op.attributes().integer("keepdims", 1) != 0;
  const std::vector<Index> at =
      indices_over(op, x, reducer ? std::vector<bool>(x.size(), false) : *reduced);
  const std::vector<Index> written = without(at, *reduced, keep);
  if (written.size() != op.output(0).size()) return std::nullopt;
  std::vector<Index> over;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if ((*reduced)[d]) over.push_back(at[d]);
  }
  if (reducer) {
    op.out(0)(written) = reduce(*reducer, over, op.in(0)(at));
  } else {
    op.out(0)(written) = f(op.in(0)(at));
  }
  op.localise([axes = axes_of(*reduced, x), mean = signature.type == "ReduceMean"](Piece& piece) {
    set_axes(piece, axes, mean);
  });
  return std::move(op).done();
}

// Inputs: dY and, as the operator needs them, X, the axes and Y.
MaybeDescription reduction_grad(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const std::string type = signature.type.substr(0, signature.type.size() - 4);
  const Shape& x = op.output(0);
  Signature forward = signature;  // whose second input are the axes, if it has one
  forward.inputs = {x};
  forward.numbers = {{}};
  for (std::size_t i = 1; i < op.num_inputs(); ++i) {
    if (op.numbers(i).empty()) continue;
    forward.inputs = {x, op.input(i)};
    forward.numbers = {{}, op.numbers(i)};
  }
  const auto reduced = reduced_axes(forward, x);
  if (!reduced) return std::nullopt;
  const bool keep = op.attributes().integer("keepdims", 1) != 0;
  // Where an element's share depends on the others, an axis is taken whole.
  const bool linear = reducer_of(type) == Reducer::kSum;
  const std::vector<Index> at =
      indices_over(op, x, linear ? std::vector<bool>(x.size(), false) : *reduced);
  const std::vector<Index> small = without(at, *reduced, keep);
  if (small.size() != op.input(0).size()) return std::nullopt;
  tdl::Expression value = op.in(0)(small);
  for (std::size_t i = 1; i < op.num_inputs(); ++i) {
    if (!op.numbers(i).empty()) continue;
    if (op.input(i) == x) {
      value = value + op.in(i)(at);
    } else if (op.input(i) == op.input(0)) {
      value = value + op.in(i)(small);
    } else {
      return std::nullopt;
    }
  }
  op.out(0)(at) = value;
  op.localise([axes = axes_of(*reduced, x), mean = type == "ReduceMean"](Piece& piece) {
    set_axes(piece, axes, mean);
  });
  return std::move(op).done();
}

// Also the gradient of an average.
MaybeDescription global_pool(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 1 || op.num_outputs() != 1) return std::nullopt;
  const bool gradient = signature.type.ends_with("Grad");
  const Shape& x = gradient ? op.output(0) : op.input(0);
  const Shape& y = gradient ? op.input(0) : op.output(0);
  if (x.size() < 3 || y.size() != x.size()) return std::nullopt;
  const std::vector<Index> at = op.indices(x);
  std::vector<Index> small{at[0], at[1]};
  small.resize(x.size(), Index(0));
  const std::vector<Index> over(at.begin() + 2, at.end());
  if (gradient) {
    op.out(0)(at) = f(op.in(0)(small));
  } else {
    const auto reducer = reducer_of(signature.type);
    if (!reducer) return std::nullopt;
    op.out(0)(small) = reduce(*reducer, over, op.in(0)(at));
  }
  Position count = 1;
  for (std::size_t d = 2; d < x.size(); ++d) count *= x[d];
  op.localise([count](Piece& piece) { set_mean_count(piece, count); });
  return std::move(op).done();
}

MaybeDescription arg_reduction(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 1 || op.num_outputs() != 1) return std::nullopt;
  const Shape& x = op.input(0);
  const auto axis = axis_attribute(signature, x.size(), 0);
  if (!axis) return std::nullopt;
  std::vector<bool> reduced(x.size(), false);
  reduced[*axis] = true;
  const std::vector<Index> at = indices_over(op, x, reduced);
  const std::vector<Index> written =
      without(at, reduced, op.attributes().integer("keepdims", 1) != 0);
  if (written.size() != op.output(0).size()) return std::nullopt;
  op.out(0)(written) = f(op.in(0)(at));
  return std::move(op).done();
}

}  // namespace emplace::operators

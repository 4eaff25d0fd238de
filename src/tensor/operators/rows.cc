// Functions of whole rows: softmax, normalisations, and what is done example by example.
#include <algorithm>

#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

// Indices of tensors that agree in all dimensions but those that `is_whole` marks, where each has
// its own extent.
class Rows {
 public:
  Rows(Definition& op, Shape shape, std::vector<bool> is_whole)
      : op_(op), shape_(std::move(shape)), is_whole_(std::move(is_whole)) {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      at_.push_back(is_whole_[d] ? Index(0) : op.index("d" + std::to_string(d), shape_[d]));
    }
  }

  // Nothing where the tensor does not agree. A dimension of one is read at 0.
  std::optional<std::vector<Index>> of(const Shape& shape) {
    if (shape.size() != shape_.size()) return std::nullopt;
    std::vector<Index> indices;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (is_whole_[d]) {
        indices.push_back(op_.whole("w" + std::to_string(next_++), shape[d]));
      } else if (shape[d] == shape_[d]) {
        indices.push_back(at_[d]);
      } else {
        return std::nullopt;
      }
    }
    return indices;
  }

  // Those that count rows.
  std::vector<Index> rows() const {
    std::vector<Index> result;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!is_whole_[d]) result.push_back(at_[d]);
    }
    return result;
  }

 private:
  Definition& op_;
  Shape shape_;
  std::vector<bool> is_whole_;
  std::vector<Index> at_;
  std::size_t next_ = 0;
};

// Inputs that agree with the rows go with them; others are read whole.
tdl::Expression read_all(Definition& op, Rows& rows) {
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const auto indices = rows.of(op.input(i));
    value = value + (indices ? op.in(i)(*indices) : op.all_of(i));
  }
  return value;
}

std::vector<bool> last_axes(std::size_t rank, std::size_t first) {
  std::vector<bool> result(rank, false);
  std::fill(result.begin() + static_cast<std::ptrdiff_t>(first), result.end(), true);
  return result;
}

// Whatever does not agree with the rows is a sum over all of them, as a scale's gradient is.
MaybeDescription rows_function(const Signature& signature, const Shape& shape,
                               const std::vector<bool>& is_whole) {
  Definition op(signature);
  Rows rows(op, shape, is_whole);
  const tdl::Expression value = read_all(op, rows);
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    if (const auto indices = rows.of(op.output(i))) {
      op.out(i)(*indices) = value;
      continue;
    }
    std::vector<Index> whole;
    for (const std::int64_t extent : op.output(i)) whole.push_back(op.whole("s", extent));
    op.out(i)(whole) = sum(rows.rows(), value);
  }
  return std::move(op).done();
}

}  // namespace

MaybeDescription along_axis(const Signature& op) {
  if (op.inputs.empty() || op.outputs.empty()) return std::nullopt;
  const Shape& shape = op.outputs[0];
  std::int64_t given = op.attributes.integer("axis", -1);
  if (op.type.starts_with("CumSum")) {  // the axis is the last input
    if (op.numbers.empty() || op.numbers.back().size() != 1) return std::nullopt;
    given = op.numbers.back()[0];
  }
  const auto axis = axis_from_front(given, shape.size());
  if (!axis || op.inputs[0].size() != shape.size()) return std::nullopt;
  std::vector<bool> is_whole(shape.size(), false);
  is_whole[*axis] = true;
  if (op.attributes.integer("flattened", 0) != 0) is_whole = last_axes(shape.size(), *axis);
  if (op.type == "Trilu")
    is_whole = last_axes(shape.size(), std::max<std::size_t>(shape.size(), 2) - 2);
  return rows_function(op, shape, is_whole);
}

MaybeDescription layer_norm(const Signature& op) {
  if (op.inputs.empty() || op.inputs[0].empty()) return std::nullopt;
  const Shape& shape = op.inputs[0];
  const auto axis = axis_attribute(op, shape.size(), -1);
  if (!axis) return std::nullopt;
  // Whatever is not of the input's rows must not differ from row to row.
  for (const Shape& other : op.inputs) {
    const std::size_t rank = shape.size();
    if (other.size() == rank &&
        std::equal(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*axis),
                   other.begin()))
      continue;
    for (std::size_t d = 0; d + (rank - *axis) < other.size(); ++d) {
      if (other[d] != 1) return std::nullopt;
    }
  }
  return rows_function(op, shape, last_axes(shape.size(), *axis));
}

namespace {

// Tensors of [n, c, ...], [c] and [2, c] over one set of channels; `sums` says whether what has no
// examples is a sum over them.
MaybeDescription channels_function(const Signature& signature, const Shape& x, bool whole_images,
                                   bool whole_batch) {
  Definition op(signature);
  if (x.size() < 2) return std::nullopt;
  const Index b = whole_batch ? op.whole("b", x[0]) : op.index("b", x[0]);
  const Index c = op.index("c", x[1]);
  std::vector<Index> image{b, c};
  std::vector<Index> reduced{b};
  for (std::size_t d = 2; d < x.size(); ++d) {
    const std::string name = "x" + std::to_string(d - 2);
    image.push_back(whole_images ? op.whole(name, x[d]) : op.index(name, x[d]));
    reduced.push_back(image.back());
  }
  const Index pair = op.whole("pair", 2);
  const auto indices_of = [&](const Shape& shape) -> std::vector<Index> {
    if (shape == x) return image;
    if (shape.size() == 1 && shape[0] == x[1]) return {c};
    if (shape.size() == 2 && shape[0] == 2 && shape[1] == x[1]) return {pair, c};
    return {};
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const auto indices = indices_of(op.input(i));
    if (indices.empty()) return std::nullopt;
    value = value + op.in(i)(indices);
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const auto indices = indices_of(op.output(i));
    if (indices.empty()) return std::nullopt;
    if (op.output(i) == x) {
      op.out(i)(indices) = value;
    } else {
      op.out(i)(indices) = sum(reduced, value);
    }
  }
  return std::move(op).done();
}

}  // namespace

MaybeDescription instance_norm(const Signature& op) {
  if (op.inputs.empty()) return std::nullopt;
  return channels_function(op, op.inputs[0], true, false);
}

// By statistics that are given. Those of the batch itself are operators of their own by then
// (tensor/decompose.h).
MaybeDescription batch_norm(const Signature& op) {
  if (op.inputs.empty() || op.outputs.size() != 1) return std::nullopt;
  const bool own = op.attributes.integer("training_mode", 0) != 0;
  return channels_function(op, op.inputs[0], own, own);
}

MaybeDescription batch_norm_statistics(const Signature& op) {
  if (op.inputs.empty()) return std::nullopt;
  return channels_function(op, op.inputs[0], false, false);
}

// Statistics [2, c] of the batch and the old mean and variance [c] give the new ones.
MaybeDescription batch_norm_running(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 3 || op.num_outputs() != 2 || op.input(0).size() != 2) return std::nullopt;
  const Shape channels{op.input(0)[1]};
  for (std::size_t i = 0; i < 2; ++i) {
    if (op.input(i + 1) != channels || op.output(i) != channels) return std::nullopt;
  }
  const Index c = op.index("c", channels[0]);
  const Index pair = op.whole("pair", op.input(0)[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    op.out(i)(c) = f(op.in(0)(pair, c), op.in(1)(c), op.in(2)(c));
  }
  return std::move(op).done();
}

MaybeDescription by_example(const Signature& signature) {
  Definition op(signature);
  // Weights and tables have two dimensions at most, so examples of fewer than three, or their
  // gradients, could not be told from them.
  if (op.num_inputs() == 0 || op.input(0).size() < 3) return std::nullopt;
  const Position batch = op.input(0)[0];
  const Index b = op.index("b", batch);
  std::size_t next = 0;
  const auto indices_of = [&](const Shape& shape, bool examples) {
    std::vector<Index> indices;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::string name = "w" + std::to_string(next++);
      indices.push_back(d == 0 && examples ? b : op.whole(name, shape[d]));
    }
    return indices;
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    const Shape& shape = op.input(i);
    const bool examples = i == 0 || (shape.size() > 2 && shape[0] == batch);
    value = value + op.in(i)(indices_of(shape, examples));
  }
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const Shape& shape = op.output(i);
    if (shape.size() > 2 && shape[0] == batch) {
      op.out(i)(indices_of(shape, true)) = value;
    } else if (signature.type.ends_with("Grad")) {
      op.out(i)(indices_of(shape, false)) = sum({b}, value);
    } else {
      return std::nullopt;
    }
  }
  return std::move(op).done();
}

}  // namespace emplace::operators

// Operators that pick elements by number.
#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

struct Picking {
  std::vector<Index> before, ids, after;
  Index row;

  std::vector<Index> table() const {
    std::vector<Index> indices = before;
    indices.push_back(row);
    indices.insert(indices.end(), after.begin(), after.end());
    return indices;
  }
  std::vector<Index> picked() const {
    std::vector<Index> indices = before;
    indices.insert(indices.end(), ids.begin(), ids.end());
    indices.insert(indices.end(), after.begin(), after.end());
    return indices;
  }
};

// The rows of a table can be cut: each worker has those that are in its part, and zeros for others.
// Its rows begin at an offset.
std::optional<Picking> picking(Definition& op, const Shape& table, const Shape& ids,
                               const Shape& picked) {
  const auto axis = axis_attribute(op.signature(), table.size(), 0);
  if (!axis || picked.size() + 1 != table.size() + ids.size()) return std::nullopt;
  Picking result;
  for (std::size_t d = 0; d < table.size(); ++d) {
    const std::string name = "t" + std::to_string(d);
    if (d == *axis) {
      result.row = d == 0 ? op.index("row", table[d]) : op.whole("row", table[d]);
    } else {
      (d < *axis ? result.before : result.after).push_back(op.index(name, table[d]));
    }
  }
  for (std::size_t d = 0; d < ids.size(); ++d) {
    result.ids.push_back(op.index("i" + std::to_string(d), ids[d]));
  }
  if (*axis == 0) {
    op.localise([row = result.row, rows = table[0]](Piece& piece) {
      const Interval range = row.over(piece.box);
      const std::int64_t first = piece.attributes.integer("row_offset", 0);
      if (range.size() == rows) return;
      piece.attributes.set("row_offset", first + range.begin);
      // Numbers below zero count from the end of the whole.
      if (piece.attributes.find("row_total") == nullptr) piece.attributes.set("row_total", rows);
    });
  }
  return result;
}

}  // namespace

MaybeDescription gather(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 2 || op.num_outputs() != 1) return std::nullopt;
  const auto pick = picking(op, op.input(0), op.input(1), op.output(0));
  if (!pick) return std::nullopt;
  op.out(0)(pick->picked()) = sum({pick->row}, op.in(0)(pick->table()) * op.in(1)(pick->ids));
  return std::move(op).done();
}

// Inputs: dY, the ids.
MaybeDescription gather_grad(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 2 || op.num_outputs() != 1) return std::nullopt;
  const auto pick = picking(op, op.output(0), op.input(1), op.input(0));
  if (!pick) return std::nullopt;
  op.out(0)(pick->table()) = sum(pick->ids, op.in(0)(pick->picked()) * op.in(1)(pick->ids));
  return std::move(op).done();
}

// Gathers and scatters of single elements and their gradients: tensors of one rank, of which
// dimensions in which all agree can be cut, but not the one along which elements are picked.
MaybeDescription by_element(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 2 || op.num_outputs() != 1) return std::nullopt;
  const Shape& y = op.output(0);
  const auto axis = axis_attribute(signature, y.size(), 0);
  if (!axis) return std::nullopt;
  std::vector<bool> agrees(y.size(), true);
  agrees[*axis] = false;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.input(i).size() != y.size()) return std::nullopt;
    for (std::size_t d = 0; d < y.size(); ++d) agrees[d] = agrees[d] && op.input(i)[d] == y[d];
  }
  std::vector<Index> at;
  for (std::size_t d = 0; d < y.size(); ++d) {
    at.push_back(agrees[d] ? op.index("d" + std::to_string(d), y[d]) : Index(0));
  }
  const auto indices_of = [&](const Shape& shape, const std::string& name) {
    std::vector<Index> indices = at;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!agrees[d]) indices[d] = op.whole(name + std::to_string(d), shape[d]);
    }
    return indices;
  };
  const std::vector<Index> written = indices_of(y, "y");
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    value = value + op.in(i)(indices_of(op.input(i), "x" + std::to_string(i) + "_"));
  }
  op.out(0)(written) = value;
  return std::move(op).done();
}

// GatherND, ScatterND and their gradients: ids [..., k] name places in the first k dimensions of a
// table; what lies in the others moves together and can be cut.
MaybeDescription by_slice(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 2 || op.num_outputs() != 1 || op.input(1).empty() ||
      op.attributes().integer("batch_dims", 0) != 0) {
    return std::nullopt;
  }
  const Shape& ids = op.input(1);
  const auto named = static_cast<std::size_t>(ids.back());
  // The slices' shape, from whichever of the first input and the output is the table.
  const auto rest_of = [&](const Shape& shape, std::size_t first) {
    return shape.size() < first
               ? Shape{}
               : Shape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
  };
  const bool table_in = signature.type == "GatherND" || signature.type == "ScatterND" ||
                        signature.type == "ScatterNDUpdatesGrad";
  const Shape rest = rest_of(table_in ? op.input(0) : op.output(0), named);
  if (rest.empty()) return std::nullopt;
  const std::vector<Index> slice = op.indices(rest);
  std::size_t next = 0;
  const auto indices_of = [&](const Shape& shape) -> std::optional<std::vector<Index>> {
    if (shape.size() < rest.size()) return std::nullopt;
    std::vector<Index> indices;
    for (std::size_t d = 0; d + rest.size() < shape.size(); ++d) {
      indices.push_back(op.whole("w" + std::to_string(next++), shape[d]));
    }
    indices.insert(indices.end(), slice.begin(), slice.end());
    const bool same = rest_of(shape, shape.size() - rest.size()) == rest;
    return same ? std::optional(indices) : std::nullopt;
  };
  tdl::Expression value;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (i == 1) {
      value = value + op.all_of(i);
    } else if (const auto indices = indices_of(op.input(i))) {
      value = value + op.in(i)(*indices);
    } else {
      return std::nullopt;
    }
  }
  const auto written = indices_of(op.output(0));
  if (!written) return std::nullopt;
  op.out(0)(*written) = value;
  return std::move(op).done();
}

MaybeDescription one_hot(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const Shape& y = op.output(0);
  const auto axis = axis_attribute(signature, y.size(), -1);
  if (!axis || op.input(0).size() + 1 != y.size()) return std::nullopt;
  std::vector<Index> read, written;
  for (std::size_t d = 0; d < y.size(); ++d) {
    const std::string name = "d" + std::to_string(d);
    written.push_back(d == *axis ? op.whole(name, y[d]) : op.index(name, y[d]));
    if (d != *axis) read.push_back(written.back());
  }
  tdl::Expression value = op.in(0)(read);
  for (std::size_t i = 1; i < op.num_inputs(); ++i) value = value + op.all_of(i);
  op.out(0)(written) = value;
  return std::move(op).done();
}

}  // namespace emplace::operators

// Operators that move elements without changing them.
#include <algorithm>
#include <numeric>

#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

// The same elements under two shapes: variables such that every dimension of either is made of
// consecutive ones, or is taken whole where the two do not divide each other.
class CommonDigits {
 public:
  CommonDigits(Definition& op, const Shape& from, const Shape& to) : op_(op) {
    sides_[0].resize(from.size(), Index(0));
    sides_[1].resize(to.size(), Index(0));
    while (next(from, 0) && next(to, 1)) match(from, to);
  }

  const std::vector<Index>& from() const { return sides_[0]; }
  const std::vector<Index>& to() const { return sides_[1]; }

 private:
  // Goes to the side's next dimension of more than one element, if the present one is used up.
  bool next(const Shape& shape, std::size_t side) {
    while (left_[side] == 1 && position_[side] < shape.size()) {
      left_[side] = shape[position_[side]++];
    }
    return left_[side] > 1;
  }

  void match(const Shape& from, const Shape& to) {
    const Position a = left_[0];
    const Position b = left_[1];
    if (a % b == 0 || b % a == 0) {
      const Position extent = std::min(a, b);
      const Index digit = op_.index("d" + std::to_string(digits_++), extent);
      for (std::size_t side = 0; side < 2; ++side) {
        left_[side] /= extent;
        Index& index = sides_[side][position_[side] - 1];
        index = index + digit * left_[side];
      }
      return;
    }
    take_whole(from, to);
  }

  // Dimensions until both sides have used as many elements.
  void take_whole(const Shape& from, const Shape& to) {
    Position products[2] = {left_[0], left_[1]};
    const Position begun[2] = {left_[0], left_[1]};
    const Shape* shapes[2] = {&from, &to};
    std::size_t first[2] = {position_[0] - 1, position_[1] - 1};
    while (products[0] != products[1]) {
      const std::size_t side = products[0] < products[1] ? 0 : 1;
      products[side] *= (*shapes[side])[position_[side]++];
    }
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t d = first[side]; d < position_[side]; ++d) {
        // A dimension of which digits were split off before keeps these.
        const Position extent = d == first[side] ? begun[side] : (*shapes[side])[d];
        sides_[side][d] = sides_[side][d] + op_.whole("w" + std::to_string(digits_++), extent);
      }
      left_[side] = 1;
    }
  }

  Definition& op_;
  std::vector<Index> sides_[2];
  std::size_t position_[2] = {0, 0};
  Position left_[2] = {1, 1};  // of the present dimension
  std::size_t digits_ = 0;
};

}  // namespace

MaybeDescription reshape(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const std::int64_t elements = count_elements(op.input(0));
  if (elements == 0 || elements != count_elements(op.output(0))) return std::nullopt;
  const CommonDigits digits(op, op.input(0), op.output(0));
  op.out(0)(digits.to()) = f(op.in(0)(digits.from()));
  return std::move(op).done();
}

MaybeDescription transpose(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() != 1 || op.num_outputs() != 1) return std::nullopt;
  const std::size_t rank = op.input(0).size();
  const std::vector<Index> at = op.indices(op.input(0));
  const auto given = op.attributes().integers("perm");
  if (!given.empty() && given.size() != rank) return std::nullopt;
  std::vector<Index> written;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto from = given.empty() ? rank - 1 - d : static_cast<std::size_t>(given[d]);
    if (from >= rank || op.output(0)[d] != op.input(0)[from]) return std::nullopt;
    written.push_back(at[from]);
  }
  op.out(0)(written) = f(op.in(0)(at));
  return std::move(op).done();
}

MaybeDescription concat(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() == 0 || op.num_outputs() != 1) return std::nullopt;
  const Shape& shape = op.output(0);
  const auto axis = axis_attribute(signature, shape.size(), 0);
  if (!axis) return std::nullopt;
  const std::vector<Index> at = op.indices(shape);
  tdl::Expression value;
  Position offset = 0;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.input(i).size() != shape.size()) return std::nullopt;
    std::vector<Index> indices = at;
    indices[*axis] = at[*axis] - offset;
    offset += op.input(i)[*axis];
    value = value + if_any(op.in(i)(indices));
  }
  if (offset != shape[*axis]) return std::nullopt;  // a tensor that is listed once but used twice
  op.out(0)(at) = value;
  return std::move(op).done();
}

namespace {

// One range for each dimension: start, and step.
struct Ranges {
  std::vector<Position> start, step;
};

std::vector<std::int64_t> list_of(const Signature& op, std::string_view name, std::size_t input) {
  const auto given = op.attributes.integers(name);
  if (!given.empty()) return {given.begin(), given.end()};
  return input < op.numbers.size() ? op.numbers[input] : std::vector<std::int64_t>{};
}

// From attributes, or from constant inputs: data, starts, ends, axes, steps. Nothing where the
// graph does not say, or a range runs backwards.
std::optional<Ranges> ranges_of(const Signature& op, const Shape& shape) {
  const auto omitted = op.attributes.integers("omitted_inputs");
  const bool no_axes = !omitted.empty();  // the only ones that can be left out before others
  const auto starts = list_of(op, "starts", 1);
  auto axes = list_of(op, "axes", no_axes ? op.inputs.size() : 3);
  const auto steps = list_of(op, "steps", no_axes ? 3 : 4);
  if (starts.empty()) return std::nullopt;
  if (axes.empty()) {
    if (op.inputs.size() > 3 && !no_axes) return std::nullopt;
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool has_steps = op.inputs.size() > (no_axes ? 3U : 4U);
  if (axes.size() != starts.size() || (has_steps && steps.size() != starts.size())) {
    return std::nullopt;
  }
  Ranges ranges{std::vector<Position>(shape.size(), 0), std::vector<Position>(shape.size(), 1)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axis_from_front(axes[i], shape.size());
    const Position step = i < steps.size() ? steps[i] : 1;
    if (!axis || step < 1) return std::nullopt;
    const Position start = starts[i] < 0 ? starts[i] + shape[*axis] : starts[i];
    ranges.start[*axis] = std::clamp<Position>(start, 0, shape[*axis]);
    ranges.step[*axis] = step;
  }
  return ranges;
}

}  // namespace

MaybeDescription slice(const Signature& signature) {
  Definition op(signature);
  if (op.num_inputs() < 1 || op.num_outputs() != 1) return std::nullopt;
  const Shape& x = op.input(0);
  const auto ranges = ranges_of(signature, x);
  if (!ranges || op.output(0).size() != x.size()) return std::nullopt;
  const std::vector<Index> at = op.indices(op.output(0));
  std::vector<Index> read;
  for (std::size_t d = 0; d < x.size(); ++d) {
    read.push_back(at[d] * ranges->step[d] + ranges->start[d]);
  }
  op.out(0)(at) = f(op.in(0)(read));
  // A piece is given just what its range holds.
  op.localise([steps = ranges->step](Piece& piece) {
    std::vector<std::int64_t> ends, axes;
    for (std::size_t d = 0; d < piece.inputs[0].size(); ++d) {
      ends.push_back(piece.inputs[0][d].size());
      axes.push_back(static_cast<std::int64_t>(d));
    }
    piece.attributes.set("starts", std::vector<std::int64_t>(ends.size(), 0));
    piece.attributes.set("ends", ends);
    piece.attributes.set("axes", axes);
    piece.attributes.set("steps", steps);
  });
  return std::move(op).done();
}

namespace {

// The first input as the output, where dimensions that the operator leaves alone can be cut and the
// others are taken whole, as are all other inputs.
MaybeDescription leaves_alone(const Signature& signature, const std::vector<bool>& untouched) {
  Definition op(signature);
  std::vector<Index> read, written;
  for (std::size_t d = 0; d < untouched.size(); ++d) {
    const std::string name = std::to_string(d);
    if (untouched[d]) {
      read.push_back(op.index("d" + name, op.input(0)[d]));
      written.push_back(read.back());
    } else {
      read.push_back(op.whole("in" + name, op.input(0)[d]));
      written.push_back(op.whole("out" + name, op.output(0)[d]));
    }
  }
  tdl::Expression value = op.in(0)(read);
  for (std::size_t i = 1; i < op.num_inputs(); ++i) value = value + op.all_of(i);
  op.out(0)(written) = value;
  return std::move(op).done();
}

bool is_one_to_one(const Signature& op) {
  return !op.inputs.empty() && op.outputs.size() == 1 &&
         op.inputs[0].size() == op.outputs[0].size();
}

std::vector<bool> equal_dimensions(const Shape& a, const Shape& b) {
  std::vector<bool> equal;
  for (std::size_t d = 0; d < a.size(); ++d) equal.push_back(a[d] == b[d]);
  return equal;
}

}  // namespace

// Inputs: dY, then the numbers that the slice had.
MaybeDescription slice_grad(const Signature& op) {
  if (!is_one_to_one(op) || !ranges_of(op, op.outputs[0])) return std::nullopt;
  return leaves_alone(op, equal_dimensions(op.inputs[0], op.outputs[0]));
}

// Also its gradient. The amounts are a constant input or an attribute.
MaybeDescription pad(const Signature& op) {
  const auto amounts = list_of(op, "pads", 1);
  // A fourth input says which axes the amounts are of; it is the third where no value is given.
  if (!is_one_to_one(op) || amounts.size() != 2 * op.inputs[0].size() || op.inputs.size() > 3 ||
      op.attributes.find("omitted_inputs") != nullptr) {
    return std::nullopt;
  }
  const std::size_t rank = op.inputs[0].size();
  std::vector<bool> untouched;
  for (std::size_t d = 0; d < rank; ++d) {
    untouched.push_back(amounts[d] == 0 && amounts[d + rank] == 0);
  }
  return leaves_alone(op, untouched);
}

// Also its gradient.
MaybeDescription tile(const Signature& op) {
  if (!is_one_to_one(op)) return std::nullopt;
  return leaves_alone(op, equal_dimensions(op.inputs[0], op.outputs[0]));
}

}  // namespace emplace::operators

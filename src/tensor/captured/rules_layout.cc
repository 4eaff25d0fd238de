// Operators that move elements without changing them, or pick some.
#include <algorithm>
#include <numeric>

#include "tensor/captured/rules.h"

namespace emplace::captured {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Range {
  std::size_t axis = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;

  std::int64_t count() const { return end > start ? (end - start + step - 1) / step : 0; }
  Attributes attributes() const {
    return {{"axes", Numbers{static_cast<std::int64_t>(axis)}},
            {"starts", Numbers{start}},
            {"ends", Numbers{end}},
            {"steps", Numbers{step}}};
  }
};

Shape with_extent(Shape shape, std::size_t axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

Shape with_one(Shape shape, std::size_t axis) {
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return shape;
}

// A place or a limit that may be counted from the end, and lie beyond either.
std::int64_t place_in(std::int64_t at, std::int64_t extent) {
  return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
}

// What slice and its gradient say of a tensor of this shape.
std::optional<Range> range_of(const Translation& at, const Shape& shape) {
  const auto axis = at.axis({"axis", "dim"}, shape.size());
  if (!axis) return std::nullopt;
  const auto said = [&](std::string_view one, std::string_view other, std::int64_t otherwise) {
    return at.integer(one, at.integer(other, otherwise));
  };
  const std::int64_t extent = shape[*axis];
  const Range range{.axis = *axis,
                    .start = place_in(said("starts", "start", 0), extent),
                    .end = place_in(said("ends", "end", extent), extent),
                    .step = said("steps", "step", 1)};
  return range.step < 1 ? std::nullopt : std::optional(range);
}

// Of select and its gradient.
std::optional<Range> chosen_place(const Translation& at, const Shape& shape) {
  const auto axis = at.axis({"axis", "dim"}, shape.size());
  if (!axis || !at.given("index")) return std::nullopt;
  const std::int64_t extent = shape[*axis];
  const std::int64_t index = at.integer("index", 0);
  const std::int64_t start = index < 0 ? index + extent : index;
  if (start < 0 || start >= extent) return std::nullopt;
  return Range{.axis = *axis, .start = start, .end = start + 1};
}

// The output is the range of the first input, without its axis if that is how it is.
void cut_out(Translation& at, std::size_t output, const Range& range, std::string_view suffix) {
  const Shape cut = with_extent(at.in(0), range.axis, range.count());
  if (cut == at.out(output)) {
    at.emit("Slice", {at.take(0)}, {output}, range.attributes(), {.suffix = std::string(suffix)});
    return;
  }
  const TensorId part =
      at.add(suffix.empty() ? "part" : suffix, "Slice", {at.take(0)},
             TensorSpec{.shape = cut, .dtype = at.in_type(0)}, range.attributes(), true);
  at.set(output, at.reshaped({.root = part, .root_shape = cut}, at.out(output)));
}

}  // namespace

bool reshape(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1 ||
      count_elements(at.in(0)) != count_elements(at.out()) ||
      at.in_type(0) != at.out_type()) {  // `view` as another type is of bits
    return false;
  }
  at.set(0, at.reshaped(at.value(0), at.out()));
  return true;
}

bool permute(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const auto rank = static_cast<std::int64_t>(at.in(0).size());
  Numbers perm;
  for (const std::int64_t axis : at.attributes().integers("perm")) {
    perm.push_back(axis < 0 ? axis + rank : axis);
  }
  Numbers sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Numbers all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) return false;
  at.set(0, at.permuted(at.value(0), perm));
  return true;
}

bool transpose_matrix(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1 || at.in(0).size() > 2) return false;
  at.set(0, at.in(0).size() < 2 ? at.value(0) : at.permuted(at.value(0), {1, 0}));
  return true;
}

bool expand(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  Value value = at.value(0);
  if (!value.root) {
    value.root_shape = at.out();
    at.set(0, std::move(value));
  } else if (at.in(0) == at.out()) {
    at.set(0, std::move(value));
  } else {
    at.replace("Expand", {at.take(0)});
  }
  return true;
}

// A copy of a view is the view, as an op that takes time.
bool clone(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  Value value = at.value(0);
  if (!value.root) {
    at.set(0, std::move(value));
    return true;
  }
  if (value.steps.empty()) {
    at.replace("Identity", {at.take(0)});
    return true;
  }
  const ViewStep last = value.steps.back();
  value.steps.pop_back();
  const TensorId from = at.take(value);
  if (last.perm.empty()) {
    at.replace("Reshape", {from});
  } else {
    at.replace("Transpose", {from}, {{"perm", last.perm}});
  }
  return true;
}

bool concat(Translation& at, std::string_view) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1) return false;
  const auto axis = at.axis({"axis", "dim"}, at.out().size(), 0);
  if (!axis) return false;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) {
    if (at.in(i).size() != at.out().size()) return false;
    sum += at.in(i)[*axis];
    if (with_extent(at.in(i), *axis, at.out()[*axis]) != at.out()) return false;
  }
  if (sum != at.out()[*axis]) return false;
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) inputs.push_back(at.take(i));
  at.replace("Concat", std::move(inputs), {{"axis", static_cast<std::int64_t>(*axis)}});
  return true;
}

bool stack(Translation& at, std::string_view) {
  if (at.num_inputs() == 0 || at.num_outputs() != 1) return false;
  const auto axis = at.axis({"axis", "dim"}, at.out().size(), 0);
  const Shape one = axis ? with_one(at.in(0), *axis) : Shape{};
  if (!axis || one.size() != at.out().size() ||
      with_extent(one, *axis, static_cast<std::int64_t>(at.num_inputs())) != at.out()) {
    return false;
  }
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < at.num_inputs(); ++i) {
    inputs.push_back(at.take(at.reshaped(at.value(i), one)));
  }
  at.replace("Concat", std::move(inputs), {{"axis", static_cast<std::int64_t>(*axis)}});
  return true;
}

bool split(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() == 0) return false;
  const auto axis = at.axis({"axis", "dim"}, at.in(0).size(), 0);
  std::int64_t sum = 0;
  for (std::size_t i = 0; axis && i < at.num_outputs(); ++i) {
    if (at.out(i).size() != at.in(0).size()) return false;
    sum += at.out(i)[*axis];
  }
  if (!axis || sum != at.in(0)[*axis]) return false;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < at.num_outputs(); ++i) {
    const std::int64_t end = begin + at.out(i)[*axis];
    at.emit("Slice", {at.take(0)}, {i}, Range{*axis, begin, end}.attributes(),
            {.suffix = std::to_string(i), .share = 1.0 / static_cast<double>(at.num_outputs())});
    begin = end;
  }
  return true;
}

bool unbind(Translation& at, std::string_view) {
  if (at.num_inputs() != 1) return false;
  const auto axis = at.axis({"axis", "dim"}, at.in(0).size(), 0);
  const auto count = static_cast<std::int64_t>(at.num_outputs());
  if (!axis || at.in(0)[*axis] != count ||
      with_extent(with_one(at.out(), *axis), *axis, count) != at.in(0)) {
    return false;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    cut_out(at, static_cast<std::size_t>(i), {*axis, i, i + 1}, std::to_string(i));
  }
  return true;
}

bool select(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const auto range = chosen_place(at, at.in(0));
  if (!range) return false;
  cut_out(at, 0, *range, {});
  return true;
}

bool slice(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  if (at.in(0) == at.out()) {
    at.set(0, at.value(0));
    return true;
  }
  const auto range = range_of(at, at.in(0));
  if (!range || with_extent(at.in(0), range->axis, range->count()) != at.out()) return false;
  cut_out(at, 0, *range, {});
  return true;
}

bool select_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const auto range = chosen_place(at, at.out());
  if (!range) return false;
  const TensorId part = at.take(at.reshaped(at.value(0), with_one(at.in(0), range->axis)));
  at.replace("SliceGrad", {part}, range->attributes());
  return true;
}

bool slice_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  if (at.in(0) == at.out()) {
    at.set(0, at.value(0));
    return true;
  }
  const auto range = range_of(at, at.out());
  if (!range) return false;
  at.replace("SliceGrad", {at.take(0)}, range->attributes());
  return true;
}

// PyTorch lists amounts from the last dimension on, before and behind.
bool pad(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const auto given = at.attributes().integers("pads");
  const std::size_t rank = at.in(0).size();
  if (given.empty() || given.size() % 2 != 0 || given.size() > 2 * rank ||
      std::any_of(given.begin(), given.end(), [](std::int64_t amount) { return amount < 0; })) {
    return false;
  }
  Numbers pads(2 * rank, 0);
  for (std::size_t i = 0; i < given.size() / 2; ++i) {
    pads[rank - 1 - i] = given[2 * i];
    pads[2 * rank - 1 - i] = given[2 * i + 1];
  }
  at.replace("Pad", {at.take(0)},
             {{"pads", std::move(pads)}, {"value", at.attributes().real("value", 0)}});
  return true;
}

bool repeat(Translation& at, std::string_view) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1 || at.in(0).size() > at.out().size()) {
    return false;
  }
  Shape shape = at.in(0);
  shape.insert(shape.begin(), at.out().size() - shape.size(), 1);
  at.replace("Tile", {at.take(at.reshaped(at.value(0), std::move(shape)))});
  return true;
}

bool triangle(Translation& at, std::string_view which) {
  if (at.num_inputs() != 1 || at.num_outputs() != 1) return false;
  const TensorId diagonal =
      at.number(static_cast<double>(at.integer("diagonal", 0)), DType::kInt64);
  at.replace("Trilu", {at.take(0), diagonal}, {{"upper", std::int64_t{which == "upper"}}});
  return true;
}

bool cumulative_sum(Translation& at, std::string_view) {
  const auto axis = at.axis({"axis"}, at.out().size());
  if (!axis || at.num_inputs() != 1) return false;
  at.replace("CumSum", {at.take(0), at.number(static_cast<double>(*axis), DType::kInt64)});
  return true;
}

// Inputs: a table and numbers of rows.
bool pick_rows(Translation& at, std::string_view) {
  if (at.num_inputs() != 2 || at.num_outputs() != 1) return false;
  const auto axis = at.axis({"axis"}, at.in(0).size(), 0);
  if (!axis || at.out().size() + 1 != at.in(0).size() + at.in(1).size()) return false;
  at.replace("Gather", {at.take(0), at.take(1)}, {{"axis", static_cast<std::int64_t>(*axis)}});
  return true;
}

bool pick_elements(Translation& at, std::string_view) {
  const auto axis = at.axis({"axis"}, at.out().size());
  if (!axis || at.num_inputs() != 2 || at.num_outputs() != 1) return false;
  at.replace("GatherElements", {at.take(0), at.take(1)},
             {{"axis", static_cast<std::int64_t>(*axis)}});
  return true;
}

// Inputs: dY and numbers of rows. A row for padding has no gradient.
bool embedding_gradient(Translation& at, std::string_view) {
  if (at.num_inputs() != 2 || at.num_outputs() != 1 || at.integer("scale_grad_by_freq", 0) != 0 ||
      at.in(0).size() != at.in(1).size() + 1) {
    return false;
  }
  TensorId gradient = at.take(0);
  const std::int64_t padding = at.integer("padding_idx", -1);
  if (padding >= 0) {
    Shape column = at.in(1);
    column.push_back(1);
    const TensorId rows = at.take(at.reshaped(at.value(1), column));
    const TensorId at_padding =
        at.add("padding", "Equal", {rows, at.number(static_cast<double>(padding), at.in_type(1))},
               TensorSpec{.shape = column, .dtype = DType::kBool});
    gradient = at.add("counted", "Where", {at_padding, at.number(0, at.in_type(0)), gradient},
                      TensorSpec{.shape = at.in(0), .dtype = at.in_type(0)});
  }
  at.replace("GatherGrad", {gradient, at.take(1)}, {{"axis", std::int64_t{0}}});
  return true;
}

}  // namespace emplace::captured

// Rows of tables by number, and their gradients.
//
// A piece of a table that begins at row `row_offset` of the whole takes the whole's numbers. Rows
// that lie elsewhere read as zeros, and nothing is written to them: a number beyond the last row
// stands for them.
#include "base/error.h"

#include "exec/native.h"

namespace emplace::exec {
namespace {

// How numbers as they are given become rows.
struct Rows {
  std::int64_t extent = 0;
  bool piece = false;
  std::int64_t offset = 0;
  std::int64_t total = 0;  // of the whole, from whose end numbers below zero count
  Tensor known = {};       // what the op's numbers are, if that is known

  Tensor local(const Tensor& numbers) const {
    if (known.defined()) return known;
    const std::int64_t end = piece ? total : extent;
    const Tensor counted = at::where(numbers < 0, numbers + end, numbers).flatten();
    if (!piece) return counted;
    const Tensor rows = counted - offset;
    return rows.masked_fill((rows < 0).logical_or_(rows >= extent), extent);
  }
};

Rows rows_of_table(const Site& site, std::int64_t extent) {
  Rows rows{.extent = extent,
            .piece = site.call.given("row_offset"),
            .offset = site.call.integer("row_offset", 0),
            .total = site.call.integer("row_total", 0)};
  site.in(1);  // there are numbers
  if (site.known(1)) rows.known = rows.local(site.call.inputs[1]).to(site.call.floating.device());
  return rows;
}

std::int64_t axis_of_table(const Site& site, const Shape& table) {
  return site.call.axis(static_cast<std::int64_t>(table.size()), 0);
}

Run compile_gather(const Site& site) {
  const std::int64_t axis = axis_of_table(site, site.in(0));
  const Rows rows = rows_of_table(site, site.in(0)[static_cast<std::size_t>(axis)]);
  return [axis, rows, shape = site.out()](OpStep& step) {
    Tensor table = step.inputs[0];
    if (rows.piece) {
      Shape row = shape_of(table);
      row[static_cast<std::size_t>(axis)] = 1;
      table = at::cat({table, torch::zeros(row, table.options())}, axis);
    }
    const Tensor numbers = rows.local(step.inputs[1]);
    step.outputs[0] = table.index_select(axis, numbers).view(shape);
  };
}

// Of dy [before, numbers, after] along the axis.
Run compile_gather_along(const Site& site, std::int64_t axis, const Rows& rows) {
  if (static_cast<std::size_t>(axis) > site.in(0).size()) {
    fail_input("has a gradient of {} dimensions, expected {} or more", site.in(0).size(), axis);
  }
  Shape along(site.in(0).begin(), site.in(0).begin() + axis);
  along.push_back(count_elements(site.in(1)));
  along.insert(along.end(), site.out().begin() + axis + 1, site.out().end());
  Shape table = site.out();
  if (rows.piece) ++table[static_cast<std::size_t>(axis)];
  return [axis, rows, along, table](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    const Tensor sums = torch::zeros(table, dy.options())
                            .index_add_(axis, rows.local(step.inputs[1]), dy.reshape(along));
    step.outputs[0] = rows.piece ? sums.narrow(axis, 0, rows.extent) : sums;
  };
}

// From dy and the numbers.
Run compile_gather_grad(const Site& site) {
  const std::int64_t axis = axis_of_table(site, site.out());
  const Rows rows = rows_of_table(site, site.out()[static_cast<std::size_t>(axis)]);
  const std::int64_t width =
      axis == 0 ? count_elements(site.out()) / std::max<std::int64_t>(rows.extent, 1) : 0;
  if (axis != 0 || width == 0) return compile_gather_along(site, axis, rows);
  return [rows, width, shape = site.out()](OpStep& step) {
    const Tensor dy = step.inputs[0].reshape({-1, width});
    const Tensor numbers = rows.local(step.inputs[1]);
    step.outputs[0] =
        at::embedding_dense_backward(dy, numbers, rows.extent, rows.extent, false).view(shape);
  };
}

}  // namespace

void add_native_indexing(CompilerTable& table) {
  table["Gather"] = compile_gather;
  table["GatherGrad"] = compile_gather_grad;
}

}  // namespace emplace::exec

// Picking and placing elements by number.
//
// A piece of a table that begins at row `row_offset` of the whole takes the whole's numbers. Rows
// that lie elsewhere read as zeros, and nothing is written to them: a row more stands in for them.
#include <algorithm>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// Numbers from the front; those of rows elsewhere become `extent`.
Tensor local_indices(const Call& call, const Tensor& indices, std::int64_t extent) {
  if (!call.given("row_offset")) return at::where(indices < 0, indices + extent, indices);
  // Below zero from the end of the whole, if that is known.
  const std::int64_t total = call.integer("row_total", 0);
  const Tensor counted = at::where(indices < 0, indices + total, indices);
  const Tensor rows = counted - call.integer("row_offset", 0);
  return at::where((rows >= 0).logical_and(rows < extent), rows, torch::full_like(rows, extent));
}

// With a row of zeros behind the others, if any index may point there.
Tensor with_spare(const Call& call, const Tensor& x, std::int64_t axis) {
  if (!call.given("row_offset")) return x;
  Shape row(x.sizes().begin(), x.sizes().end());
  row[static_cast<std::size_t>(axis)] = 1;
  return at::cat({x, torch::zeros(row, x.options())}, axis);
}

Tensor gather_elements(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = call.axis(x.dim(), 0);
  return with_spare(call, x, axis).gather(axis, local_indices(call, call.in(1), x.size(axis)));
}

// Tuples of indices into the leading dimensions, as numbers of blocks of the rest.
struct Blocks {
  Tensor numbers;         // one for each tuple
  std::int64_t size = 1;  // elements of a block
};

Blocks blocks_of(const Call& call, const Tensor& data, const Tensor& indices) {
  const std::int64_t depth = indices.size(-1);
  if (depth > data.dim()) {
    fail_input("has tuples of {} numbers for {} dimensions", depth, data.dim());
  }
  const Tensor tuples = indices.reshape({-1, depth});
  Tensor numbers = torch::zeros({tuples.size(0)}, tuples.options());
  for (std::int64_t i = 0; i < depth; ++i) {
    const Tensor column = tuples.select(1, i);
    const std::int64_t extent = data.size(i);
    const Tensor local = i == 0 ? local_indices(call, column, extent)
                                : at::where(column < 0, column + extent, column);
    numbers = numbers * extent + local;
  }
  std::int64_t size = 1;
  for (std::int64_t i = depth; i < data.dim(); ++i) size *= data.size(i);
  return {numbers, size};
}

// Tuples are extended by the numbers of the batches that they are in.
Tensor with_batches(const Tensor& indices, std::int64_t batch_dims) {
  Tensor result = indices;
  for (std::int64_t dim = batch_dims; dim-- > 0;) {
    Shape shape(static_cast<std::size_t>(indices.dim()), 1);
    shape[static_cast<std::size_t>(dim)] = indices.size(dim);
    Shape whole(indices.sizes().begin(), indices.sizes().end());
    whole.back() = 1;
    const Tensor numbers = torch::arange(indices.size(dim), indices.options()).reshape(shape);
    result = at::cat({numbers.expand(whole), result}, -1);
  }
  return result;
}

Tensor gather_nd(const Call& call) {
  const Tensor& data = call.in(0);
  const Tensor indices = with_batches(call.in(1), call.integer("batch_dims", 0));
  const Blocks blocks = blocks_of(call, data, indices);
  const Tensor rows = with_spare(call, data, 0).reshape({-1, blocks.size});
  return rows.index_select(0, blocks.numbers).reshape(call.shape());
}

std::string_view reduction_of(const Call& call) {
  return call.attributes.text("reduction", "none");
}

// As libtorch calls them.
const char* reduction_name(std::string_view reduction) {
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  if (reduction == "min") return "amin";
  fail_input("attributes: there is no reduction '{}'", reduction);
}

Tensor scatter_nd(const Call& call) {
  const Tensor& data = call.in(0);
  const Blocks blocks = blocks_of(call, data, call.in(1));
  const Tensor rows = with_spare(call, data, 0).reshape({-1, blocks.size});
  const Tensor updates = call.in(2).reshape({-1, blocks.size});
  const std::string_view reduction = reduction_of(call);
  Tensor result;
  if (reduction == "none") {
    result = rows.index_copy(0, blocks.numbers, updates);
  } else if (reduction == "add") {
    result = rows.index_add(0, blocks.numbers, updates);
  } else {
    result = rows.index_reduce(0, blocks.numbers, updates, reduction_name(reduction));
  }
  return result.narrow(0, 0, data.numel() / std::max<std::int64_t>(blocks.size, 1))
      .reshape(data.sizes());
}

Tensor scatter_elements(const Call& call) {
  const Tensor& data = call.in(0);
  const std::int64_t axis = call.axis(data.dim(), 0);
  const Tensor indices = local_indices(call, call.in(1), data.size(axis));
  const Tensor all = with_spare(call, data, axis);
  const std::string_view reduction = reduction_of(call);
  Tensor result;
  if (reduction == "none") {
    result = all.scatter(axis, indices, call.in(2));
  } else if (reduction == "add") {
    result = all.scatter_add(axis, indices, call.in(2));
  } else {
    result = all.scatter_reduce(axis, indices, call.in(2), reduction_name(reduction));
  }
  return result.narrow(axis, 0, data.size(axis));
}

// From dy and the indices.
Tensor gather_elements_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const std::int64_t axis = call.axis(dy.dim(), 0);
  const std::int64_t extent = call.shape().at(static_cast<std::size_t>(axis));
  Shape shape = call.shape();
  if (call.given("row_offset")) ++shape[static_cast<std::size_t>(axis)];
  return torch::zeros(shape, dy.options())
      .scatter_add_(axis, local_indices(call, call.in(1), extent), dy)
      .narrow(axis, 0, extent);
}

// From dy and the indices, of the data: nothing of what was written over.
Tensor scatter_elements_data_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const std::int64_t axis = call.axis(dy.dim(), 0);
  const Tensor indices = local_indices(call, call.in(1), dy.size(axis));
  return with_spare(call, dy, axis).scatter(axis, indices, 0).narrow(axis, 0, dy.size(axis));
}

// And of what was written.
Tensor scatter_elements_updates_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const std::int64_t axis = call.axis(dy.dim(), 0);
  return with_spare(call, dy, axis).gather(axis, local_indices(call, call.in(1), dy.size(axis)));
}

Tensor scatter_nd_data_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const Blocks blocks = blocks_of(call, dy, call.in(1));
  const Tensor rows = with_spare(call, dy, 0).reshape({-1, blocks.size});
  return rows.index_fill(0, blocks.numbers, 0)
      .narrow(0, 0, dy.numel() / std::max<std::int64_t>(blocks.size, 1))
      .reshape(dy.sizes());
}

Tensor scatter_nd_updates_gradient(const Call& call) {
  const Tensor& dy = call.in(0);
  const Blocks blocks = blocks_of(call, dy, call.in(1));
  const Tensor rows = with_spare(call, dy, 0).reshape({-1, blocks.size});
  return rows.index_select(0, blocks.numbers).reshape(call.shape());
}

// Of equal elements the first come first, as ONNX has it.
Tensors top_k(const Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t axis = call.axis(x.dim(), -1);
  const std::int64_t count = call.shape().at(static_cast<std::size_t>(axis));
  const auto [values, indices] = at::sort(x, true, axis, call.integer("largest", 1) != 0);
  return {values.narrow(axis, 0, count), indices.narrow(axis, 0, count)};
}

// From dy and the indices.
Tensor top_k_gradient(const Call& call) {
  const auto axis = call.axis(call.in(0).dim(), -1);
  return torch::zeros(call.shape(), call.in(0).options())
      .scatter_add_(axis, call.in(1), call.in(0));
}

// Inputs: indices, depth, the values of cold and hot.
Tensor one_hot(const Call& call) {
  const Tensor& indices = call.in(0);
  const auto rank = indices.dim() + 1;
  const std::int64_t axis = call.axis(rank, -1);
  const std::int64_t depth = call.shape().at(static_cast<std::size_t>(axis));
  Shape along(static_cast<std::size_t>(rank), 1);
  along[static_cast<std::size_t>(axis)] = depth;
  const Tensor numbers = torch::arange(depth, indices.options().dtype(torch::kLong)).reshape(along);
  const Tensor wanted = indices.to(torch::kLong).unsqueeze(axis);
  const Tensor hot = numbers == at::where(wanted < 0, wanted + depth, wanted);
  return at::where(hot, call.in(2)[1], call.in(2)[0]);
}

Tensor compress(const Call& call) {
  const Tensor chosen = call.in(1).nonzero().flatten();
  if (!call.given("axis")) return call.in(0).flatten().index_select(0, chosen);
  return call.in(0).index_select(call.axis(call.in(0).dim(), 0), chosen);
}

}  // namespace

void add_indexing(KernelTable& table) {
  table["GatherElements"] = single(gather_elements);
  table["GatherElementsGrad"] = single(gather_elements_gradient);
  table["GatherND"] = single(gather_nd);
  for (const std::string type : {"Scatter", "ScatterElements"}) {
    table[type] = single(scatter_elements);
    table[type + "InputGrad"] = single(scatter_elements_data_gradient);
    table[type + "UpdatesGrad"] = single(scatter_elements_updates_gradient);
  }
  table["ScatterND"] = single(scatter_nd);
  table["ScatterNDInputGrad"] = single(scatter_nd_data_gradient);
  table["ScatterNDUpdatesGrad"] = single(scatter_nd_updates_gradient);
  table["TopK"] = top_k;
  table["TopKGrad"] = single(top_k_gradient);
  table["OneHot"] = single(one_hot);
  table["Compress"] = single(compress);
  table["NonZero"] = single([](const Call& call) { return call.in(0).nonzero().t(); });
}

}  // namespace emplace::exec

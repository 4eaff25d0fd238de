// Rules for PyTorch's operators, by family; table.cc says which operator has which.
#pragma once

#include "tensor/captured/translation.h"

namespace emplace::captured {

// ---- rules_elementwise.cc

// The same operator under another name, with all that it reads and no attributes.
bool same(Translation& at, std::string_view onnx);
// With attributes of the same names.
bool with_attributes(Translation& at, std::string_view onnx);
// Of two operands, the second of which may be a number; `alpha` times the second.
bool binary(Translation& at, std::string_view onnx);
// Its operands in the other order.
bool reversed(Translation& at, std::string_view onnx);
bool not_equal(Translation& at, std::string_view onnx);
bool reciprocal_root(Translation& at, std::string_view onnx);
bool relu_gradient(Translation& at, std::string_view onnx);
bool leaky_gradient(Translation& at, std::string_view onnx);
bool without_settings(Translation& at, std::string_view onnx);
bool clamp(Translation& at, std::string_view onnx);
bool masked_fill(Translation& at, std::string_view onnx);
bool cast(Translation& at, std::string_view onnx);
bool filled(Translation& at, std::string_view number);
bool counted(Translation& at, std::string_view onnx);
bool reduction(Translation& at, std::string_view onnx);
bool along_axis(Translation& at, std::string_view onnx);

// ---- rules_layout.cc

bool reshape(Translation& at, std::string_view onnx);
bool permute(Translation& at, std::string_view onnx);
bool transpose_matrix(Translation& at, std::string_view onnx);
bool expand(Translation& at, std::string_view onnx);
bool clone(Translation& at, std::string_view onnx);
bool concat(Translation& at, std::string_view onnx);
bool stack(Translation& at, std::string_view onnx);
bool split(Translation& at, std::string_view onnx);
bool unbind(Translation& at, std::string_view onnx);
bool select(Translation& at, std::string_view onnx);
bool slice(Translation& at, std::string_view onnx);
bool select_gradient(Translation& at, std::string_view onnx);
bool slice_gradient(Translation& at, std::string_view onnx);
bool pad(Translation& at, std::string_view onnx);
bool repeat(Translation& at, std::string_view onnx);
bool triangle(Translation& at, std::string_view onnx);
bool cumulative_sum(Translation& at, std::string_view onnx);
bool pick_rows(Translation& at, std::string_view onnx);
bool pick_elements(Translation& at, std::string_view onnx);
bool embedding_gradient(Translation& at, std::string_view onnx);

// ---- rules_products.cc

bool matrix_product(Translation& at, std::string_view onnx);
bool matrix_product_plus(Translation& at, std::string_view onnx);
bool batched_product(Translation& at, std::string_view onnx);
bool batched_product_plus(Translation& at, std::string_view onnx);
bool convolution(Translation& at, std::string_view onnx);
bool convolution_gradient(Translation& at, std::string_view onnx);
bool max_pool(Translation& at, std::string_view onnx);
bool max_pool_gradient(Translation& at, std::string_view onnx);
bool average_pool(Translation& at, std::string_view onnx);
bool global_pool(Translation& at, std::string_view onnx);

// ---- rules_training.cc

bool layer_norm(Translation& at, std::string_view onnx);
bool layer_norm_gradient(Translation& at, std::string_view onnx);
bool group_norm(Translation& at, std::string_view onnx);
bool group_norm_gradient(Translation& at, std::string_view onnx);
bool batch_norm(Translation& at, std::string_view onnx);
bool batch_norm_gradient(Translation& at, std::string_view onnx);
bool likelihood_loss(Translation& at, std::string_view onnx);
bool likelihood_gradient(Translation& at, std::string_view onnx);
bool dropout(Translation& at, std::string_view onnx);
bool dropout_gradient(Translation& at, std::string_view onnx);
bool coin_flips(Translation& at, std::string_view onnx);
bool update(Translation& at, std::string_view onnx);
bool update_with_state(Translation& at, std::string_view onnx);

}  // namespace emplace::captured

// The operators' descriptions, one function an operator or a kind of operator; table.cc says which
// operator has which. Each returns nothing where the shapes are not such as it describes: the
// operator is then not split.
#pragma once

#include <optional>

#include "tensor/tdl/definition.h"

namespace emplace::operators {

using MaybeDescription = std::optional<tdl::Description>;

// ---- elementwise.cc

// Any number of inputs that are broadcast to the outputs, which have one shape. Also updates of
// weights, which have no outputs.
MaybeDescription elementwise(const tdl::Signature& op);
// The first input alone, broadcast to the output.
MaybeDescription expand(const tdl::Signature& op);
// The mask of each element follows from its place in the whole tensor.
MaybeDescription dropout(const tdl::Signature& op);

// ---- products.cc

MaybeDescription matmul(const tdl::Signature& op);
MaybeDescription matmul_weight_grad(const tdl::Signature& op);
MaybeDescription gemm(const tdl::Signature& op);
// With an activation on top, so that partial sums cannot be added up.
MaybeDescription fused_product(const tdl::Signature& op);
MaybeDescription einsum(const tdl::Signature& op);
MaybeDescription einsum_grad(const tdl::Signature& op);

// ---- attention.cc

// Fused attention by heads, and its gradient: examples and key heads one by one.
MaybeDescription flash_attention(const tdl::Signature& op);
MaybeDescription flash_attention_grad(const tdl::Signature& op);
// ONNX's, and its gradient; and where it may be the contrib operator over packed weights.
MaybeDescription attention(const tdl::Signature& op);
MaybeDescription attention_or_packed(const tdl::Signature& op);

// ---- windows.cc

MaybeDescription conv(const tdl::Signature& op);
MaybeDescription fused_conv(const tdl::Signature& op);
MaybeDescription conv_input_grad(const tdl::Signature& op);
MaybeDescription conv_weight_grad(const tdl::Signature& op);
MaybeDescription conv_transpose(const tdl::Signature& op);
MaybeDescription conv_transpose_input_grad(const tdl::Signature& op);
MaybeDescription conv_transpose_weight_grad(const tdl::Signature& op);
MaybeDescription pool(const tdl::Signature& op);
// Images and channels one by one, each whole: gradients of pools, resizing.
MaybeDescription by_channel(const tdl::Signature& op);

// ---- rows.cc: functions of whole rows

// Along the attribute `axis` (the last by default), of any number of tensors of one shape.
MaybeDescription along_axis(const tdl::Signature& op);
// Also its gradient, whose first inputs are the output's and the input.
MaybeDescription layer_norm(const tdl::Signature& op);
// Also its gradient.
MaybeDescription instance_norm(const tdl::Signature& op);
MaybeDescription batch_norm(const tdl::Signature& op);
// Statistics of a batch, what is normalised by them, and the gradients of both.
MaybeDescription batch_norm_running(const tdl::Signature& op);
MaybeDescription batch_norm_statistics(const tdl::Signature& op);
// Every input and output whose first dimension is the batch is split there; others are whole, and
// gradients among them are sums over the examples.
MaybeDescription by_example(const tdl::Signature& op);

// ---- reductions.cc

MaybeDescription reduction(const tdl::Signature& op);
MaybeDescription reduction_grad(const tdl::Signature& op);
MaybeDescription global_pool(const tdl::Signature& op);
MaybeDescription arg_reduction(const tdl::Signature& op);

// ---- layout.cc

MaybeDescription reshape(const tdl::Signature& op);
MaybeDescription transpose(const tdl::Signature& op);
MaybeDescription concat(const tdl::Signature& op);
MaybeDescription slice(const tdl::Signature& op);
MaybeDescription slice_grad(const tdl::Signature& op);
MaybeDescription pad(const tdl::Signature& op);
MaybeDescription tile(const tdl::Signature& op);

// ---- picks.cc

MaybeDescription gather(const tdl::Signature& op);
MaybeDescription gather_grad(const tdl::Signature& op);
MaybeDescription by_element(const tdl::Signature& op);
MaybeDescription by_slice(const tdl::Signature& op);
MaybeDescription one_hot(const tdl::Signature& op);

// ---- losses.cc

MaybeDescription loss(const tdl::Signature& op);
MaybeDescription loss_weight(const tdl::Signature& op);
MaybeDescription loss_grad(const tdl::Signature& op);

// ---- recurrent.cc

MaybeDescription recurrent(const tdl::Signature& op);
MaybeDescription recurrent_grad(const tdl::Signature& op);

}  // namespace emplace::operators

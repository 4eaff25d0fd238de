// The rules that the rows of gradient_table.cc name.
#pragma once

#include "graph/gradients.h"

namespace emplace::gradient_rules {

// ---- for many operators, by what the row says

// One op "<Type>Grad" for the first input.
void single(OpGradient& op);
// One op "<Type>Grad" for all inputs that want a gradient; FLOPs by element.
void joint(OpGradient& op);
// As joint; FLOPs in halves of the forward op's.
void joint_product(OpGradient& op);
// As joint; FLOPs by the sizes of keys and values.
void fused_attention(OpGradient& op);
// One op "<Type>Grad" for each operand, which may be broadcast.
void each_operand(OpGradient& op);
// The operator itself, of the gradient and the inputs after the first.
void same(OpGradient& op);

// ---- gradient_elementwise.cc

void add(OpGradient& op);
void subtract(OpGradient& op);
void multiply(OpGradient& op);
void divide(OpGradient& op);
void mean(OpGradient& op);
void where(OpGradient& op);
void identity(OpGradient& op);
void cast(OpGradient& op);
void dropout(OpGradient& op);
void loss(OpGradient& op);

// ---- gradient_products.cc

void matmul(OpGradient& op);
void gemm(OpGradient& op);
void einsum(OpGradient& op);
void conv(OpGradient& op);
void recurrent(OpGradient& op);

// ---- gradient_layout.cc

void view(OpGradient& op);
void transpose(OpGradient& op);
void expand(OpGradient& op);
void concat(OpGradient& op);
void split(OpGradient& op);
void max_pool(OpGradient& op);
void scatter(OpGradient& op);
void depth_to_space(OpGradient& op);
void space_to_depth(OpGradient& op);

}  // namespace emplace::gradient_rules

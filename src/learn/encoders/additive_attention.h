// Additive attention (Bahdanau et al. 2015) of many queries to one memory that they share.
#pragma once

#include "learn/nn/torch.h"

namespace emplace::learn {

// Row i is sum_j softmax_j(v' tanh(q_i + m_j)) m_j: queries [rows, width], memory [slots, width],
// v [width]; the result is [rows, width]. Nothing of size rows * slots * width is kept: the
// backward pass computes it again. On the CPU by loops, which take entries beyond -20 .. 20 as
// these bounds.
torch::Tensor additive_attention(const torch::Tensor& queries, const torch::Tensor& memory,
                                 const torch::Tensor& v);
// The same in libtorch's own operations on every device.
torch::Tensor additive_attention_plainly(const torch::Tensor& queries, const torch::Tensor& memory,
                                         const torch::Tensor& v);

// The loops' form of a memory, for queries that come bit by bit: on the CPU, without gradients.
class AttentionMemory {
 public:
  AttentionMemory(const torch::Tensor& memory, const torch::Tensor& v);

  // softmax_j(v' tanh(q_i + m_j)): [rows, slots].
  torch::Tensor weights(const torch::Tensor& queries) const;
  torch::Tensor contexts(const torch::Tensor& queries) const;

 private:
  torch::Tensor memory_;
  // With columns up to a multiple of kTogether that change nothing.
  torch::Tensor powers_;  // e^2m, [width, slots]
  torch::Tensor v_;
};

}  // namespace emplace::learn

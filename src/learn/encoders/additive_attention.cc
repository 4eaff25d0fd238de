// Additive attention by loops, without anything of size rows x slots x width.
//
// tanh(q + m) = 1 - 2 r with r = 1 / (1 + e^2q e^2m): exponentials are taken once per row and slot,
// and what is left for each pair is arithmetic. Two reciprocals cost one division: 1/a = b / (ab)
// and 1/b = a / (ab). The backward pass computes r again from the exponentials; with w = d_score r,
// the gradients of v, and of q and m, are sums of w and of w (1 - r). Entries beyond -20 .. 20
// count as these bounds, where tanh is 1 in single precision; otherwise the results are libtorch's
// to rounding (tests/learn/additive_attention_test.cc).
//
// O(rows x slots x width) time. 12 times as fast as the formula in libtorch's operations, 32 rows
// at a time, at 2000 rows x 200 slots x 64; 9 times at 320 x 80 x 512 (bench/policies).
#include "learn/encoders/additive_attention.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

#include "learn/encoders/vector_loops.h"
#include "learn/nn/recompute.h"

namespace emplace::learn {
namespace {

constexpr float kLargest = 20;
// tanh is 1 in single precision long before; products of two such are finite.
constexpr float kSaturated = 1073741824.0F;  // 2^30
constexpr std::int64_t kTogether = 8;

torch::Tensor powers_of(const torch::Tensor& x) {
  return x.clamp(-kLargest, kLargest).mul_(2).exp_();
}

torch::Tensor padded(const torch::Tensor& x, std::int64_t columns) {
  return columns == 0 ? x.contiguous() : torch::constant_pad_nd(x, {0, columns});
}

EMPLACE_ALWAYS_INLINE float denominator(float q_power, float m_power) {
  return smaller(1.0F + q_power * m_power, kSaturated);
}

// v1 / a + v2 / b
EMPLACE_ALWAYS_INLINE float two_terms(float v1, float a, float v2, float b) {
  return (v1 * b + v2 * a) / (a * b);
}

// scores[row, slot] = -2 sum_k v_k r: v' tanh(q + m) but for the sum of v, which a softmax does not
// see. `m_powers` is [width, slots]; the width is a multiple of kTogether.
EMPLACE_FOR_EACH_PROCESSOR
void add_scores(const float* q_powers, const float* m_powers, const float* v, float* scores,
                std::int64_t rows, std::int64_t slots, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* s = scores + row * slots;
    for (std::int64_t slot = 0; slot < slots; ++slot) s[slot] = 0;
    for (std::int64_t k = 0; k < width; k += kTogether) {
      const float* e = q_powers + row * width + k;
      const float* f = m_powers + k * slots;
      const float e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3];
      const float e4 = e[4], e5 = e[5], e6 = e[6], e7 = e[7];
      const float v0 = -2 * v[k], v1 = -2 * v[k + 1], v2 = -2 * v[k + 2], v3 = -2 * v[k + 3];
      const float v4 = -2 * v[k + 4], v5 = -2 * v[k + 5], v6 = -2 * v[k + 6], v7 = -2 * v[k + 7];
      EMPLACE_INDEPENDENT
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        s[slot] += two_terms(v0, denominator(e0, f[slot]), v1, denominator(e1, f[slot + slots])) +
                   two_terms(v2, denominator(e2, f[slot + 2 * slots]), v3,
                             denominator(e3, f[slot + 3 * slots])) +
                   two_terms(v4, denominator(e4, f[slot + 4 * slots]), v5,
                             denominator(e5, f[slot + 5 * slots])) +
                   two_terms(v6, denominator(e6, f[slot + 6 * slots]), v7,
                             denominator(e7, f[slot + 7 * slots]));
      }
    }
  }
}

struct ScoreGradients {
  const float* q_powers;  // [rows, width]
  const float* m_powers;  // [slots, width]
  const float* d_scores;  // [rows, slots]
  float* d_q;             // [rows, width]: sum_j d_scores (r - r^2)
  float* d_m;             // [slots, width]: sum_i likewise
  float* d_v;             // [width]: sum_ij d_scores r
};

// Two slots at a time; an odd last one is paired with itself at weight 0.
EMPLACE_FOR_EACH_PROCESSOR
void add_gradients(const ScoreGradients& at, std::int64_t rows, std::int64_t slots,
                   std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* e = at.q_powers + row * width;
    const float* d_scores = at.d_scores + row * slots;
    float* d_q = at.d_q + row * width;
    float* d_v = at.d_v;
    std::int64_t slot = 0;
    for (; slot + 4 <= slots; slot += 4) {
      const float* f0 = at.m_powers + slot * width;
      const float* f1 = f0 + width;
      const float* f2 = f1 + width;
      const float* f3 = f2 + width;
      float* d_m0 = at.d_m + slot * width;
      float* d_m1 = d_m0 + width;
      float* d_m2 = d_m1 + width;
      float* d_m3 = d_m2 + width;
      const float d0 = d_scores[slot], d1 = d_scores[slot + 1];
      const float d2 = d_scores[slot + 2], d3 = d_scores[slot + 3];
      EMPLACE_INDEPENDENT
      for (std::int64_t k = 0; k < width; ++k) {
        const float a0 = denominator(e[k], f0[k]);
        const float a1 = denominator(e[k], f1[k]);
        const float a2 = denominator(e[k], f2[k]);
        const float a3 = denominator(e[k], f3[k]);
        const float inverse01 = 1.0F / (a0 * a1);
        const float inverse23 = 1.0F / (a2 * a3);
        const float r0 = a1 * inverse01, r1 = a0 * inverse01;
        const float r2 = a3 * inverse23, r3 = a2 * inverse23;
        const float w0 = d0 * r0, w1 = d1 * r1, w2 = d2 * r2, w3 = d3 * r3;
        const float u0 = w0 - w0 * r0, u1 = w1 - w1 * r1;
        const float u2 = w2 - w2 * r2, u3 = w3 - w3 * r3;
        d_m0[k] += u0;
        d_m1[k] += u1;
        d_m2[k] += u2;
        d_m3[k] += u3;
        d_q[k] += (u0 + u1) + (u2 + u3);
        d_v[k] += (w0 + w1) + (w2 + w3);
      }
    }
    for (; slot < slots; ++slot) {
      const float* f = at.m_powers + slot * width;
      float* d_m = at.d_m + slot * width;
      EMPLACE_INDEPENDENT
      for (std::int64_t k = 0; k < width; ++k) {
        const float r = 1.0F / denominator(e[k], f[k]);
        const float w = d_scores[slot] * r;
        const float u = w - w * r;
        d_m[k] += u;
        d_q[k] += u;
        d_v[k] += w;
      }
    }
  }
}

// Gradients of scores v' tanh(q_i + m_j), whose own gradients sum to 0 in every row.
struct Gradients {
  torch::Tensor queries, memory, v;
};

Gradients gradients_by_loops(const torch::Tensor& d_scores, const torch::Tensor& queries,
                             const torch::Tensor& memory, const torch::Tensor& v) {
  const torch::Tensor q_powers = powers_of(queries).contiguous();
  const torch::Tensor m_powers = powers_of(memory).contiguous();
  const torch::Tensor d_q = torch::zeros(queries.sizes(), queries.options());
  const torch::Tensor d_m = torch::zeros(memory.sizes(), memory.options());
  const torch::Tensor d_v = torch::zeros(v.sizes(), v.options());
  add_gradients({.q_powers = q_powers.data_ptr<float>(),
                 .m_powers = m_powers.data_ptr<float>(),
                 .d_scores = d_scores.data_ptr<float>(),
                 .d_q = d_q.data_ptr<float>(),
                 .d_m = d_m.data_ptr<float>(),
                 .d_v = d_v.data_ptr<float>()},
                queries.size(0), memory.size(0), memory.size(1));
  return {.queries = d_q.mul_(4 * v), .memory = d_m.mul_(4 * v), .v = d_v.mul_(-2)};
}

class AttentionOperation : public torch::autograd::Function<AttentionOperation> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& queries, const torch::Tensor& memory,
                               const torch::Tensor& v) {
    const torch::Tensor weights = AttentionMemory(memory, v).weights(queries);
    context->save_for_backward({queries, memory, v, weights});
    return torch::mm(weights, memory);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const torch::Tensor &queries = saved[0], &memory = saved[1], &v = saved[2], &weights = saved[3];
    const torch::Tensor& d_contexts = gradients[0];
    const torch::Tensor weighted = weights * torch::mm(d_contexts, memory.t());
    const torch::Tensor d_scores = weighted - weights * weighted.sum(1, true);
    Gradients result = gradients_by_loops(d_scores, queries, memory, v);
    result.memory.addmm_(weights.t(), d_contexts);
    return {result.queries, result.memory, result.v};
  }
};

}  // namespace

torch::Tensor additive_attention(const torch::Tensor& queries, const torch::Tensor& memory,
                                 const torch::Tensor& v) {
  return queries.device().is_cpu() ? AttentionOperation::apply(queries, memory, v)
                                   : additive_attention_plainly(queries, memory, v);
}

torch::Tensor additive_attention_plainly(const torch::Tensor& queries, const torch::Tensor& memory,
                                         const torch::Tensor& v) {
  const auto formula = [](const std::vector<torch::Tensor>& in) -> std::vector<torch::Tensor> {
    const torch::Tensor scores = torch::matmul(torch::tanh(in[0].unsqueeze(1) + in[1]), in[2]);
    return {torch::mm(torch::softmax(scores, 1), in[1])};
  };
  // So many rows at once that their activations take 256 MB at most.
  const std::int64_t rows = std::max<std::int64_t>(
      1, (std::int64_t{1} << 26) / std::max<std::int64_t>(1, memory.numel()));
  std::vector<torch::Tensor> contexts;
  for (const torch::Tensor& some : queries.split(rows)) {
    contexts.push_back(recomputed({some, memory, v}, {}, formula)[0]);
  }
  return torch::cat(contexts);
}

AttentionMemory::AttentionMemory(const torch::Tensor& memory, const torch::Tensor& v)
    : memory_(memory) {
  EMPLACE_CHECK(memory.scalar_type() == torch::kFloat32 && memory.device().is_cpu());
  const std::int64_t missing = (kTogether - memory.size(1) % kTogether) % kTogether;
  powers_ = padded(powers_of(memory), missing).t().contiguous();
  v_ = padded(v, missing);
}

torch::Tensor AttentionMemory::weights(const torch::Tensor& queries) const {
  const std::int64_t width = powers_.size(0);
  const torch::Tensor powers = padded(powers_of(queries), width - queries.size(1));
  const torch::Tensor scores = torch::empty({queries.size(0), memory_.size(0)}, queries.options());
  add_scores(powers.data_ptr<float>(), powers_.data_ptr<float>(), v_.data_ptr<float>(),
             scores.data_ptr<float>(), scores.size(0), scores.size(1), width);
  return torch::softmax(scores, 1);
}

torch::Tensor AttentionMemory::contexts(const torch::Tensor& queries) const {
  return torch::mm(weights(queries), memory_);
}

}  // namespace emplace::learn

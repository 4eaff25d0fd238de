#include "learn/encoders/pair_scores.h"

#include "base/check.h"

#include "learn/encoders/vector_loops.h"

namespace emplace::learn {
namespace {

struct Sizes {
  std::int64_t rows, count, devices, width;
};

// Sums of so many at once: a compiler may not change the order of a single one.
constexpr std::int64_t kTogether = 16;

EMPLACE_ALWAYS_INLINE float score_of(const float* u, const float* q, const float* v,
                                     std::int64_t width) {
  float sums[kTogether] = {};
  std::int64_t k = 0;
  for (; k + kTogether <= width; k += kTogether) {
    for (std::int64_t i = 0; i < kTogether; ++i) {
      sums[i] += v[k + i] * larger(u[k + i] + q[k + i], 0);
    }
  }
  float sum = 0;
  for (; k < width; ++k) sum += v[k] * larger(u[k] + q[k], 0);
  for (const float part : sums) sum += part;
  return sum;
}

EMPLACE_FOR_EACH_PROCESSOR
void set_scores(const float* u, const float* q, const float* v, float* scores, const Sizes& sizes) {
  const auto& [rows, count, devices, width] = sizes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < count; ++c) {
      const float* of_unit = u + (row * count + c) * width;
      for (std::int64_t d = 0; d < devices; ++d) {
        *scores++ = score_of(of_unit, q + (row * devices + d) * width, v, width);
      }
    }
  }
}

template <class Float>
struct Parts {
  Float* u;
  Float* q;
  Float* v;
};

EMPLACE_ALWAYS_INLINE void add_gradient(float d_score, const Parts<const float>& from,
                                        const Parts<float>& into, std::int64_t width) {
  EMPLACE_INDEPENDENT
  for (std::int64_t k = 0; k < width; ++k) {
    const float hidden = larger(from.u[k] + from.q[k], 0);
    const float d_hidden = hidden > 0 ? d_score * from.v[k] : 0;
    into.u[k] += d_hidden;
    into.q[k] += d_hidden;
    into.v[k] += d_score * hidden;
  }
}

EMPLACE_FOR_EACH_PROCESSOR
void add_gradients(const float* d_scores, const Parts<const float>& from, const Parts<float>& into,
                   const Sizes& sizes) {
  const auto& [rows, count, devices, width] = sizes;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t unit = (row * count + c) * width;
      for (std::int64_t d = 0; d < devices; ++d) {
        const std::int64_t device = (row * devices + d) * width;
        add_gradient(*d_scores++, {from.u + unit, from.q + device, from.v},
                     {into.u + unit, into.q + device, into.v}, width);
      }
    }
  }
}

class PairOperation : public torch::autograd::Function<PairOperation> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& u,
                               const torch::Tensor& q, const torch::Tensor& v) {
    const Sizes sizes = sizes_of(u, q);
    torch::Tensor scores = torch::empty({sizes.rows, sizes.count, sizes.devices}, u.options());
    set_scores(u.data_ptr<float>(), q.data_ptr<float>(), v.data_ptr<float>(),
               scores.data_ptr<float>(), sizes);
    context->save_for_backward({u, q, v});
    return scores;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const torch::Tensor &u = saved[0], &q = saved[1], &v = saved[2];
    const torch::Tensor d_scores = gradients[0].contiguous();
    torch::Tensor d_u = torch::zeros_like(u);
    torch::Tensor d_q = torch::zeros_like(q);
    torch::Tensor d_v = torch::zeros_like(v);
    add_gradients(
        d_scores.data_ptr<float>(), {u.data_ptr<float>(), q.data_ptr<float>(), v.data_ptr<float>()},
        {d_u.data_ptr<float>(), d_q.data_ptr<float>(), d_v.data_ptr<float>()}, sizes_of(u, q));
    return {d_u, d_q, d_v};
  }

 private:
  static Sizes sizes_of(const torch::Tensor& u, const torch::Tensor& q) {
    return {.rows = u.size(0), .count = u.size(1), .devices = q.size(1), .width = u.size(2)};
  }
};

}  // namespace

torch::Tensor pair_scores(const torch::Tensor& u, const torch::Tensor& q, const torch::Tensor& v) {
  if (!u.device().is_cpu()) return pair_scores_plainly(u, q, v);
  EMPLACE_CHECK(u.scalar_type() == torch::kFloat32 && u.size(0) == q.size(0) &&
                u.size(2) == q.size(2) && v.size(0) == u.size(2));
  return PairOperation::apply(u.contiguous(), q.contiguous(), v.contiguous());
}

torch::Tensor pair_scores_plainly(const torch::Tensor& u, const torch::Tensor& q,
                                  const torch::Tensor& v) {
  return torch::matmul(torch::relu(u.unsqueeze(2) + q.unsqueeze(1)), v);
}

}  // namespace emplace::learn

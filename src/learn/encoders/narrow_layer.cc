#include "learn/encoders/narrow_layer.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace emplace::learn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr std::int64_t kVectorWidth = 8;
constexpr std::int64_t kMostVectors = 4;
constexpr std::int64_t kRowsOfBlock = 64;  // whose gradients stay in the nearest cache
// The alignment is spelled out since it would otherwise depend on what a function is compiled for.
using Vector =
    float __attribute__((vector_size(kVectorWidth * sizeof(float)), aligned(4), may_alias));

// Rows of inputs and outputs. For gradients of inputs the two change places.
struct Rows {
  std::int64_t count;
  std::int64_t in;
  std::int64_t out;
  const float* x;  // [count, in], `x_stride` numbers from row to row
  std::int64_t x_stride;
  float* y;  // [count, out]
  bool relu;
};

std::int64_t vectors_for(std::int64_t width) {
  return (width + kVectorWidth - 1) / kVectorWidth;
}

namespace anywhere {
#include "learn/encoders/narrow_loops.inc"
}  // namespace anywhere

// What nearly every machine has, though compilers may not count on it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EMPLACE_WITH_AVX2 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "learn/encoders/narrow_loops.inc"
}  // namespace avx2
#pragma GCC pop_options
#endif

#ifdef EMPLACE_WITH_AVX2
bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return found;
}
#endif

// Rows of whole vectors, filled up with zeros.
class Padded {
 public:
  Padded(std::int64_t rows, std::int64_t width)
      : width_(width),
        stride_(vectors_for(width) * kVectorWidth),
        values_(static_cast<std::size_t>(rows * stride_), 0) {}
  Padded(const float* values, std::int64_t rows, std::int64_t width) : Padded(rows, width) {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(values + row * width, width, values_.data() + row * stride_);
    }
  }

  const float* values() const { return values_.data(); }
  std::int64_t stride() const { return stride_; }
  Vector* vectors() { return reinterpret_cast<Vector*>(values_.data()); }
  void copy_to(float* values) const {
    for (std::size_t first = 0; first < values_.size();
         first += static_cast<std::size_t>(stride_)) {
      values = std::copy_n(values_.data() + first, width_, values);
    }
  }

 private:
  std::int64_t width_;
  std::int64_t stride_;
  std::vector<float> values_;
};

void forward(const Rows& rows, Padded& weights, Padded& bias) {
#ifdef EMPLACE_WITH_AVX2
  if (has_avx2()) return avx2::forward(rows, weights.vectors(), bias.vectors());
#endif
  anywhere::forward(rows, weights.vectors(), bias.vectors());
}

void backward(const Rows& rows, const float* of_y, Padded& slopes, Padded& of_weights,
              Padded& of_bias) {
#ifdef EMPLACE_WITH_AVX2
  if (has_avx2())
    return avx2::backward(rows, of_y, slopes.vectors(), of_weights.vectors(), of_bias.vectors());
#endif
  anywhere::backward(rows, of_y, slopes.vectors(), of_weights.vectors(), of_bias.vectors());
}

struct NarrowLayer : Function<NarrowLayer> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows,
                               const torch::Tensor& weight, const torch::Tensor& bias, bool relu) {
    const torch::Tensor x = rows.contiguous();
    const std::int64_t in = weight.size(0);
    const std::int64_t out = weight.size(1);
    torch::Tensor y = torch::empty({x.size(0), out}, x.options());
    Padded weights(weight.data_ptr<float>(), in, out);
    Padded biases(bias.data_ptr<float>(), 1, out);
    learn::forward({x.size(0), in, out, x.data_ptr<float>(), in, y.data_ptr<float>(), relu},
                   weights, biases);
    context->save_for_backward({x, weight, y});
    context->saved_data["relu"] = relu;
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor& y = saved[2];
    const std::int64_t in = x.size(1);
    const std::int64_t out = y.size(1);
    const bool relu = context->saved_data["relu"].toBool();
    const torch::Tensor of_y = gradients[0].contiguous();
    const torch::Tensor turned = saved[1].t().contiguous();
    torch::Tensor of_x = torch::empty_like(x);
    torch::Tensor of_weight = torch::empty({in, out}, x.options());
    torch::Tensor of_bias = torch::empty({out}, x.options());
    Padded weights(turned.data_ptr<float>(), out, in);
    Padded none(1, in);
    Padded slopes(kRowsOfBlock, out);
    Padded of_weights(in, out);
    Padded of_biases(1, out);
    for (std::int64_t row = 0; row < x.size(0); row += kRowsOfBlock) {
      const std::int64_t count = std::min(kRowsOfBlock, x.size(0) - row);
      learn::backward({count, in, out, x.data_ptr<float>() + row * in, in,
                       y.data_ptr<float>() + row * out, relu},
                      of_y.data_ptr<float>() + row * out, slopes, of_weights, of_biases);
      learn::forward({count, out, in, slopes.values(), slopes.stride(),
                      of_x.data_ptr<float>() + row * in, false},
                     weights, none);
    }
    of_weights.copy_to(of_weight.data_ptr<float>());
    of_biases.copy_to(of_bias.data_ptr<float>());
    return {of_x, of_weight, of_bias, {}};
  }
};

}  // namespace

torch::Tensor narrow_layer(const Linear& layer, const torch::Tensor& rows, bool relu) {
  const bool by_loops =
      rows.device().is_cpu() && rows.scalar_type() == torch::kFloat32 &&
      std::max(layer.weight.size(0), layer.weight.size(1)) <= kMostVectors * kVectorWidth;
  if (by_loops) return NarrowLayer::apply(rows, layer.weight, layer.bias, relu);
  const torch::Tensor y = torch::addmm(layer.bias, rows, layer.weight);
  return relu ? torch::relu(y) : y;
}

}  // namespace emplace::learn

// A long short-term memory (Hochreiter, Schmidhuber 1997) over whole sequences, as HDP's public
// code has it: gates i, f, o, g from one product, no biases but one trainable scalar on the forget
// gate.
#pragma once

#include <cstdint>
#include <string>

#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

struct LstmWeights {
  torch::Tensor recurrent;    // [width, 4 width]
  torch::Tensor forget_bias;  // [1]
};

// h and c are [batch, width].
struct LstmState {
  torch::Tensor h, c;
};

struct LstmOutput {
  torch::Tensor states;  // [steps, batch, width]: h after each step
  LstmState last;
};

// `gates` is [steps, batch, 4 width]: what the inputs add to the gates. One operation for automatic
// differentiation on the CPU, where the single steps would cost more than their arithmetic;
// elsewhere as below.
LstmOutput run_lstm(const LstmWeights& weights, const torch::Tensor& gates, const LstmState& begin);
// The same in libtorch's own operations.
LstmOutput run_lstm_plainly(const LstmWeights& weights, const torch::Tensor& gates,
                            const LstmState& begin);

// One step on the CPU without gradients: `gates` [batch, 4 width], to which the recurrent part has
// been added, become the activated gates; c and h are set.
void activate_lstm_step(float* gates, float forget_bias, const float* c_before, float* c, float* h,
                        std::int64_t batch, std::int64_t width);

class Lstm {
 public:
  Lstm() = default;
  Lstm(Parameters& parameters, const std::string& name, std::int64_t input_width,
       std::int64_t width, Rng& rng);

  std::int64_t width() const { return weights_.recurrent.size(0); }
  const LstmWeights& weights() const { return weights_; }

  // What inputs [..., some width] add to the gates [..., 4 width], where they are the part of the
  // input that begins at column `first`. Parts add up.
  torch::Tensor project(const torch::Tensor& inputs, std::int64_t first = 0) const;
  // From the projected inputs [steps, batch, 4 width]; an undefined state is zeros.
  LstmOutput run(const torch::Tensor& projected, const LstmState& begin = {}) const;

 private:
  torch::Tensor input_;  // [input width, 4 width]
  LstmWeights weights_;
};

}  // namespace emplace::learn

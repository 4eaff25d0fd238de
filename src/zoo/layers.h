// Layers with their parameters, as the published models use them. Each opens a scope of the given
// name, so that its ops and parameters are "name.weight", "name.Conv", ...
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "zoo/net.h"
#include "zoo/operators.h"

namespace emplace::zoo {

// On the last dimension, whatever is before it: one Gemm.
Value linear(Net& net, std::string_view name, const Value& x, std::int64_t out, bool bias = true);

// The same with weights [out, in] that there are already, as where they are shared.
Value project(Net& net, const Value& x, const Value& weight,
              const std::optional<Value>& bias = std::nullopt);

Value conv_layer(Net& net, std::string_view name, const Value& x, std::int64_t out,
                 const ConvShape& shape, bool bias = false);
// 2k + 1 wide, padded so that a stride of one keeps the size.
ConvShape same(std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1);

// Of [n, channels, ...]: groups of channels, each normalised by itself.
Value group_norm(Net& net, std::string_view name, const Value& x, std::int64_t groups,
                 double epsilon = 1e-5);
Value batch_norm(Net& net, std::string_view name, const Value& x, double epsilon = 1e-5);
// Over the last dimension.
Value layer_norm(Net& net, std::string_view name, const Value& x, double epsilon = 1e-5);
Value rms_norm(Net& net, std::string_view name, const Value& x, double epsilon = 1e-6);

// The usual start and middle of convolutional networks.
Value conv_bn_relu(Net& net, std::string_view name, const Value& x, std::int64_t out,
                   const ConvShape& shape);

Value embedding(Net& net, std::string_view name, const Value& ids, std::int64_t rows,
                std::int64_t width);

// The value itself where the net is not for training or the probability is zero.
Value dropout(Net& net, const Value& x, double probability);

// Long short-term memory, one time step in single ops: input, forget, cell and output gates with
// a bias each from the input and from the state (Hochreiter and Schmidhuber 1997, as cuDNN has it).
struct LstmWeights {
  Value input;   // [4 hidden, in]
  Value hidden;  // [4 hidden, hidden]
  Value input_bias;
  Value hidden_bias;
};
struct LstmState {
  Value hidden;  // [n, hidden]
  Value cell;
};
LstmWeights lstm_weights(Net& net, std::string_view name, std::int64_t in, std::int64_t hidden);
LstmState lstm_step(Net& net, const Value& x, const LstmState& state, const LstmWeights& weights);

// A change of element type; the value itself where it has that type.
Value cast(Net& net, const Value& x, DType dtype);

// The mean cross entropy of logits [..., classes] against integer labels [...].
Value classification_loss(Net& net, const Value& logits, const Value& labels);

}  // namespace emplace::zoo

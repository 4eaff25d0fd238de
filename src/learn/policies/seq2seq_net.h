// A sequence of inputs to a sequence of devices: LSTM encoder, LSTM decoder with additive attention
// (Bahdanau et al. 2015) over the encoder's states, the previous device fed back. As HDP's public
// code has it, which is by ColocRL's authors: no biases but one trainable scalar forget bias per
// LSTM; memory M = H W1 is both key and value; score v' tanh(h W2 + M_j); logits [h; context] W,
// shaped as C tanh(logits / T).
#pragma once

#include <cstdint>
#include <string>

#include "learn/encoders/lstm.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/policies/device_head.h"

namespace emplace::learn {

struct Seq2SeqSettings {
  std::int64_t width = 64;           // of the encoder's output and of the decoder
  bool bidirectional = false;        // half of the width in each direction
  bool decoder_sees_memory = false;  // the decoder's input is [M_i; previous device] (Mars)
  bool decoder_sees_inputs = false;  // or [input i; previous device]
  double tanh_constant = 0;          // C; 0: logits as they are
  double temperature = 1;            // T
  // Scores h' W2 M_j / sqrt(width) instead (Luong et al. 2015): products alone, so that many short
  // memories cost little (Mars).
  bool product_attention = false;
  // Where positive, a trainable matrix leads from the previous device straight to the logits; at
  // first it adds this to the logit of the same device, so that neighbours begin together.
  double repeat = 0;
};

// What a segment hands to the next (Mars). Undefined tensors: an encoder begins with zeros, a
// decoder with the encoder's last state. Gradients go through it: detach it to cut them.
struct Seq2SeqState {
  torch::Tensor encoder_h, encoder_c;  // [1, width of one direction], of the forward direction
  torch::Tensor decoder_h, decoder_c;  // [count, width]
  torch::Tensor previous;              // int64 [count], the last devices; undefined: "go"
};

// How many samples Seq2Seq::sample draws with these.
std::int64_t num_samples(const torch::Tensor& mask, const torch::Tensor& uniform);

class Seq2Seq {
 public:
  Seq2Seq() = default;
  Seq2Seq(Parameters& parameters, const std::string& name, std::int64_t input_width,
          std::int64_t devices, const Seq2SeqSettings& settings, Rng& rng);
  // The same for devices that are known only when it is used: by way of `with`.
  Seq2Seq(Parameters& parameters, const std::string& name, std::int64_t input_width,
          const Seq2SeqSettings& settings, Rng& rng);
  // The same parameters with another head.
  Seq2Seq with(DeviceHeadPtr head) const;

  // inputs [steps, input_width], the same for all samples; mask [steps, devices], or [count,
  // steps, devices]; uniform [count, steps], or undefined: each decision is the likeliest after
  // those before, one sample or as many as there are masks; noise undefined or [count, steps,
  // devices]: each step's is multiplied by the root mean square of its shaped logits and added to
  // them. Gives actions [count, steps] and log_probs of whole distributions [count, steps,
  // devices]. `carried` is read and then set, where it is given. No gradients.
  struct Decoded {
    torch::Tensor actions;
    torch::Tensor distributions;
  };
  Decoded sample(const torch::Tensor& inputs, const torch::Tensor& mask,
                 const torch::Tensor& uniform, const torch::Tensor& noise = {},
                 Seq2SeqState* carried = nullptr) const;
  // The same in libtorch's own operations on every device.
  Decoded sample_plainly(const torch::Tensor& inputs, const torch::Tensor& mask,
                         const torch::Tensor& uniform, const torch::Tensor& noise = {},
                         Seq2SeqState* carried = nullptr) const;
  // The log-distributions [count, steps, devices] along the given actions, with gradients.
  torch::Tensor score(const torch::Tensor& inputs, const torch::Tensor& mask,
                      const torch::Tensor& actions, const torch::Tensor& noise = {},
                      Seq2SeqState* carried = nullptr) const;

 private:
  struct Encoded {
    torch::Tensor memory;  // [steps, width]
    torch::Tensor h, c;    // [count, width]: where the decoder begins
    // What the decoder's gates get from the previous device, "go" first [1 + devices, 4 width], and
    // from what else the decoder sees [steps, 4 width] or undefined.
    torch::Tensor device_gates, step_gates;
  };
  Encoded encode(const torch::Tensor& inputs, std::int64_t count, Seq2SeqState* carried) const;
  using Decode = Decoded (Seq2Seq::*)(const Encoded& encoded, const torch::Tensor& mask,
                                      const torch::Tensor& uniform, const torch::Tensor& noise,
                                      Seq2SeqState& state) const;
  Decoded sample_by(Decode decode, const torch::Tensor& inputs, const torch::Tensor& mask,
                    const torch::Tensor& uniform, const torch::Tensor& noise,
                    Seq2SeqState* carried) const;
  Decoded decode_plainly(const Encoded& encoded, const torch::Tensor& mask,
                         const torch::Tensor& uniform, const torch::Tensor& noise,
                         Seq2SeqState& state) const;
  // On the CPU: the same with less between the products. 2.3 times as fast at 200 steps, 20 samples
  // and width 64 (bench/policies).
  Decoded decode_by_loops(const Encoded& encoded, const torch::Tensor& mask,
                          const torch::Tensor& uniform, const torch::Tensor& noise,
                          Seq2SeqState& state) const;
  // Contexts [rows, width] for decoder states likewise.
  torch::Tensor attend(const torch::Tensor& states, const torch::Tensor& memory) const;
  // Of steps from `first` on, from decoder states [steps * count, width], contexts likewise and the
  // previous devices' rows of the embeddings [steps * count]; not yet with noise, mask or softmax.
  torch::Tensor shaped_logits(const torch::Tensor& states, const torch::Tensor& contexts,
                              const torch::Tensor& previous, std::int64_t first,
                              std::int64_t steps) const;
  // The log-distributions; `noise` may be undefined.
  static torch::Tensor distributions(const torch::Tensor& logits, const torch::Tensor& mask,
                                     const torch::Tensor& noise);

  Seq2SeqSettings settings_;
  Lstm forward_, backward_, decoder_;
  torch::Tensor memory_weight_;  // W1 [width, width]
  torch::Tensor query_weight_;   // W2 [width, width]
  torch::Tensor score_weight_;   // v [width], of additive attention
  DeviceHeadPtr head_;
};

}  // namespace emplace::learn

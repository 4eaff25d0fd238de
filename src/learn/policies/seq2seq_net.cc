// Encodes a sequence, then decides about its elements in turn, each given those before it.
//
// Sampling goes step by step, since an input of a step is the decision before it. Scoring knows all
// decisions: the decoder runs over the whole sequence at once, and attention and logits are
// products over all steps and samples. Invariant: both give the same distributions to rounding,
// since both use the same encoder, the same gates and shaped_logits; policies' tests compare them.
// What the inputs and the devices add to the decoder's gates is computed once, not at every step.
//
// For N steps, S samples and width W: O(S N W^2) for the LSTMs and O(S N^2 W) for attention.
#include "learn/policies/seq2seq_net.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

#include "learn/encoders/additive_attention.h"
#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

// Row 0 of the device embeddings is "go".
torch::Tensor rows_of(const torch::Tensor& previous_devices) {
  return previous_devices + 1;
}

torch::Tensor first_rows(const Seq2SeqState* carried, std::int64_t count, torch::Device device) {
  if (carried != nullptr && carried->previous.defined()) return rows_of(carried->previous);
  return torch::zeros({count}, torch::TensorOptions(torch::kInt64).device(device));
}

// What is sampled step by step, on the CPU.
class StepChoices {
 public:
  StepChoices(std::int64_t count, const torch::Tensor& mask, const torch::Tensor& uniform,
              const torch::Tensor& noise)
      : mask_(mask.contiguous()),
        uniform_(uniform.defined() ? uniform.contiguous() : uniform),
        noise_(noise.defined() ? noise.contiguous() : noise),
        actions_(torch::empty({count, mask.size(-2)}, torch::kInt64)),
        distributions_(torch::empty({count, mask.size(-2), mask.size(-1)}, torch::kFloat32)) {}

  // From shaped logits [count, devices]; `rows` becomes the chosen devices' rows of embeddings.
  void choose(std::int64_t step, const torch::Tensor& logits, const torch::Tensor& rows) {
    const std::int64_t count = actions_.size(0);
    const std::int64_t steps = actions_.size(1);
    const std::int64_t devices = mask_.size(-1);
    const bool own_masks = mask_.dim() == 3;
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t at = row * steps + step;
      const float* mask = mask_.data_ptr<float>() + (own_masks ? at : step) * devices;
      const float* given = logits.data_ptr<float>() + row * devices;
      float* log_probs = distributions_.data_ptr<float>() + at * devices;
      for (std::int64_t d = 0; d < devices; ++d) log_probs[d] = given[d] + mask[d];
      if (noise_.defined()) {
        const float* noise = noise_.data_ptr<float>() + at * devices;
        const float scale = root_mean_square(given, devices);
        for (std::int64_t d = 0; d < devices; ++d) log_probs[d] += scale * noise[d];
      }
      normalize(log_probs, devices);
      const std::int64_t chosen =
          uniform_.defined() ? draw_one(log_probs, devices, uniform_.data_ptr<float>()[at])
                             : std::max_element(log_probs, log_probs + devices) - log_probs;
      actions_.data_ptr<std::int64_t>()[at] = chosen;
      rows.data_ptr<std::int64_t>()[row] = chosen + 1;
    }
  }

  Seq2Seq::Decoded result() const { return {.actions = actions_, .distributions = distributions_}; }

 private:
  static float root_mean_square(const float* values, std::int64_t count) {
    float squares = 0;
    for (std::int64_t i = 0; i < count; ++i) squares += values[i] * values[i];
    return std::sqrt(squares / static_cast<float>(count));
  }

  static void normalize(float* logits, std::int64_t count) {
    const float largest = *std::max_element(logits, logits + count);
    float sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - largest);
    const float shift = largest + std::log(sum);
    for (std::int64_t i = 0; i < count; ++i) logits[i] -= shift;
  }

  // As `draw` does it: the first class whose cumulative probability is beyond `uniform`.
  static std::int64_t draw_one(const float* log_probs, std::int64_t count, float uniform) {
    std::int64_t last = 0;  // of those that can occur
    float cumulative = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const float probability = std::exp(log_probs[i]);
      if (probability <= 0) continue;
      last = i;
      cumulative += probability;
      if (cumulative > uniform) break;
    }
    return last;
  }

  torch::Tensor mask_, uniform_, noise_;
  torch::Tensor actions_, distributions_;
};

}  // namespace

std::int64_t num_samples(const torch::Tensor& mask, const torch::Tensor& uniform) {
  if (uniform.defined()) return uniform.size(0);
  return mask.dim() == 3 ? mask.size(0) : 1;
}

Seq2Seq::Seq2Seq(Parameters& parameters, const std::string& name, std::int64_t input_width,
                 const Seq2SeqSettings& settings, Rng& rng)
    : settings_(settings) {
  const std::int64_t width = settings.width;
  EMPLACE_CHECK(!settings.bidirectional || width % 2 == 0);
  const std::int64_t one_direction = settings.bidirectional ? width / 2 : width;
  forward_ = Lstm(parameters, name + ".forward", input_width, one_direction, rng);
  if (settings.bidirectional) {
    backward_ = Lstm(parameters, name + ".backward", input_width, one_direction, rng);
  }
  EMPLACE_CHECK(!settings.decoder_sees_memory || !settings.decoder_sees_inputs);
  const std::int64_t seen = settings.decoder_sees_memory   ? width
                            : settings.decoder_sees_inputs ? input_width
                                                           : 0;
  decoder_ = Lstm(parameters, name + ".decoder", width + seen, width, rng);
  memory_weight_ = parameters.glorot(name + ".memory", width, width, rng);
  query_weight_ = parameters.glorot(name + ".query", width, width, rng);
  if (!settings.product_attention) {
    score_weight_ = parameters.glorot(name + ".score", width, 1, rng);
  }
}

Seq2Seq::Seq2Seq(Parameters& parameters, const std::string& name, std::int64_t input_width,
                 std::int64_t devices, const Seq2SeqSettings& settings, Rng& rng)
    : Seq2Seq(parameters, name, input_width, settings, rng) {
  head_ = fixed_devices(parameters, name, settings.width, devices, settings.repeat, rng);
}

Seq2Seq Seq2Seq::with(DeviceHeadPtr head) const {
  Seq2Seq result = *this;
  result.head_ = std::move(head);
  return result;
}

Seq2Seq::Encoded Seq2Seq::encode(const torch::Tensor& inputs, std::int64_t count,
                                 Seq2SeqState* carried) const {
  const torch::Tensor sequence = inputs.unsqueeze(1);  // a batch of one
  const Seq2SeqState begin = carried != nullptr ? *carried : Seq2SeqState{};
  const LstmOutput ahead =
      forward_.run(forward_.project(sequence), {.h = begin.encoder_h, .c = begin.encoder_c});
  torch::Tensor states = ahead.states;
  torch::Tensor h = ahead.last.h;
  torch::Tensor c = ahead.last.c;
  if (settings_.bidirectional) {
    // The backward states are turned round again, so that row i is of unit i in both halves (HDP's
    // public code leaves them reversed).
    const LstmOutput behind = backward_.run(backward_.project(sequence.flip(0)));
    states = torch::cat({states, behind.states.flip(0)}, -1);
    h = torch::cat({h, behind.last.h}, -1);
    c = torch::cat({c, behind.last.c}, -1);
  }
  Encoded result;
  result.memory = torch::matmul(states.squeeze(1), memory_weight_);
  result.h = begin.decoder_h.defined() ? begin.decoder_h : h.expand({count, -1}).contiguous();
  result.c = begin.decoder_c.defined() ? begin.decoder_c : c.expand({count, -1}).contiguous();
  result.device_gates = decoder_.project(head_->embeddings());
  if (settings_.decoder_sees_memory) {
    result.step_gates = decoder_.project(result.memory, settings_.width);
  }
  if (settings_.decoder_sees_inputs) {
    result.step_gates = decoder_.project(inputs, settings_.width);
  }
  if (carried != nullptr) {
    carried->encoder_h = ahead.last.h;
    carried->encoder_c = ahead.last.c;
  }
  return result;
}

torch::Tensor Seq2Seq::attend(const torch::Tensor& states, const torch::Tensor& memory) const {
  const torch::Tensor queries = torch::matmul(states, query_weight_);
  if (!settings_.product_attention) {
    return additive_attention(queries, memory, score_weight_.squeeze(1));
  }
  const double scale = 1 / std::sqrt(static_cast<double>(settings_.width));
  return torch::mm(torch::softmax(torch::mm(queries * scale, memory.t()), 1), memory);
}

torch::Tensor Seq2Seq::shaped_logits(const torch::Tensor& states, const torch::Tensor& contexts,
                                     const torch::Tensor& previous, std::int64_t first,
                                     std::int64_t steps) const {
  torch::Tensor logits = head_->logits(states, contexts, first, steps);
  if (settings_.temperature != 1) logits = logits / settings_.temperature;
  if (settings_.tanh_constant > 0) logits = settings_.tanh_constant * torch::tanh(logits);
  const torch::Tensor transitions = head_->transitions();
  if (transitions.defined()) logits = logits + transitions.index_select(0, previous);
  return logits;
}

torch::Tensor Seq2Seq::distributions(const torch::Tensor& logits, const torch::Tensor& mask,
                                     const torch::Tensor& noise) {
  if (!noise.defined()) return torch::log_softmax(logits + mask, -1);
  const torch::Tensor scale = logits.detach().square().mean(-1, /*keepdim=*/true).sqrt();
  return torch::log_softmax(logits + scale * noise + mask, -1);
}

Seq2Seq::Decoded Seq2Seq::sample(const torch::Tensor& inputs, const torch::Tensor& mask,
                                 const torch::Tensor& uniform, const torch::Tensor& noise,
                                 Seq2SeqState* carried) const {
  return sample_by(inputs.device().is_cpu() ? &Seq2Seq::decode_by_loops : &Seq2Seq::decode_plainly,
                   inputs, mask, uniform, noise, carried);
}

Seq2Seq::Decoded Seq2Seq::sample_plainly(const torch::Tensor& inputs, const torch::Tensor& mask,
                                         const torch::Tensor& uniform, const torch::Tensor& noise,
                                         Seq2SeqState* carried) const {
  return sample_by(&Seq2Seq::decode_plainly, inputs, mask, uniform, noise, carried);
}

Seq2Seq::Decoded Seq2Seq::sample_by(Decode decode, const torch::Tensor& inputs,
                                    const torch::Tensor& mask, const torch::Tensor& uniform,
                                    const torch::Tensor& noise, Seq2SeqState* carried) const {
  const torch::NoGradGuard no_gradients;
  const Encoded encoded = encode(inputs, num_samples(mask, uniform), carried);
  Seq2SeqState state;
  if (carried != nullptr) state = *carried;
  state.decoder_h = encoded.h;
  state.decoder_c = encoded.c;
  Decoded result = (this->*decode)(encoded, mask, uniform, noise, state);
  if (carried != nullptr) *carried = state;
  return result;
}

Seq2Seq::Decoded Seq2Seq::decode_plainly(const Encoded& encoded, const torch::Tensor& mask,
                                         const torch::Tensor& uniform, const torch::Tensor& noise,
                                         Seq2SeqState& state) const {
  torch::Tensor rows = first_rows(&state, encoded.h.size(0), mask.device());
  std::vector<torch::Tensor> actions;
  std::vector<torch::Tensor> log_probs;
  for (std::int64_t step = 0; step < mask.size(-2); ++step) {
    check_time();
    torch::Tensor gates = encoded.device_gates.index_select(0, rows);
    if (encoded.step_gates.defined()) gates = gates + encoded.step_gates[step];
    const LstmState next =
        decoder_.run(gates.unsqueeze(0), {.h = state.decoder_h, .c = state.decoder_c}).last;
    state.decoder_h = next.h;
    state.decoder_c = next.c;
    const torch::Tensor contexts = attend(next.h, encoded.memory);
    const torch::Tensor step_noise = noise.defined() ? noise.select(1, step) : noise;
    log_probs.push_back(distributions(shaped_logits(next.h, contexts, rows, step, 1),
                                      mask.select(-2, step), step_noise));
    actions.push_back(uniform.defined() ? draw(log_probs.back(), uniform.select(1, step))
                                        : log_probs.back().argmax(-1));
    rows = rows_of(actions.back());
  }
  state.previous = actions.back();
  return {.actions = torch::stack(actions, 1), .distributions = torch::stack(log_probs, 1)};
}

Seq2Seq::Decoded Seq2Seq::decode_by_loops(const Encoded& encoded, const torch::Tensor& mask,
                                          const torch::Tensor& uniform, const torch::Tensor& noise,
                                          Seq2SeqState& state) const {
  const std::int64_t count = encoded.h.size(0);
  const std::int64_t steps = mask.size(-2);
  std::optional<AttentionMemory> memory;
  if (!settings_.product_attention) memory.emplace(encoded.memory, score_weight_.squeeze(1));
  const float forget_bias = decoder_.weights().forget_bias.item<float>();
  const torch::Tensor h = encoded.h.clone();
  const torch::Tensor c = encoded.c.clone();
  torch::Tensor rows = first_rows(&state, count, mask.device());
  StepChoices choices(count, mask, uniform, noise);
  torch::Tensor gates = torch::empty({count, 4 * settings_.width}, h.options());
  for (std::int64_t step = 0; step < steps; ++step) {
    check_time();
    torch::index_select_out(gates, encoded.device_gates, 0, rows);
    if (encoded.step_gates.defined()) gates.add_(encoded.step_gates[step]);
    gates.addmm_(h, decoder_.weights().recurrent);
    activate_lstm_step(gates.data_ptr<float>(), forget_bias, c.data_ptr<float>(),
                       c.data_ptr<float>(), h.data_ptr<float>(), count, settings_.width);
    const torch::Tensor contexts =
        memory ? memory->contexts(torch::mm(h, query_weight_)) : attend(h, encoded.memory);
    choices.choose(step, shaped_logits(h, contexts, rows, step, 1), rows);
  }
  state.decoder_h = h;
  state.decoder_c = c;
  state.previous = rows - 1;
  return choices.result();
}

torch::Tensor Seq2Seq::score(const torch::Tensor& inputs, const torch::Tensor& mask,
                             const torch::Tensor& actions, const torch::Tensor& noise,
                             Seq2SeqState* carried) const {
  const std::int64_t count = actions.size(0);
  const std::int64_t steps = inputs.size(0);
  const Encoded encoded = encode(inputs, count, carried);
  const torch::Tensor first = first_rows(carried, count, inputs.device()).unsqueeze(1);
  const torch::Tensor rows = torch::cat({first, rows_of(actions.narrow(1, 0, steps - 1))}, 1);
  const torch::Tensor by_step = rows.t().contiguous();
  torch::Tensor gates = torch::embedding(encoded.device_gates, by_step);
  if (encoded.step_gates.defined()) gates = gates + encoded.step_gates.unsqueeze(1);
  const LstmOutput decoded = decoder_.run(gates, {.h = encoded.h, .c = encoded.c});

  const torch::Tensor states = decoded.states.reshape({steps * count, settings_.width});
  const torch::Tensor contexts = attend(states, encoded.memory);
  const torch::Tensor logits = shaped_logits(states, contexts, by_step.reshape({-1}), 0, steps)
                                   .reshape({steps, count, -1})
                                   .transpose(0, 1);
  if (carried != nullptr) {
    carried->decoder_h = decoded.last.h;
    carried->decoder_c = decoded.last.c;
    carried->previous = actions.select(1, steps - 1);
  }
  return distributions(logits, mask, noise);
}

}  // namespace emplace::learn

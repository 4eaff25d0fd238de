// LSTM, GRU and RNN, step by step, as ONNX defines them, with those activations that take no
// numbers.
#include <algorithm>

#include "base/error.h"

#include "exec/derive.h"
#include "exec/kernel.h"

namespace emplace::exec {
namespace {

// Not every op says which optional inputs it has: their shapes and types tell.
struct Layer {
  Tensor x;  // [steps, batch, in]
  Tensor w;  // [directions, gates x hidden, in]
  Tensor r;  // [directions, gates x hidden, hidden]
  Tensor bias = {};
  Tensor lengths = {};
  Tensor hidden = {};  // [directions, batch, hidden]
  Tensor cell = {};
  Tensor peepholes = {};  // [directions, 3 x hidden]

  std::int64_t directions() const { return r.size(0); }
  std::int64_t size() const { return r.size(2); }
};

struct State {
  Tensor hidden;
  Tensor cell;
};

// Weights of one direction.
struct Weights {
  Tensor w, r;
  Tensor input_bias = {};
  Tensor state_bias = {};
  Tensor peepholes = {};
};

Tensor swapped(const Tensor& x, bool batch_first) {
  return batch_first ? x.transpose(0, 1) : x;
}

Layer layer_of(const Call& call, std::int64_t gates) {
  const bool batch_first = call.integer("layout", 0) != 0;
  Layer layer{.x = swapped(call.in(0), batch_first), .w = call.in(1), .r = call.in(2)};
  const bool fits = layer.x.dim() == 3 && layer.w.dim() == 3 && layer.r.dim() == 3 &&
                    layer.size() > 0 && layer.r.size(1) == gates * layer.size() &&
                    layer.w.size(1) == layer.r.size(1);
  if (!fits) fail_input("expected X, W and R of 3 dimensions, with {} gates", gates);
  const Integers omitted = call.integers("omitted_inputs");
  constexpr std::int64_t kHidden = 5;
  const bool no_hidden = std::find(omitted.begin(), omitted.end(), kHidden) != omitted.end();
  for (std::size_t i = 3; i < call.inputs.size(); ++i) {
    const Tensor& input = call.in(i);
    if (!input.is_floating_point()) {
      layer.lengths = input;
    } else if (input.dim() == 2) {
      if (input.size(1) != 2 * layer.r.size(1) && input.size(1) != 3 * layer.size()) {
        fail_input("has a bias of {} numbers in each direction", input.size(1));
      }
      (input.size(1) == 2 * layer.r.size(1) ? layer.bias : layer.peepholes) = input;
    } else {
      const bool cell = no_hidden || layer.hidden.defined();
      (cell ? layer.cell : layer.hidden) = swapped(input, batch_first);
    }
  }
  return layer;
}

Weights weights_of(const Layer& layer, std::int64_t direction) {
  Weights weights{.w = layer.w[direction].t(), .r = layer.r[direction].t()};
  const Tensor bias = layer.bias.defined() ? layer.bias[direction]
                                           : torch::zeros({2 * layer.r.size(1)}, layer.x.options());
  weights.input_bias = bias.narrow(0, 0, layer.r.size(1));
  weights.state_bias = bias.narrow(0, layer.r.size(1), layer.r.size(1));
  weights.peepholes = layer.peepholes.defined()
                          ? layer.peepholes[direction]
                          : torch::zeros({3 * layer.size()}, layer.x.options());
  return weights;
}

using Activation = Tensor (*)(const Tensor&);

Activation activation_of(std::string_view name) {
  if (name == "Sigmoid") return [](const Tensor& x) { return x.sigmoid(); };
  if (name == "Tanh") return [](const Tensor& x) { return x.tanh(); };
  if (name == "Relu") return [](const Tensor& x) { return x.relu(); };
  if (name == "Softsign") return [](const Tensor& x) { return x / (1 + x.abs()); };
  if (name == "Softplus") return [](const Tensor& x) { return at::softplus(x); };
  fail(ErrorKind::kUnsupported, "attributes: there is no kernel for activation '{}'", name);
}

// What a step does beside its sums: the activations f, g and h of one direction, of numbers that
// are clipped before.
struct CellRule {
  const Call& call;
  std::vector<Activation> functions;
  double limit = 0;  // 0: none

  Tensor apply(std::size_t which, const Tensor& x) const {
    return functions[which](limit > 0 ? x.clamp(-limit, limit) : x);
  }
  Tensor f(const Tensor& x) const { return apply(0, x); }
  Tensor g(const Tensor& x) const { return apply(1, x); }
  Tensor h(const Tensor& x) const { return apply(2, x); }
};

using Step = State (*)(const CellRule&, const Tensor& x, const State&, const Weights&);

// Gates in the order input, output, forget, candidate.
State lstm_step(const CellRule& rule, const Tensor& x, const State& state, const Weights& weights) {
  const Tensor gates = x.matmul(weights.w) + weights.input_bias + state.hidden.matmul(weights.r) +
                       weights.state_bias;
  const Tensors parts = gates.chunk(4, 1);
  const Tensors peepholes = weights.peepholes.chunk(3, 0);
  const Tensor in = rule.f(parts[0] + peepholes[0] * state.cell);
  const bool coupled = rule.call.integer("input_forget", 0) != 0;
  const Tensor forget = coupled ? 1 - in : rule.f(parts[2] + peepholes[2] * state.cell);
  const Tensor cell = forget * state.cell + in * rule.g(parts[3]);
  const Tensor out = rule.f(parts[1] + peepholes[1] * cell);
  return {out * rule.h(cell), cell};
}

// Gates in the order update, reset, candidate.
State gru_step(const CellRule& rule, const Tensor& x, const State& state, const Weights& weights) {
  const Tensors from_input = (x.matmul(weights.w) + weights.input_bias).chunk(3, 1);
  const Tensors state_weights = weights.r.chunk(3, 1);
  const Tensors bias = weights.state_bias.chunk(3, 0);
  const auto from_state = [&](const Tensor& hidden, std::size_t gate) {
    return hidden.matmul(state_weights[gate]) + bias[gate];
  };
  const Tensor update = rule.f(from_input[0] + from_state(state.hidden, 0));
  const Tensor reset = rule.f(from_input[1] + from_state(state.hidden, 1));
  const Tensor remembered = rule.call.integer("linear_before_reset", 0) != 0
                                ? reset * from_state(state.hidden, 2)
                                : from_state(reset * state.hidden, 2);
  const Tensor candidate = rule.g(from_input[2] + remembered);
  return {(1 - update) * candidate + update * state.hidden, state.cell};
}

State rnn_step(const CellRule& rule, const Tensor& x, const State& state, const Weights& weights) {
  const Tensor sum = x.matmul(weights.w) + weights.input_bias + state.hidden.matmul(weights.r) +
                     weights.state_bias;
  return {rule.f(sum), state.cell};
}

std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    names.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

std::vector<std::string_view> default_activations(Step step) {
  if (step == lstm_step) return {"Sigmoid", "Tanh", "Tanh"};
  if (step == gru_step) return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

// Those of all directions follow each other in the attribute, as one text.
CellRule cell_rule_of(const Call& call, Step step, std::int64_t direction) {
  std::vector<std::string_view> names = default_activations(step);
  const std::size_t count = names.size();
  const std::size_t skipped = static_cast<std::size_t>(direction) * count;
  if (call.given("activations")) {
    const auto given = names_in(call.attributes.text("activations"));
    if (given.size() < skipped + count) {
      fail_input("attributes: 'activations' has {} names, expected {} for each direction",
                 given.size(), count);
    }
    std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(skipped), count, names.begin());
  }
  CellRule rule{.call = call, .functions = {}, .limit = call.real("clip", 0)};
  for (const std::string_view name : names) rule.functions.push_back(activation_of(name));
  return rule;
}

struct Direction {
  Tensor outputs;  // [steps, batch, hidden]
  State last;
};

// Beyond its length a sequence keeps its state and puts out zeros. Backwards the steps come in the
// other order, so that its state is the first one until its end is reached.
Direction run_direction(const Call& call, Step step, const Layer& layer, std::int64_t direction,
                        bool backwards) {
  const Weights weights = weights_of(layer, direction);
  const CellRule rule = cell_rule_of(call, step, direction);
  const Tensor nothing =
      torch::zeros({layer.x.size(1), layer.size()}, layer.x.options().requires_grad(false));
  State state{layer.hidden.defined() ? layer.hidden[direction] : nothing,
              layer.cell.defined() ? layer.cell[direction] : nothing};
  const std::int64_t steps = layer.x.size(0);
  Tensors outputs(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backwards ? steps - 1 - i : i;
    State next = step(rule, layer.x[t], state, weights);
    Tensor output = next.hidden;
    if (layer.lengths.defined()) {
      const Tensor runs = (layer.lengths > t).unsqueeze(1);
      output = at::where(runs, next.hidden, nothing);
      next = {at::where(runs, next.hidden, state.hidden), at::where(runs, next.cell, state.cell)};
    }
    outputs[static_cast<std::size_t>(t)] = output;
    state = next;
  }
  return {at::stack(outputs), state};
}

// Y, the last hidden states, the last cell states.
Tensors run_layer(const Call& call, Step step) {
  const Layer layer = layer_of(call, step == lstm_step ? 4 : step == gru_step ? 3 : 1);
  const std::string_view direction = call.attributes.text("direction", "forward");
  Tensors outputs;
  Tensors hidden;
  Tensors cells;
  for (std::int64_t i = 0; i < layer.directions(); ++i) {
    const Direction done = run_direction(call, step, layer, i, i == 1 || direction == "reverse");
    outputs.push_back(done.outputs);
    hidden.push_back(done.last.hidden);
    cells.push_back(done.last.cell);
  }
  if (call.integer("layout", 0) != 0) {
    return {at::stack(outputs, 2).transpose(0, 1), at::stack(hidden, 1), at::stack(cells, 1)};
  }
  return {at::stack(outputs, 1), at::stack(hidden), at::stack(cells)};
}

// Those outputs that the op has: Y is told by its four dimensions. What it keeps beside them for
// its gradient, which computes everything again, is not filled in.
Kernel layer_kernel(Step step) {
  return [step](const Call& call) {
    const Tensors all = run_layer(call, step);
    std::size_t next_state = call.omits_output(1) ? 2 : 1;
    Tensors results;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const Shape& shape = call.shape(i);
      if (shape.size() < 4) {
        results.push_back(all.at(next_state++));
      } else {
        results.push_back(i == 0 ? all[0] : call.zeros(shape));
      }
    }
    return results;
  };
}

// Inputs: gradients of outputs, all inputs, the first output, and, unless it is an RNN, what the
// op kept. Wanted are gradients of inputs by their positions.
Kernel recurrent_gradient_kernel(Step step) {
  const std::size_t kept = step == rnn_step ? 1 : 2;
  return [step, kept](const Call& gradient) {
    const Integers arrived = arrived_gradients(gradient);
    if (gradient.inputs.size() < arrived.size() + 3 + kept) fail_input("has too few inputs");
    const std::size_t end = gradient.inputs.size() - kept;
    const auto at = [&](std::size_t i) {
      return gradient.inputs.begin() + static_cast<std::ptrdiff_t>(i);
    };
    Call call{.type = gradient.type, .attributes = gradient.attributes};
    call.inputs.assign(at(arrived.size()), at(end));
    Integers outputs = arrived;  // among Y, hidden and cell states
    const bool no_y = gradient.in(end).dim() < 4;
    for (std::int64_t& output : outputs) {
      if (no_y) ++output;
      if (output >= 1 && gradient.omits_output(1)) ++output;
    }
    std::vector<std::size_t> targets;
    for (const std::int64_t input : gradient.integers("wanted")) {
      targets.push_back(static_cast<std::size_t>(input));
    }
    return gradients_of([step](const Call& each) { return run_layer(each, step); }, call, targets,
                        gradient.inputs, outputs);
  };
}

}  // namespace

void add_recurrent(KernelTable& table) {
  table["LSTM"] = layer_kernel(lstm_step);
  table["GRU"] = layer_kernel(gru_step);
  table["RNN"] = layer_kernel(rnn_step);
  table["LSTMGrad"] = recurrent_gradient_kernel(lstm_step);
  table["GRUGrad"] = recurrent_gradient_kernel(gru_step);
  table["RNNGrad"] = recurrent_gradient_kernel(rnn_step);
}

}  // namespace emplace::exec

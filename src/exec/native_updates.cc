// Steps of optimizers. They write into the weight and its state, which are inputs: the weight, its
// gradient, the state, and of a weight of few bits its float32 master, which is then what changes.
//
// On CPUs one pass over memory does everything; on GPUs libtorch's fused kernels do, where there
// are.
#include <algorithm>

#include <torch/version.h>

#include "base/error.h"

#include "exec/loops.h"
#include "exec/native.h"
#include "exec/ranges.h"

namespace emplace::exec {
namespace {

using loops::Adam;
using loops::Momentum;

// The tensors of one update.
struct Operands {
  Tensor weight;  // what changes
  Tensor gradient;
  Tensors state;
  Tensor rounded = {};  // what is made of it
};

// States come before the master.
Operands operands_of(const OpStep& step, std::size_t states, bool master) {
  Operands result{.weight = step.inputs[master ? 2 + states : 0],
                  .gradient = step.inputs[1],
                  .state = {step.inputs.begin() + 2,
                            step.inputs.begin() + 2 + static_cast<std::ptrdiff_t>(states)}};
  // Loops go over all of them as if they were one weight.
  const auto as_large = [&](const Tensor& x) { return x.numel() == result.weight.numel(); };
  if (!as_large(result.gradient) ||
      !std::all_of(result.state.begin(), result.state.end(), as_large)) {
    fail_input("has a gradient or a state of another size than its weight's");
  }
  if (result.gradient.scalar_type() != result.weight.scalar_type()) {
    result.gradient = result.gradient.to(result.weight.scalar_type());
  }
  if (master) result.rounded = step.inputs[0];
  return result;
}

bool in_one_pass(const Operands& operands) {
  const auto type = operands.weight.scalar_type();
  bool plain = operands.weight.is_cpu() && (type == torch::kFloat || type == torch::kDouble);
  const auto fits = [&](const Tensor& x) { return x.is_contiguous() && x.scalar_type() == type; };
  plain = plain && fits(operands.weight);
  for (const Tensor& state : operands.state) plain = plain && fits(state);
  return plain;
}

template <class Body>
void with_real(torch::ScalarType type, const Body& body) {
  if (type == torch::kFloat) {
    body(float{});
  } else {
    body(double{});
  }
}

void momentum_on_cpu(Operands& at, const Momentum& rule) {
  const Tensor gradient = at.gradient.contiguous();
  with_real(at.weight.scalar_type(), [&](auto kind) {
    using Real = decltype(kind);
    auto* weight = at.weight.data_ptr<Real>();
    auto* sum = at.state[0].data_ptr<Real>();
    const auto* g = gradient.data_ptr<Real>();
    for_ranges(at.weight, [&](std::int64_t begin, std::int64_t end) {
      loops::momentum(rule, weight + begin, g + begin, sum + begin, end - begin);
    });
  });
}

void adam_on_cpu(Operands& at, const Adam& rule, std::int64_t number) {
  const Tensor gradient = at.gradient.contiguous();
  with_real(at.weight.scalar_type(), [&](auto kind) {
    using Real = decltype(kind);
    auto* weight = at.weight.data_ptr<Real>();
    auto* mean = at.state[0].data_ptr<Real>();
    auto* square = at.state[1].data_ptr<Real>();
    const auto* g = gradient.data_ptr<Real>();
    for_ranges(at.weight, [&](std::int64_t begin, std::int64_t end) {
      loops::adam(rule, number, weight + begin, g + begin, mean + begin, square + begin,
                  end - begin);
    });
  });
}

void momentum_elsewhere(Operands& at, const Momentum& rule) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  if (at.weight.is_cuda()) {
    Tensors weight{at.weight};
    Tensors gradient{at.gradient.contiguous()};
    Tensors sum{at.state[0]};
    at::_fused_sgd_(weight, gradient, sum, 0.0, rule.decay, rule.rate, 0.0, false, false, false);
    return;
  }
#endif
  at.state[0].mul_(rule.decay).add_(at.gradient);
  at.weight.add_(at.state[0], -rule.rate);
}

// The number of steps is a tensor, so that a recorded launch sees another every time.
Tensor clock_of(const OpStep& step, const Tensor& like) {
  if (step.clock.defined()) return step.clock.number;
  return torch::full({}, static_cast<double>(step.step + 1), like.options().dtype(torch::kFloat));
}

void adam_elsewhere(Operands& at, const Adam& rule, const Tensor& clock) {
#if TORCH_VERSION_MAJOR >= 2
  if (at.weight.is_cuda()) {
    Tensors weight{at.weight};
    Tensors gradient{at.gradient.contiguous()};
    Tensors mean{at.state[0]};
    Tensors square{at.state[1]};
    Tensors steps{clock};
    at::_fused_adam_(weight, gradient, mean, square, {}, steps, rule.rate, rule.first, rule.second,
                     0.0, rule.epsilon, false, false);
    return;
  }
#endif
  at.state[0].mul_(rule.first).add_(at.gradient, 1 - rule.first);
  at.state[1].mul_(rule.second).addcmul_(at.gradient, at.gradient, 1 - rule.second);
  const Tensor times = clock.to(torch::kDouble);
  const Tensor first = 1 - at::pow(rule.first, times);
  const Tensor second = 1 - at::pow(rule.second, times);
  const Tensor size = (at.state[1] / second).sqrt_().add_(rule.epsilon);
  at.weight.sub_((at.state[0] / first).div_(size).mul_(rule.rate));
}

void round_weight(const Operands& operands) {
  if (operands.rounded.defined()) operands.rounded.copy_(operands.weight);
}

// An update of so many states; one more is the master.
bool has_master(const Site& site, std::size_t states) {
  if (site.size() != 2 + states && site.size() != 3 + states) {
    fail_input("has {} inputs, expected {} or {}", site.size(), 2 + states, 3 + states);
  }
  return site.size() == 3 + states;
}

// Weights are drawn to zero: by their gradient, or by themselves, in proportion to the rate.
struct Decay {
  explicit Decay(const Site& site)
      : by_gradient(site.call.real("weight_decay", 0)),
        decoupled(site.call.real("decoupled_decay", 0)) {}

  void apply(Operands& at, double rate) const {
    if (decoupled != 0) at.weight.mul_(1 - rate * decoupled);
    if (by_gradient != 0) at.gradient = at.gradient.add(at.weight, by_gradient);
  }

  double by_gradient;
  double decoupled;
};

Run compile_sgd(const Site& site) {
  return [rate = site.call.real("learning_rate", 0.01), decay = Decay(site),
          master = has_master(site, 0)](OpStep& step) {
    Operands operands = operands_of(step, 0, master);
    decay.apply(operands, rate);
    operands.weight.add_(operands.gradient, -rate);
    round_weight(operands);
  };
}

// The value that a buffer has from then on.
Run compile_buffer_update(const Site&) {
  return [](OpStep& step) {
    Tensor buffer = step.inputs[0];
    buffer.copy_(step.inputs[1]);
  };
}

// What others changed of a weight, its first input: input i begins at begin_i.
Run compile_store(const Site& site) {
  std::vector<Integers> begins;
  for (std::size_t i = 1; i < site.size(); ++i) {
    begins.push_back(site.call.integers("begin_" + std::to_string(i)));
    if (begins.back().size() != site.in(0).size()) {
      fail_input("begin_{} has {} numbers, expected {}", i, begins.back().size(),
                 site.in(0).size());
    }
  }
  return [begins](OpStep& step) {
    for (std::size_t i = 1; i < step.inputs.size(); ++i) {
      Tensor target = step.inputs[0];
      for (std::int64_t d = 0; d < target.dim(); ++d) {
        target =
            target.narrow(d, begins[i - 1][static_cast<std::size_t>(d)], step.inputs[i].size(d));
      }
      target.copy_(step.inputs[i]);
    }
  };
}

// The gradient is kept for whoever takes it; the weight stays.
Run compile_accumulation(const Site&) {
  return [](OpStep&) {};
}

Run compile_momentum(const Site& site) {
  Momentum rule;
  rule.rate = site.call.real("learning_rate", rule.rate);
  rule.decay = site.call.real("momentum", rule.decay);
  return [rule, decay = Decay(site), master = has_master(site, 1)](OpStep& step) {
    Operands operands = operands_of(step, 1, master);
    decay.apply(operands, rule.rate);
    if (in_one_pass(operands)) {
      momentum_on_cpu(operands, rule);
    } else {
      momentum_elsewhere(operands, rule);
    }
    round_weight(operands);
  };
}

Run compile_adam(const Site& site) {
  Adam rule;
  rule.rate = site.call.real("learning_rate", rule.rate);
  rule.first = site.call.real("beta1", rule.first);
  rule.second = site.call.real("beta2", rule.second);
  rule.epsilon = site.call.real("epsilon", rule.epsilon);
  return [rule, decay = Decay(site), master = has_master(site, 2)](OpStep& step) {
    Operands operands = operands_of(step, 2, master);
    decay.apply(operands, rule.rate);
    if (in_one_pass(operands)) {
      adam_on_cpu(operands, rule, step.step + 1);
    } else {
      adam_elsewhere(operands, rule, clock_of(step, operands.weight));
    }
    round_weight(operands);
  };
}

}  // namespace

void add_native_updates(CompilerTable& table) {
  table["AccumulateGrad"] = compile_accumulation;
  table["BufferUpdate"] = compile_buffer_update;
  table["PartStore"] = compile_store;
  table["SgdUpdate"] = compile_sgd;
  table["MomentumUpdate"] = compile_momentum;
  table["AdamUpdate"] = compile_adam;
}

}  // namespace emplace::exec

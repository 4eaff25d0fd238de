// Dropout and its gradient.
#include "base/error.h"

#include "exec/native.h"
#include "exec/random.h"

namespace emplace::exec {
namespace {

Stream stream_of(const OpStep& step, std::uint64_t key) {
  return {.key = key, .step = step.step, .clock = step.clock};
}

Run pass_through() {
  return [](OpStep& step) {
    step.outputs[0] = step.inputs[0];
    if (step.outputs.size() > 1) {
      step.outputs[1] = torch::ones_like(step.inputs[0], torch::kBool);
    }
  };
}

// Without a mask, or told not to, it does nothing, as in inference; nor without a backward pass,
// unless it is told to.
Run compile_dropout(const Site& site) {
  if (site.in(0) != site.out()) fail_input("makes a tensor of another shape than its input's");
  const std::size_t last = site.size() - 1;
  const bool told = last > 0 && site.inputs[last].dtype == DType::kBool;
  if (site.num_outputs() < 2) return pass_through();
  if (told && !site.known(last)) return {};
  const bool training = told ? site.call.inputs[last].to(torch::kBool).item<bool>()
                             : site.call.integer("training_mode", site.call.training ? 1 : 0) != 0;
  if (!training) return pass_through();
  if (!site.call.given("ratio")) {
    for (std::size_t i = 1; i < site.size(); ++i) {
      if (site.is_floating(i) && !site.known(i)) return {};
    }
  }
  const Chance chance(site.call, site.out(), dropout_ratio(site.call));
  return [chance, key = site.call.stream.key](OpStep& step) {
    chance.apply(stream_of(step, key), step.inputs[0], step.outputs[0], step.outputs[1]);
  };
}

// From dy and the mask.
Run compile_dropout_grad(const Site& site) {
  if (site.in(0) != site.in(site.size() - 1)) fail_input("has a mask of another shape");
  const double ratio = site.call.real("ratio", 0.5);
  return [scale = ratio >= 1 ? 0 : 1 / (1 - ratio), mask = site.size() - 1](OpStep& step) {
    step.outputs[0] = masked(step.inputs[0], step.inputs[mask], scale);
  };
}

}  // namespace

void add_native_dropout(CompilerTable& table) {
  table["Dropout"] = compile_dropout;
  table["DropoutGrad"] = compile_dropout_grad;
}

}  // namespace emplace::exec

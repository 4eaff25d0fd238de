#include "zoo/model.h"

#include "graph/precision.h"

namespace emplace::zoo {

NetOptions net_options(const StepOptions& options) {
  return {.dtype = *parse_dtype(options.dtype), .training = options.training};
}

Graph finish(Net&& net, const StepOptions& options, TrainingOptions training) {
  Graph forward = std::move(net).build();
  if (!options.training) return forward;
  const DType dtype = *parse_dtype(options.dtype);
  if (is_narrow(dtype)) forward = with_precision(forward, dtype, true);
  training.optimizer = parse_optimizer(options.optimizer);
  return training_step(forward, training);
}

ModelInfo with_defaults(ModelInfo info, const OptionValues& defaults) {
  for (const auto& [name, value] : defaults) {
    for (OptionInfo& option : info.options) {
      if (option.name == name) option.default_value = value;
    }
  }
  return info;
}

}  // namespace emplace::zoo

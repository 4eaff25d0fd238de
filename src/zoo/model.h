// How a model file declares what it builds. A family of models is one file with its Options, their
// schema and one function:
//
//   struct ResNet : StepOptions {
//     std::int64_t layers = 50;
//     static auto schema() { return step_schema<ResNet>().integer("layers", ...); }
//   };
//   void build(Net& net, const ResNet& options) { ... }
//   std::vector<ModelInfo> resnet_models() {
//     return {model<ResNet>({.name = "resnet-50", ...}, build),
//             model<ResNet>({.name = "resnet-101", ...}, build, {{"layers", "101"}})};
//   }
//
// The function builds the forward pass down to the loss; the training step follows from it.
#pragma once

#include <string>
#include <utility>

#include "zoo/net.h"
#include "zoo/registry.h"

namespace emplace::zoo {

// The options of every model. A family sets its own defaults in its constructor: the optimizer is
// the one that the model was published with, or has as much state as that one.
struct StepOptions {
  std::int64_t batch = 32;
  std::string dtype = "float32";
  bool training = true;
  std::string optimizer = "sgd";
};

template <class Options>
OptionSchema<Options> step_schema() {
  return OptionSchema<Options>{}
      .integer("batch", &Options::batch, 1, 1 << 20, "Examples in a step.")
      .choice("dtype", &Options::dtype, {"float32", "float16", "bfloat16"},
              "Of parameters and activations; training in 16 bits is mixed (docs/training.md).")
      .flag("training", &Options::training, "Forward, backward and update, or forward alone.")
      .choice("optimizer", &Options::optimizer, optimizer_names(),
              "Decides what state each parameter has.");
}

// What remains to be done once the forward pass is built.
Graph finish(Net&& net, const StepOptions& options, TrainingOptions training);
NetOptions net_options(const StepOptions& options);
// `info` with these defaults in place of the schema's.
ModelInfo with_defaults(ModelInfo info, const OptionValues& defaults);

// `preset` is what this model sets differently from the schema's defaults; a user may override it.
template <class Options>
ModelInfo model(ModelInfo info, void (*build)(Net&, const Options&), OptionValues preset = {}) {
  info.options = Options::schema().describe();
  info.build = [name = info.name, build, preset](const OptionValues& given,
                                                 const TrainingOptions& training) {
    OptionValues values = preset;
    values.insert(values.end(), given.begin(), given.end());
    const Options options = Options::schema().read(values);
    std::string title = name;
    for (const auto& [key, value] : given) title += fmt::format(",{}={}", key, value);
    Net net(std::move(title), net_options(options));
    build(net, options);
    return finish(std::move(net), options, training);
  };
  return with_defaults(std::move(info), preset);
}

}  // namespace emplace::zoo

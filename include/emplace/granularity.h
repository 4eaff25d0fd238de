// How finely a model is placed: op by op, or in parts that stay whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <emplace/model.h>

namespace emplace {

enum class Granularity {
  kOp,      // every op for itself
  kModule,  // the ops of a module, their backward passes and updates share a device
  kLayer,   // so do the modules of a layer
};

// "op", "module", "layer".
std::string granularity_name(Granularity granularity);
// Throws an Error for any other name.
Granularity parse_granularity(const std::string& name);

// The same graph, with every module (or layer) as one colocation: whatever places it keeps them
// whole. A layer is a numbered block with all that is in it ("encoder.layer.3"); what is in none
// goes by the largest modules without one ("embeddings"). Views stay with what they show. Modules
// of which the graph itself keeps ops together become one. Throws an Error when the graph names no
// modules.
std::shared_ptr<const Graph> keep_whole(std::shared_ptr<const Graph> graph,
                                        Granularity granularity);

}  // namespace emplace

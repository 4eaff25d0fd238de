// Layers: the blocks that a model repeats, by the names of its modules.
#pragma once

#include <string>
#include <vector>

#include "graph/modules.h"

namespace emplace {

// By module: the name of the layer that it is of. A layer is one of two or more numbered
// neighbours, the outermost ("encoder.layer.3" of "encoder.layer.3.mlp.0"); modules in none are of
// the largest around them that has none inside ("embeddings" of "embeddings.word"). What is around
// all modules does not count. Empty for a module without a name.
std::vector<std::string> layers_of_modules(const Modules& modules);

}  // namespace emplace

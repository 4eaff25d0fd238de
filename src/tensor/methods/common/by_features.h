// Layers divided by their output features: model parallelism as people did it by hand.
#pragma once

#include <string>

#include "tensor/context.h"
#include "tensor/plan.h"

namespace emplace {

// Every layer's weights by the features that it makes, and what passes between layers by features
// (channels of images, heads, the last dimension elsewhere). With `convolutions_by_examples`, what
// has the shape of images is divided by examples instead, and weights of convolutions are whole.
Plan divide_by_features(const PartitionContext& context, std::string method,
                        bool convolutions_by_examples);

}  // namespace emplace

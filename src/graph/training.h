// From a forward graph to a training step: forward, backward and update.
//
// Every op that lies between a parameter and an output of the graph gets the gradient ops that its
// operator's rule says (graph/gradients.h), in reverse order; a tensor that several ops read gets
// the sum of its gradients; every parameter gets an update op with the optimizer's state. Outputs
// that nothing reads are what is differentiated: a loss, or, where the graph has none, what a loss
// outside of it would send gradients to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <emplace/model.h>

#include "graph/graph.h"

namespace emplace {

std::vector<std::string> optimizer_names();
// Throws an Error when there is none of that name.
Optimizer parse_optimizer(std::string_view name);

// Throws an Error when the graph already has backward or update ops, has nothing to train, has an
// operator without a gradient rule between a parameter and an output (it names all of them), or a
// pattern matches no module.
Graph training_step(const Graph& forward, const TrainingOptions& options = {});

}  // namespace emplace

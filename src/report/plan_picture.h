// A partition as a picture: along which dimensions the weights and activations of every layer are
// cut, as in figure 11 of Tofu's paper.
#pragma once

#include <string>

#include "graph/graph.h"

#include "tensor/describe.h"
#include "tensor/plan.h"

namespace emplace {

// SVG. Operators of the forward pass, layer by layer; layers that are cut alike are drawn once, and
// so are operators of a layer, such as the steps of a recurrent cell.
std::string plan_picture(const Graph& graph, const Descriptions& descriptions, const Plan& plan);

}  // namespace emplace

// How a plan divides a model, in words, with the names that such divisions have: data parallelism,
// FSDP, tensor parallelism as in Megatron.
#pragma once

#include <string>

#include "graph/graph.h"

#include "tensor/describe.h"
#include "tensor/plan.h"

namespace emplace {

// "Among 2 groups of 4: data parallel. Within them, among 4 devices: tensor parallel, as in
// Megatron (products by columns 52 %, by rows with a sum 46 %), attention by heads."
std::string plan_in_words(const Graph& graph, const Descriptions& descriptions, const Plan& plan);

}  // namespace emplace

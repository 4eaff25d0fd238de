// Pieces of ops as ops of their own.
#pragma once

#include "graph/graph_builder.h"

#include "tensor/describe.h"

namespace emplace {

// The piece's part of the op's work: its box of the variables.
double share_of_box(const tdl::Description& description, const tdl::Region& box);

// FLOPs, bytes, memory and measured times of this part of an op.
void scale(OpSpec& spec, double share);

// All but names and tensors. Without a description everybody does the whole op.
OpSpec spec_of_piece(const Graph& graph, OpId op, const tdl::Description* description,
                     const tdl::Piece& piece);

}  // namespace emplace

// What an ONNX file that was exported for inference does not say of training.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace emplace {

// Why a training step of this forward graph, read from ONNX, would take more memory than it says;
// empty where nothing speaks for that.
//
// - Batch norms folded into convolutions. Certain where both weights and biases of convolutions
//   have names that PyTorch makes up for what it computes while it exports. Concluded where a
//   classifier of images, which returns none, has no normalisation at all, biases in its
//   convolutions, and residual branches that end in one: without a norm such a branch is scaled
//   before it is added (Fixup, NFNet), or the network does not train.
// - Equal initializers made one: a scale or a bias that layers of three or more modules read in the
//   same place, while no matrix of products or rows is shared like that. Where whole layers are
//   shared, or one layer is used several times, matrices are, too, or it is one module.
std::vector<std::string> training_notes(const Graph& forward);

}  // namespace emplace

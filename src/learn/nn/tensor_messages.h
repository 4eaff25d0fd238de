// Tensors as bytes between ranks: parameters and gradients, of which both sides know the shapes.
#pragma once

#include <string>
#include <vector>

#include "dist/wire.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

std::string tensor_bytes(const std::vector<torch::Tensor>& tensors);
// Their length, and these bytes.
void put_tensors(dist::Writer& writer, const std::vector<torch::Tensor>& tensors);
// As many and of the same shapes as `like`, wherever these are. Throws an Error when they are not.
std::vector<torch::Tensor> take_tensors(dist::Reader& reader,
                                        const std::vector<torch::Tensor>& like);

}  // namespace emplace::learn

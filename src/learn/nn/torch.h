// The parts of libtorch that this room uses: tensors and automatic differentiation. (All of
// torch/torch.h takes three times as long to compile.)
#pragma once

#include <torch/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

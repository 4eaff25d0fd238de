// The parts of libtorch that this room uses: tensors and automatic differentiation, the headers
// that the precompiled header (cmake/learn.cmake) holds.
#pragma once

#include <torch/autograd.h>
#include <torch/types.h>

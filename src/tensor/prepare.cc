#include "tensor/prepare.h"

#include "tensor/captured_operators.h"
#include "tensor/decompose.h"
#include "tensor/interleave.h"

namespace emplace {

Graph prepare_to_divide(const Graph& graph) {
  return interleave(decompose(translate_captured(graph).graph));
}

}  // namespace emplace

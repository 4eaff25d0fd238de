#include "exec/tf32.h"

namespace emplace::exec {

Tf32::Tf32(bool allowed)
    : convolutions_(at::globalContext().allowTF32CuDNN()),
      products_(at::globalContext().float32MatmulPrecision()) {
  at::globalContext().setAllowTF32CuDNN(allowed);
  at::globalContext().setAllowTF32CuBLAS(allowed);
}

Tf32::~Tf32() {
  at::globalContext().setAllowTF32CuDNN(convolutions_);
  at::globalContext().setFloat32MatmulPrecision(products_);
}

}  // namespace emplace::exec

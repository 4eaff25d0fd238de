// Products and convolutions of float32 on GPUs whose factors are rounded to 10 bits (TF32).
// libtorch allows that in convolutions by default, so it is set for as long as a step takes.
#pragma once

#include <ATen/Context.h>

namespace emplace::exec {

// Allows it or not while it lives; then everything is as it was, for whoever else uses libtorch.
class Tf32 {
 public:
  explicit Tf32(bool allowed);
  ~Tf32();
  Tf32(const Tf32&) = delete;
  Tf32& operator=(const Tf32&) = delete;

 private:
  bool convolutions_;
  at::Float32MatmulPrecision products_;
};

}  // namespace emplace::exec

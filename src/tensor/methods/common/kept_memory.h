// What a plan keeps in memory for long, as far as that is known before it is lowered: weights and
// state all the time, what the backward pass reads until the forward pass is over, gradients that
// updates read after it. What is fetched, sent or not yet reduced comes on top.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/partition_problem.h"

namespace emplace {

class KeptMemory {
 public:
  // The input outlives it.
  KeptMemory(const PartitionInput& input, const Workers& workers);

  // What the tensors of a class take of the worker that has most of them.
  Bytes bytes(ClassId tensor, const Cuts& cuts) const;
  // When: at the end of the forward pass is 0, of the backward pass 1.
  SelectionProblem::Interval alive(ClassId tensor) const;

 private:
  struct Counts {
    std::int64_t always = 0, forward = 0, gradients = 0;
  };

  const PartitionInput& input_;
  Workers workers_;
  std::vector<Counts> counts_;  // by class
};

}  // namespace emplace

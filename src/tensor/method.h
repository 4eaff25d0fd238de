// What a partition method is, and the line that declares one. A method is one file,
// src/tensor/methods/<key>.cc; its name for users has dashes where the file's has underscores.
#pragma once

#include <algorithm>
#include <string>

#include <emplace/search.h>

#include "base/options.h"
#include "base/rng.h"

#include "tensor/context.h"
#include "tensor/plan.h"

#include "search/registry.h"

namespace emplace {

// What a method that does not end by itself takes when the budget has no limit.
inline constexpr double kPartitionSeconds = 8;

class PartitionMethod {
 public:
  virtual ~PartitionMethod() = default;

  // A plan of the context's input for its workers, under the method's name. A plan can always be
  // lowered; it may not fit. Methods that try several plans begin from the context's starts, offer
  // each to the incumbent and return its best; those that construct one plan, or choose it by costs
  // of their own, evaluate nothing. None proves a bound: what the costs bound is not the simulated
  // step.
  //
  // Where the context has a limit of time, a method that is not done by then may give up
  // (OutOfTime). Data parallelism never does, so that there is always a plan.
  //
  // An evaluation is one plan that is lowered and simulated. Same context, options, rng and limit
  // of evaluations: same plan, whatever the threads. So it is under a limit of time for whoever
  // ends before it.
  virtual Plan find(PartitionContext& context, const Budget& budget, Rng rng) = 0;
};

using PartitionRegistry = Registry<PartitionMethod>;

// "data_parallel" as users write it.
inline std::string with_dashes(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

}  // namespace emplace

// EMPLACE_PARTITION_METHOD(all_row, AllRow, .family = "baseline", .summary = "...", .reference =
// "...") at the end of all_row.cc, inside namespace emplace. `Class` has `Options` and a static
// `schema()`.
#define EMPLACE_PARTITION_METHOD(key_, Class, ...)                           \
  void register_partition_##key_(PartitionRegistry& registry);               \
  void register_partition_##key_(PartitionRegistry& registry) {              \
    registry.add<Class>(MethodInfo{.key = with_dashes(#key_), __VA_ARGS__}); \
  }

// From a system as data to the method that runs.
#pragma once

#include <string>

#include "base/rng.h"

#include "cost/problem.h"

#include "learn/parts.h"
#include "learn/system.h"

namespace emplace::learn {

// `device` is libtorch's; the random numbers are for first weights. The problem must outlive the
// method. Throws an Error when a policy file cannot be read or is of another kind.
MethodPtr make_method(const System& system, const Problem& problem, const std::string& device,
                      Rng& rng);

// Of a system that samples: what `make_method` puts together.
struct SamplingParts {
  PolicyPtr policy;
  LearnerPtr learner;
};
SamplingParts make_parts(const SamplingSystem& system, const Problem& problem,
                         const std::string& device, Rng& rng);

}  // namespace emplace::learn

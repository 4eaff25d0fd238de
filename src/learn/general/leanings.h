// What a policy decides when it leans to some devices more than to others. The edges of blocks then
// move as a whole, where draws of single units would fray them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/nn/torch.h"
#include "learn/train/environment.h"

namespace emplace::learn {

// What is added to the scores of devices [count, devices]: nothing in the first row, in the others
// ever more, at random.
torch::Tensor leanings(std::int64_t count, std::int64_t devices, Rng& rng);

// The first of the placements, and the best if that is another. There is one.
std::vector<Placement> first_and_best(std::vector<Placement> placements,
                                      const std::vector<SampleOutcome>& outcomes);

}  // namespace emplace::learn

// What an Optimizer has saved, taken apart for those who step along parts of a policy's parameters,
// and put together again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace emplace::learn {

// Of what was saved under the prefix, that of these parameters, under the same prefix.
void put_part(StateWriter& part, const StateReader& whole, const std::string& prefix,
              const std::vector<std::size_t>& parameters);

struct SavedPart {
  const StateReader* state = nullptr;
  const std::vector<std::size_t>* parameters = nullptr;  // of all, in the part's order
};
// The parts may have taken different numbers of steps: the whole has taken the most. Moments of
// those that took none are 0, as Adam begins. `like`: all parameters.
void put_whole(StateWriter& whole, const std::vector<SavedPart>& parts, const std::string& prefix,
               const std::vector<torch::Tensor>& like);

}  // namespace emplace::learn

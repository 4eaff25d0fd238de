// What a sequence network (seq2seq_net.h) knows of devices: what it sees of the one before, and how
// its states become logits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// For the steps of one call of the network.
class DeviceHead {
 public:
  virtual ~DeviceHead() = default;

  // [1 + devices, width]: what the decoder sees of the previous device, "go" first.
  virtual torch::Tensor embeddings() const = 0;
  // [1 + devices, devices]: what the previous device adds to the logits; undefined: nothing.
  virtual torch::Tensor transitions() const = 0;
  // Of `steps` steps from `first` on: [steps * count, devices] from the decoder's states and
  // contexts [steps * count, width], where the `count` samples of a step are together.
  virtual torch::Tensor logits(const torch::Tensor& states, const torch::Tensor& contexts,
                               std::int64_t first, std::int64_t steps) const = 0;
};
using DeviceHeadPtr = std::shared_ptr<const DeviceHead>;

// A vector for every one of so many devices; logits [h; context] W. `repeat`: as in
// Seq2SeqSettings.
DeviceHeadPtr fixed_devices(Parameters& parameters, const std::string& name, std::int64_t width,
                            std::int64_t devices, double repeat, Rng& rng);

}  // namespace emplace::learn

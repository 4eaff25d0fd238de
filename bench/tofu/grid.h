// The models and machines of Tofu's evaluation (Wang et al., EuroSys 2019, section 7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace emplace::tofu {

struct GridModel {
  std::string name;  // "WResNet-152-10", "RNN-10-8K"
  std::string zoo;   // without the batch
  bool recurrent = false;
  std::int64_t memory_batch = 0;  // at which the table of peaks is made
  std::int64_t most = 0;          // the largest batch that is tried

  std::string with_batch(std::int64_t batch) const;
};

// 12 wide residual networks, then 9 recurrent ones.
std::vector<GridModel> grid_models();
// Models that fit on one device.
std::vector<GridModel> small_models();

struct Machine {
  std::string name;
  std::string cluster;              // a preset
  std::int64_t host_bandwidth = 0;  // bytes a second that each device has to the host, each way
  Nanoseconds host_latency = 10'000;
};
std::vector<Machine> machines();

// Ways to divide tensors that are compared, Tofu's and ours first.
std::vector<std::string> rival_methods();

// Samples a second on 8 K80s as the paper has them (spec of what is public; 0: not known).
struct Published {
  double tofu = 0;
  double op_placement = 0;  // with MXNet
  double tensorflow_op_placement = 0;
};
Published published(const std::string& model);

}  // namespace emplace::tofu

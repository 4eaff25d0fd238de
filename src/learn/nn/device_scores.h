// Scores units on devices by what is known of both, so that one network serves any number and kind
// of devices: v' relu(A h + B g + C p + b) + d' p for a unit's vector h, a device's columns g, and
// columns p of the pair (learn/features/device_view.h).
#pragma once

#include <cstdint>
#include <string>

#include "learn/features/device_view.h"
#include "learn/nn/module.h"
#include "learn/nn/torch.h"

namespace emplace::learn {

// A DeviceView as tensors.
struct DeviceTensors {
  DeviceTensors() = default;
  DeviceTensors(const DeviceView& view, std::int64_t units, torch::Device device);

  torch::Tensor graph;    // [1, kGraphColumns]
  torch::Tensor devices;  // [devices, kDeviceColumns]
  torch::Tensor pairs;    // [units, devices, kPairColumns]
  torch::Tensor mask;     // [units, devices]: 0 where the unit may be, a large negative number else
};

class DeviceScores {
 public:
  // Of how far a unit is from the middle of a device's slice along the modules, at first.
  static constexpr double kFirstWeight = -16;

  DeviceScores() = default;
  // `more_pair_columns`: beyond those of a view. At first the slices along the modules decide, and
  // the network adds little.
  DeviceScores(Parameters& parameters, const std::string& name, std::int64_t unit_width,
               std::int64_t hidden, std::int64_t more_pair_columns, Rng& rng);

  // Logits [rows, devices] from h [rows, unit_width], devices [devices, kDeviceColumns] and pairs
  // [rows, devices, kPairColumns + more].
  torch::Tensor operator()(const torch::Tensor& h, const torch::Tensor& devices,
                           const torch::Tensor& pairs) const;

  // What devices and pairs add, for units' vectors that come bit by bit or are many for each row.
  struct Prepared {
    torch::Tensor hidden;  // [rows, devices, hidden]
    torch::Tensor direct;  // [rows, devices]
    Prepared narrow(std::int64_t first, std::int64_t count) const {
      return {hidden.narrow(0, first, count), direct.narrow(0, first, count)};
    }
  };
  Prepared prepare(const torch::Tensor& devices, const torch::Tensor& pairs) const;
  // Logits [rows, count, devices] from h [rows, count, unit_width].
  torch::Tensor operator()(const torch::Tensor& h, const Prepared& prepared) const;

 private:
  Linear unit_, device_, pair_, output_, direct_;
};

}  // namespace emplace::learn

#include "tofu/grid.h"

#include <map>

#include <fmt/format.h>

namespace emplace::tofu {

std::string GridModel::with_batch(std::int64_t batch) const {
  return fmt::format("{}{}batch={}", zoo, zoo.find(':', 4) == std::string::npos ? ":" : ",", batch);
}

std::vector<GridModel> grid_models() {
  std::vector<GridModel> models;
  for (const int layers : {50, 101, 152}) {
    for (const int width : {4, 6, 8, 10}) {
      models.push_back({.name = fmt::format("WResNet-{}-{}", layers, width),
                        .zoo = fmt::format("zoo:wide-resnet:layers={},width={}", layers, width),
                        .memory_batch = 16,
                        .most = 256});
    }
  }
  for (const int layers : {6, 8, 10}) {
    for (const int thousands : {4, 6, 8}) {
      models.push_back(
          {.name = fmt::format("RNN-{}-{}K", layers, thousands),
           .zoo = fmt::format("zoo:stacked-rnn:layers={},hidden={}", layers, 1024 * thousands),
           .recurrent = true,
           .memory_batch = 128,
           .most = 1024});
    }
  }
  return models;
}

std::vector<GridModel> small_models() {
  return {{.name = "ResNet-50", .zoo = "zoo:resnet-50", .most = 512},
          {.name = "VGG-16", .zoo = "zoo:vgg-16", .most = 512},
          {.name = "RNN-2-1K",
           .zoo = "zoo:stacked-rnn:layers=2,hidden=1024",
           .recurrent = true,
           .most = 2048}};
}

// p2.8xlarge: 10 GB/s to the host, which the eight share; as one bus, and as a tree of pairs under
// switches, whose two devices share the way to other switches. p3.16xlarge: PCIe 3.0, of which two
// devices share 12 GB/s.
std::vector<Machine> machines() {
  return {
      {.name = "k80", .cluster = "8xk80-p2", .host_bandwidth = 10'000'000'000 / 8},
      {.name = "k80-tree", .cluster = "4x(2xk80-p2)@10GB/s", .host_bandwidth = 10'000'000'000 / 8},
      {.name = "v100", .cluster = "8xv100-nvlink", .host_bandwidth = 12'000'000'000 / 2}};
}

std::vector<std::string> rival_methods() {
  return {"tofu",   "search",          "all-row",        "spartan",      "equal-chop",
          "optcnn", "one-weird-trick", "model-parallel", "data-parallel"};
}

Published published(const std::string& model) {
  static const std::map<std::string, Published> kKnown{
      {"RNN-6-4K", {210, 107, 50}}, {"RNN-8-4K", {154, 95, 36}}, {"RNN-10-4K", {122, 59, 30}}};
  const auto found = kKnown.find(model);
  return found == kKnown.end() ? Published{} : found->second;
}

}  // namespace emplace::tofu

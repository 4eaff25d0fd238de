// What devices cost to rent.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

class Prices {
 public:
  Prices() = default;
  // Texts of "a100=2.5" or "a100=2.5,cpu=0.1": what a device costs in an hour. Before "=" stands a
  // pattern of devices' names or kinds, or gpu, which is every device that is no CPU, or cpu, which
  // is every CPU; later ones win. Throws an Error when a text is not like that.
  static Prices parse(const std::vector<std::string>& texts);

  bool empty() const { return rules_.empty(); }
  // Of an hour of the devices together. A CPU without a price comes with the others; throws an
  // Error that names any other device without one.
  double per_hour(const Cluster& cluster, const std::vector<DeviceId>& devices) const;
  // Throws the same for any device of the cluster; nothing where there are no prices at all.
  void require_complete(const Cluster& cluster) const;

 private:
  struct Rule {
    std::string devices;
    double per_hour = 0;
  };

  std::vector<Rule> rules_;
};

}  // namespace emplace

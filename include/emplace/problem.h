// A graph on a cluster with every duration known: what placers optimise and the simulator runs.
// Built once by `compile`, checked once, never changed, shared by all threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <emplace/cluster.h>
#include <emplace/model.h>

namespace emplace {

class Problem;
class CostSource;

// Where the times of ops come from.
enum class CostMode {
  kAuto,      // measured where the graph has a time for the device, analytic elsewhere
  kMeasured,  // measured only; an op without a time is an error
  kAnalytic,  // analytic only
};

// Where a user wants parts of a model, or does not.
struct DeviceRule {
  enum class Kind { kPin, kForbid };

  Kind kind = Kind::kPin;
  // A pattern, in which "*" stands for any text, of the names of ops or of their modules. A
  // module's name also stands for the modules in it.
  std::string ops;
  // Patterns of devices' names or kinds.
  std::vector<std::string> devices;

  // "encoder.*=gpu0" or "encoder.*=gpu0,gpu1". Throws an Error when it is not like that.
  static DeviceRule parse(Kind kind, const std::string& text);
  std::string to_string() const;
};

struct CompileOptions {
  CostMode cost = CostMode::kAuto;
  bool fuse = false;                   // elementwise chains are one kernel each
  std::vector<DeviceRule> rules = {};  // beside what the graph says of its ops' devices
};

// Throws an Error when an op or a rule names an unknown device, no device may run a group of ops,
// or a time is missing (CostMode::kMeasured) or overflows.
std::shared_ptr<const Problem> compile(std::shared_ptr<const Graph> graph,
                                       std::shared_ptr<const Cluster> cluster,
                                       const CompileOptions& options);

const Graph& graph_of(const Problem& problem);
const Cluster& cluster_of(const Problem& problem);
// How long the op takes on the device.
Nanoseconds duration_of(const Problem& problem, OpId op, DeviceId device);
// What is being worked on, and how its op times are known: two lines for people.
std::string describe(const Problem& problem);

}  // namespace emplace

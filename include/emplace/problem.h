// A graph on a cluster with every duration known: what placers optimise and the simulator runs.
// Built once by `compile`, checked once, never changed, shared by all threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/cluster.h>
#include <emplace/model.h>

namespace emplace {

class Problem;
class CostSource;

// Where the times of ops come from. A problem is compiled from an ordered list of sources: an op's
// time on a device is that of the first source that knows one.
using CostSources = std::vector<std::shared_ptr<const CostSource>>;

// The times that the graph has for the device, its kind, or any.
std::shared_ptr<const CostSource> measured_costs();
// The cost model's estimate (docs/cost-model.md).
std::shared_ptr<const CostSource> analytic_costs();
// Your own: microseconds of an op on a device (by name and kind), nothing where you do not know.
// It is called for every op and device, from one thread.
using CostFunction = std::function<std::optional<double>(
    const Graph& graph, OpId op, const std::string& device, const std::string& kind)>;
std::shared_ptr<const CostSource> costs_from(const std::string& name, CostFunction function);

// The lists that users choose from.
enum class CostMode {
  kAuto,      // measured where the graph has a time for the device, analytic elsewhere
  kMeasured,  // measured only; an op without a time is an error
  kAnalytic,  // analytic only
};

// Which ops write their result over an input that nobody else reads, so that it takes no memory of
// its own (docs/simulator.md, In place).
enum class InPlace : std::uint8_t {
  kNone,  // none
  kSums,  // sums of gradients, and of partial results of divided ops
  kAll,   // elementwise ops too
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
  // For messages: pin "encoder.*=gpu0".
  std::string to_string() const;
};

struct CompileOptions {
  CostMode cost = CostMode::kAuto;     // stands for a list of sources, unless `sources` has one
  bool fuse = false;                   // elementwise chains are one kernel each
  InPlace in_place = InPlace::kSums;   // who writes over inputs
  std::vector<DeviceRule> rules = {};  // beside what the graph says of its ops' devices
  CostSources sources = {};            // the caller's own, in the order in which they are asked
};

// Throws an Error when an op or a rule names an unknown device, no device may run a group of ops,
// no source knows a time, or one is negative or overflows.
std::shared_ptr<const Problem> compile(std::shared_ptr<const Graph> graph,
                                       std::shared_ptr<const Cluster> cluster,
                                       const CompileOptions& options = {});

const Graph& graph_of(const Problem& problem);
const Cluster& cluster_of(const Problem& problem);
// How long the op takes on the device.
Nanoseconds duration_of(const Problem& problem, OpId op, DeviceId device);
// What is being worked on, and how its op times are known: two lines for people.
std::string describe(const Problem& problem);

}  // namespace emplace

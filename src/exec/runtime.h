// Executing steps: a graph under a placement on real devices, as data that needs no libtorch. What
// implements it is in libemplace_torch, which is loaded when something runs for the first time.
//
//   const auto runtime = exec::backend("emplace run").start(cluster, {});
//   const auto program = runtime->load(graph, placement, {});
//   const exec::StepRecord record = program->step();
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <emplace/problem.h>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"
#include "cluster/local_kinds.h"
#include "graph/graph.h"

#include "sim/placement.h"

namespace emplace::exec {

class Peers;  // exec/peers.h

// From the beginning of the step.
struct Interval {
  Nanoseconds start = 0;
  Nanoseconds end = 0;

  Nanoseconds length() const { return end - start; }
};

// A tensor that one device sends to another.
struct Transfer {
  TensorId tensor = 0;
  DeviceId from = 0;
  DeviceId to = 0;
  Bytes bytes = 0;  // in the type that it is executed in
};

// Why a step did not come to its end.
struct Failure {
  enum class Kind { kOp, kMemory, kCancelled, kHung, kRank };  // kRank: one is lost

  Kind kind = Kind::kOp;
  std::string text;  // "op 'conv1' on device 'cpu0': ..."
};

struct StepRecord {
  Nanoseconds step = 0;
  std::optional<Failure> failure = std::nullopt;  // the step has ended; the program cannot go on
  std::optional<double> loss = std::nullopt;      // the sum, if there are several
  std::vector<Interval> ops = {};                 // by op; of sources and views, nothing
  std::vector<Interval> transfers = {};           // as in Program::transfers
  std::vector<Bytes> temporary = {};  // by op: what it held beside what it reads and writes
};

struct MemoryRecord {
  Bytes peak = 0;    // the most that was alive at once, what lies there for ever included
  Bytes cached = 0;  // what was held beyond that, to be used again
};

// A graph with its parameters on the devices. Its steps follow each other and change the
// parameters.
class Program {
 public:
  virtual ~Program() = default;

  virtual StepRecord step() = 0;

  virtual const std::vector<Transfer>& transfers() const = 0;
  virtual std::vector<MemoryRecord> memory() const = 0;  // by device, since it was loaded
  // Gradients that run their forward op again, and the like: their times are not what they should
  // be. By op type.
  virtual std::vector<std::string> slow_types() const = 0;
  // A step that has not ended after this long fails, and says which op or tensor took longest. An
  // op that still runs on a CPU is left alone: its thread ends when it does, and the device has
  // another from then on. 0, as at first: wait for ever, which steps of several ranks and those on
  // GPUs do in any case.
  virtual void set_deadline(Nanoseconds time) = 0;
};

// The order in which a device takes its ops.
struct ProgramOrder {
  // By op: the least first among the ready; empty: as they get ready.
  std::vector<std::uint32_t> rank = {};
  std::vector<std::vector<OpId>> sequence = {};  // by device: exactly so; empty: by rank
  // Simulated, for what is launched together on GPUs: when ops start, and when tensors arrive.
  std::vector<Nanoseconds> starts = {};
  std::map<std::pair<TensorId, DeviceId>, Nanoseconds> arrivals = {};
};

// How a GPU's ops are launched: in graphs, as many as can go together; one by one; or one by one
// with the time of each, which takes longer.
enum class GpuLaunch { kGraphs, kEach, kTimed };

// What floating tensors are executed in; kOwn: 16 bits where the graph has such. kTf32: float32,
// whose products and convolutions on GPUs may round factors to 10 bits.
enum class Numbers { kFloat32, kFloat64, kOwn, kTf32 };

struct ProgramOptions {
  ProgramOrder order = {};
  std::uint64_t seed = 0;
  Numbers numbers = Numbers::kFloat32;
  GpuLaunch gpu_launch = GpuLaunch::kGraphs;
  InPlace in_place = InPlace::kSums;  // which ops may write over an input
};

// The devices' and links' threads, as long as it lives. One program steps at a time.
class Runtime {
 public:
  virtual ~Runtime() = default;

  // Throws an Error that names the first op without a kernel, or without shapes.
  virtual std::unique_ptr<Program> load(std::shared_ptr<const Graph> graph,
                                        const Placement& placement,
                                        const ProgramOptions& options) = 0;
  // How long a tensor of that many bytes takes that no cache holds, as a step would send it.
  virtual Nanoseconds send(DeviceId from, DeviceId to, Bytes bytes) = 0;
  // Why times may mislead: more threads than cores.
  virtual std::vector<std::string> warnings() const = 0;
};

// Other processes on this machine that execute steps of their own at the same time, on devices like
// these.
struct Neighbours {
  std::vector<int> cores = {};  // of their devices
  int count = 1;                // this process included: the cores that are left are divided
  int index = 0;                // this process
};

struct RuntimeOptions {
  // Looked at several times a second; a step ends between two ops, and waits for no link.
  const std::atomic<bool>* cancelled = nullptr;
  bool limit_memory = false;  // devices have no more than the cluster says
  // The other ranks, of which each executes its share of the devices, in order and as even as can
  // be. Every rank then starts a runtime of the same cluster, loads the same programs and executes
  // the same steps; rank 0's records are of all devices, those of others of their own. nullptr:
  // all devices are here.
  Peers* peers = nullptr;
  Neighbours neighbours = {};
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Throws an Error that names the device that has no `runs_on`, or none that is here.
  virtual std::unique_ptr<Runtime> start(std::shared_ptr<const Cluster> cluster,
                                         const RuntimeOptions& options) const = 0;
  virtual std::vector<LocalGpu> gpus() const = 0;  // that libtorch can use
};

// How many threads still run an op that was given up on. A process that ends meanwhile must not
// destroy what they use.
std::atomic<int>& threads_left_alone();

// Loads the library with the first call. Throws an Error that says who needs it, "emplace run",
// when that fails.
const Backend& backend(const std::string& needed_by);

}  // namespace emplace::exec

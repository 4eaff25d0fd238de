// Measuring a model on this machine: how long its ops take inside whole steps, alone and while all
// devices are busy, what lies between ops, and what links carry. The result is the same graph with
// measured times and the same cluster with measured links and gaps.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "run/link_fit.h"
#include "run/measurement.h"

namespace emplace {

struct ProfileSettings {
  int phases = 3;     // each measures everything once: a machine's speed changes over time
  int proposals = 8;  // of a search, at most, executed to learn what transfers cost beside the link
  MeasureSettings measure = {.steps = 7};
  bool busy = true;  // also with all devices busy
};

// What one phase found. By kind of device, in the order of Profiler::kinds().
struct ProfilePhase {
  struct Kind {
    Nanoseconds step = 0;
    std::vector<Nanoseconds> ops = {};  // by op, within a step of one device
    std::vector<Bytes> temporary = {};  // by op: memory beside what it reads and writes
    // The same while the other devices are busy; or empty. Of a CPU beside a GPU, in steps whose
    // ops are scattered over both, so that what ops read comes from elsewhere.
    std::vector<Nanoseconds> busy_ops = {};
  };
  std::vector<Kind> kinds = {};
  std::vector<std::vector<LinkSample>> links =
      {};                     // by rule of the cluster; of throttled ones, none
  Nanoseconds reference = 0;  // work that is always the same
};

// What all phases say together.
struct KindProfile {
  std::string kind;
  std::string device;     // on which it was measured
  TimeSpread step = {};   // over phases
  Nanoseconds ops = 0;    // sum of the ops' medians
  Nanoseconds gap = 0;    // between two ops
  double busy_ratio = 0;  // how much longer ops take when all devices are busy; 0: not measured
};

struct LinkProfile {
  std::string from;
  std::string to;
  LinkFit fit = {};
  bool measured = false;  // no: it is what the cluster says
  bool throttled = false;
  Nanoseconds added = 0;  // to the latency: what transfers cost beside (run/transfer_costs.h)
};

// How learning what transfers cost beside the link ended.
struct LearnedTransfers {
  int proposals = 0;    // that a search made
  double error = 0;     // of the last one's prediction, before it was learned from
  bool near = false;    // that is little, or the last is on one device
  bool failed = false;  // it could not be executed
};

struct Profile {
  std::shared_ptr<const Graph> graph = nullptr;
  ClusterSpec cluster = {};
  std::vector<KindProfile> kinds = {};
  std::vector<LinkProfile> links = {};
  std::optional<LearnedTransfers> transfers = std::nullopt;
  Nanoseconds reference = 0;  // work that is always the same, in the middle phase
  double drift = 1;           // of that, the slowest phase by the fastest
};

// What is being measured, for whoever watches from another thread.
struct ProfileProgress {
  std::atomic<int> phase{0};     // all of them: then what a search proposes
  std::atomic<int> proposal{0};  // from 1 on
  std::atomic<int> steps{0};     // of the phase or proposal

  void begin_phase(int number);
  void begin_proposal(int number);
};

class Profiler {
 public:
  Profiler(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
           ProfileSettings settings);

  // Names of kinds, each with the device that stands for it.
  const std::vector<std::pair<std::string, DeviceId>>& kinds() const { return kinds_; }
  // Of phases that a file tells of: throws an Error that names what does not fit this graph and
  // cluster, and times that are out of range.
  void check(const std::vector<ProfilePhase>& phases) const;
  // How many steps a phase has, for progress.
  int steps_of_phase() const;
  std::string describe(const ProfileProgress& progress) const;

  // Throws an Error that says which step failed, and why.
  ProfilePhase measure(Laboratory& laboratory, int phase) const;
  // Of one phase or more.
  Profile combine(const std::vector<ProfilePhase>& phases) const;
  // Then, where links can be learned about: executes what a search proposes. `proposed` is told how
  // many proposals there were, with each.
  void learn_transfers(Laboratory& laboratory, Profile& profile,
                       const std::function<void(int)>& proposed = {}) const;

 private:
  Measurement measure_or_throw(Laboratory& laboratory, const std::shared_ptr<const Graph>& graph,
                               const Placement& placement, const std::string& what) const;
  void measure_gpu_ops(Laboratory& laboratory, DeviceId device, Measurement& step) const;
  void measure_busy(Laboratory& laboratory, ProfilePhase& phase) const;
  void measure_scattered(Laboratory& laboratory, int seed, ProfilePhase& phase) const;
  std::vector<std::vector<LinkSample>> measure_links(Laboratory& laboratory) const;
  void add_sent(const Measurement& measurement, std::vector<std::vector<LinkSample>>& links) const;
  bool has_gpu() const;
  bool worth_scattering() const;
  DeviceId turns() const;  // of scattered steps
  KindProfile combine_kind(std::size_t kind, const std::vector<ProfilePhase>& phases,
                           std::vector<Nanoseconds>& alone, std::vector<Nanoseconds>& busy) const;
  LinkProfile combine_link(std::size_t rule, const std::vector<ProfilePhase>& phases) const;

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  ProfileSettings settings_;
  std::vector<std::pair<std::string, DeviceId>> kinds_;
  std::int64_t num_timed_ = 0;
};

}  // namespace emplace

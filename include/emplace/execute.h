// Steps executed for real on this machine: a placement beside what was predicted of it, and a
// model whose op times and links are measured (docs/execution.md). The cluster's devices say where
// they are, as those of read_cluster("local") do. Needs libtorch, which is loaded with the first
// call. What is executed has the machine for itself: a second call waits for the first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/simulate.h>

namespace emplace {

struct RunOptions {
  int steps = 50;    // that are timed
  int warm_up = 10;  // before these; they do not count
  // Of floating tensors: float32, float64, own (as the graph), or tf32 (float32, but GPUs may round
  // factors to 10 bits).
  std::string numbers = "float32";
  bool fixed_order = false;   // exactly the simulated sequence of ops, not just its priorities
  bool launch_each = false;   // GPUs' ops one by one, not in graphs
  bool limit_memory = false;  // devices have no more than the cluster says
  std::uint64_t seed = 0;     // of parameters, inputs and dropout
  // Set by anyone, at any time: what was timed until then is the result.
  const std::atomic<bool>* cancelled = nullptr;
  ProgressListener on_progress = {};
};

// A placement executed for real, beside what was predicted for it. Cheap to copy.
class ExecutionResult {
 public:
  // Whether memory was enough. If not, `failure` says where it was not, and nothing was measured.
  bool fits() const;
  const std::string& failure() const;

  Nanoseconds time() const;  // of a step: the median
  Nanoseconds low() const;   // half of the steps are between these two
  Nanoseconds high() const;
  Nanoseconds predicted() const;
  // Predicted from the op times of these very steps: how far that is off is the simulator's part.
  Nanoseconds oracle() const;
  // How much longer work that is always the same took afterwards; nothing where it was not done.
  std::optional<double> drift() const;
  bool interrupted() const;  // fewer steps than asked for

  const std::vector<Nanoseconds>& steps() const;     // those that count
  const std::vector<double>& losses() const;         // of all steps that have one, warm-up included
  const std::vector<Nanoseconds>& op_times() const;  // by op: medians; 0: has no time of its own
  std::vector<Bytes> peaks() const;                  // by device
  const Timeline& measured_timeline() const;         // of the step in the middle
  const Timeline& predicted_timeline() const;
  const Placement& placement() const;
  const std::vector<std::string>& notes() const;  // why times may mislead

  std::string to_text() const;
  std::string to_json() const;
  // The measured timeline above the predicted one, for Perfetto; empty where nothing was measured.
  std::string trace_json() const;

  struct State;
  explicit ExecutionResult(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Throws an Error that names the device on which nothing can be executed, the op that has no kernel
// or failed; or when it is cancelled before a step was timed.
ExecutionResult run(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                    const Schedule& schedule = {}, const RunOptions& options = {});

struct ProfileOptions {
  int phases = 3;     // how often everything is measured: speeds change over time
  int steps = 7;      // that are timed, of each kind of device in each phase
  int warm_up = 10;   // before these
  int proposals = 8;  // of a search, at most, executed to learn what transfers cost besides
  std::string numbers = "float32";  // as above
  bool busy = true;                 // also with all devices busy: needs memory for a model on each
  const std::atomic<bool>* cancelled = nullptr;
  ProgressListener on_progress = {};
};

// A graph with measured times, and a cluster with measured links. Cheap to copy.
class ProfileResult {
 public:
  std::shared_ptr<const Graph> graph() const;
  std::shared_ptr<const Cluster> cluster() const;
  // The slowest phase by the fastest, of work that is always the same.
  double drift() const;
  const std::vector<std::string>& notes() const;
  std::string to_text() const;
  std::string to_json() const;

  struct State;
  explicit ProfileResult(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Throws an Error that says which step failed, and why; or when it is cancelled.
ProfileResult profile(const std::shared_ptr<const Problem>& problem,
                      const ProfileOptions& options = {});

}  // namespace emplace

// What every search is given and tells: how long it may go on, how to stop it, how far it has come,
// what it has proven; and which methods there are, with their options.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <emplace/types.h>

namespace emplace {

// How long a search may go on. Constructive methods finish whatever the budget; searches ask
// `spent` between evaluations.
class Budget {
 public:
  std::optional<double> seconds = std::nullopt;
  std::optional<std::int64_t> evaluations = std::nullopt;
  // Set by anyone, at any time, e.g. by Ctrl-C: the search ends, and the best so far is its answer.
  const std::atomic<bool>* cancelled = nullptr;
  // That a search may use. Under an evaluation budget its answer does not depend on them.
  int threads = 1;

  // What a search takes for itself when nobody says how long it may go on.
  static constexpr double kDefaultSeconds = 10;
  Budget or_default(double own_seconds = kDefaultSeconds) const {
    Budget limited = *this;
    if (!seconds && !evaluations) limited.seconds = own_seconds;
    return limited;
  }
  // The same, from now on.
  Budget restarted() const {
    Budget fresh = *this;
    fresh.start_ = std::chrono::steady_clock::now();
    return fresh;
  }

  double elapsed_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool spent(std::int64_t evaluations_so_far) const {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return true;
    if (evaluations && evaluations_so_far >= *evaluations) return true;
    return seconds && elapsed_seconds() >= *seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// A proven limit: no answer that fits is better than this.
struct LowerBound {
  Nanoseconds step = 0;  // or period
  std::string reason;    // in a few words
};

// How far a search has come.
struct Progress {
  std::string line;  // for people
  double seconds = 0;
};
// Called now and then, from a thread of the library's, until the search ends.
using ProgressListener = std::function<void(const Progress&)>;

// What people are shown of an option.
struct OptionInfo {
  std::string name;
  std::string type;           // integer, real, flag, choice, text
  std::string default_value;  // as one would write it
  std::string range;          // "1 to 10", "true, false", "a, b, c"
  std::string help;
  // With preset=paper, of methods that have this preset; else empty.
  std::string paper = {};
};

// (name, value) pairs as written, in order.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

// A placer, or a way to partition. Methods are chosen by specs: "heft", "hdp(groups=64,lr=0.01)".
struct MethodInfo {
  std::string key;
  std::string family;     // of placers: heuristic, partition, search, exact, learned
  std::string summary;    // one line
  std::string reference;  // the paper
  bool randomized = false;
  bool learns = false;  // has learning curves and checkpoints
  std::vector<OptionInfo> options = {};
};

// By family and key.
std::vector<MethodInfo> list_placers();
std::vector<MethodInfo> list_partition_methods();

// One point of a learning curve: after a round of sampling, evaluating and learning.
struct TrainingPoint {
  std::int64_t round = 0;
  std::int64_t evaluations = 0;  // so far, those before a resumed run included
  double seconds = 0;            // so far, likewise
  // So far, likewise: what measuring these placements would take, 15 steps each (5 to warm up, 10
  // that count); what does not fit stops in its first step, and what cannot run takes no time.
  double simulated_seconds = 0;
  Nanoseconds best = 0;        // of the placements that fit, so far; 0: none fits yet
  Nanoseconds round_best = 0;  // of those of this round that fit; 0: none does
  double mean_seconds = 0;     // step time of this round's placements, whether they fit or not
  double fitting_share = 0;    // of this round's placements
  bool learned = true;       // whether the round ended in an update: else what follows says nothing
  double mean_cost = 0;      // what the learner minimises
  double baseline = 0;       // what it compares with
  double entropy = 0;        // nats per decision
  double kl = 0;             // from the policy before the round, per decision
  double gradient_norm = 0;  // of the last step, before clipping
  // Seconds of this round. Evaluation runs beside the others, so `waiting` is what it really costs.
  double policy_seconds = 0;
  double learner_seconds = 0;
  double evaluation_seconds = 0;
  double waiting_seconds = 0;
  // Of methods that learn which ops to place together: how many groups were in use, in the mean of
  // the round's groupings, and the share of ops (or of what must share a device) whose likeliest
  // group the update changed.
  std::optional<double> groups_used = std::nullopt;
  std::optional<double> groups_changed = std::nullopt;
};

}  // namespace emplace

// Placements out: found, compared, explained.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/placer_function.h>
#include <emplace/search.h>
#include <emplace/simulate.h>

namespace emplace {

// For placers that learn.
struct LearningSettings {
  std::string device = {};      // where networks compute: cpu, or cuda:0; empty: cpu
  std::string curves = {};      // a folder for learning curves; empty: none are kept
  std::string checkpoint = {};  // a file; empty: none is written
  std::optional<double> checkpoint_seconds = {};  // how often
  bool resume = false;                            // go on from the checkpoint
};

struct PlaceOptions {
  std::string placer = "auto";  // specs, families or "all": the best of them is the answer
  std::vector<PlacerFunction> functions =
      {};  // placers of yours, beside these; then it may be empty
  // The order of the ops that are ready on a device: own (the placer's), or fifo, pct or msr, under
  // which the placer then searches. all: of the answer's own order and these, the best; where
  // placers are compared, each of them in turn.
  std::string scheduler = "own";
  Objective objective = {};
  Budget budget = {};
  std::uint64_t seed = 1;
  int most_devices = 0;  // at most so many devices are used, whichever serve best; 0: all
  // CPUs take ops like any other device; else only where an op must be on one, or nothing fits
  // without. What they need to start the accelerators' kernels is not simulated.
  bool use_cpu = false;
  std::vector<SavedPlacement> starts = {};  // to begin from, for placers that search
  std::int64_t samples = 0;                 // of a step, for rates; 0: not known
  LearningSettings learning = {};
  ProgressListener on_progress = {};
};

// A placement with everything that is known of it. Cheap to copy.
class Answer {
 public:
  const Placement& placement() const;
  const Schedule& schedule() const;
  const Timeline& timeline() const;
  Nanoseconds time() const;  // step time, or period if that is the objective
  bool fits() const;
  // No placement that fits is faster than this; proven.
  const LowerBound& bound() const;
  // How far the time is above the bound: 0.04 is 4 %.
  double gap() const;
  bool optimal() const;
  // Memory that a device needs: its peak, or what a stream keeps there.
  Bytes used(DeviceId device) const;
  // Of a stream: how long each step is in it, and how many are at a time (0 where the stream was
  // not simulated). Otherwise the step time, and 1.
  Nanoseconds latency() const;
  int in_flight() const;
  // What gets done, where it is known: samples if the options say how many a step has, tokens if
  // the graph has an input of them.
  std::optional<double> samples_per_second() const;
  std::optional<double> tokens_per_second() const;
  // Model FLOPs utilisation: of the peak of the devices that are used, 0 to 1.
  std::optional<double> utilisation() const;

  // How it was found.
  std::string placer() const;
  std::uint64_t seed() const;
  std::int64_t evaluations() const;
  double search_seconds() const;
  const std::vector<std::string>& notes() const;

  // Step time, bound, devices and channels: a screen of text.
  std::string to_text() const;
  // What limits it, what is where, what one device would do, and, where it does not fit, what is
  // short and what would help. Runs no placer.
  std::string explanation() const;
  // Both as the JSON object of docs/formats.md.
  std::string to_json() const;
  // emplace.placement/1, and the timeline for Perfetto.
  std::string placement_json() const;
  std::string trace_json() const;

  struct State;
  explicit Answer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// The best placement that was found, whether it fits or not. Throws an Error when a spec or start
// is wrong, when the answer needs a link that there is not, or when it is proven that nothing fits.
Answer place(const std::shared_ptr<const Problem>& problem, const PlaceOptions& options = {});

// A given placement, assessed in the same way.
Answer assess(const std::shared_ptr<const Problem>& problem, const Placement& placement,
              const Schedule& schedule = {}, const Objective& objective = {},
              std::int64_t samples = 0);

struct CompareOptions : PlaceOptions {
  CompareOptions() { placer = "all"; }
  int seeds = 1;  // that randomised placers run with, from `seed` on; each has the whole budget
  bool best_orders = false;  // of each placer's orders of ops, the best alone
};

// Best first. Placers that cannot cope with the problem are left out, and said in the notes of the
// first.
std::vector<Answer> compare(const std::shared_ptr<const Problem>& problem,
                            const CompareOptions& options = {});

}  // namespace emplace

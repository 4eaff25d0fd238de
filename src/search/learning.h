// What a placer that learns is told beside its options, and what it tells while it learns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace emplace {

// One point of the learning curves: after a round of sampling, evaluating and learning.
struct TrainingPoint {
  std::int64_t round = 0;
  std::int64_t evaluations = 0;  // so far, those before a resumed run included
  double seconds = 0;            // so far, likewise
  Nanoseconds best = 0;          // of the placements that fit, so far; 0: none fits yet
  Nanoseconds round_best = 0;    // of those of this round that fit; 0: none does
  double mean_seconds = 0;       // step time of this round's placements, whether they fit or not
  double fitting_share = 0;      // of this round's placements
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
};

// Where a learning placer computes, and where it keeps what it must not lose. Nothing here changes
// what is found on one device.
struct Learning {
  std::string device = "cpu";  // or cuda:0
  std::function<void(const TrainingPoint&)> on_round = {};
  // Takes a checkpoint's bytes to a safe place: every `save_seconds`, and at the end.
  std::function<void(std::string_view)> save = {};
  double save_seconds = 30;
  // A checkpoint's bytes to go on from, and what to call it in errors; empty: from the beginning.
  std::string resume = {};
  std::string resume_name = {};
};

}  // namespace emplace

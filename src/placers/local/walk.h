// What the walks of hill climbing, annealing and their kin share: a place, the best place so far, a
// neighbourhood that knows where time is lost, and an account of evaluations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"

#include "placers/local/chains.h"
#include "placers/local/neighbourhood.h"
#include "placers/local/walker.h"

namespace emplace {

class Walk {
 public:
  // The graph is the problem's (build_coarse_graph); both must outlive it. It is nowhere yet.
  Walk(Evaluator& evaluator, const CoarseGraph& graph, std::string origin, Rng rng);

  Rng& rng() { return rng_; }
  Neighbourhood& neighbourhood() { return neighbourhood_; }
  const Placement& placement() const { return walker_->placement(); }
  Schedule schedule() const { return evaluator_.schedule_of(placement(), schedule_); }
  const Evaluation& value() const { return walker_->value(); }
  Solution here() const { return {placement(), schedule(), value(), origin_}; }
  bool started() const { return started_; }
  // Of all places so far; there is none before the first go_to.
  const Solution& best() const { return best_; }

  // What may be evaluated from here on. A few evaluations more are lent by the next turn, so that
  // short turns do not keep a walk from what takes several.
  void begin(const Turn& turn);
  bool more() const { return more_than(0); }
  bool more_than(std::int64_t evaluations) const {
    return left_ > evaluations && !clock_->spent(0);
  }
  std::int64_t spent() const { return spent_; }  // in all turns
  // Pays for an attempt that led to nothing: where little can move, a walk must still end.
  void pay_idle();

  void go_to(const Solution& solution);
  // The same, and what was the best so far is forgotten.
  void start_over(const Solution& solution);
  // Goes to the best place so far, in the best order for it: up to so many evaluations.
  static constexpr std::int64_t kReturn = 8;
  void return_to_best();
  // The same placement in the best order for it.
  void reorder();

  // Clusters of groups that moves keep together: about so many, none across devices.
  void cluster(std::uint32_t wanted);
  // The same, and none across parts: by group, such that no part spans devices.
  void cluster(const std::vector<std::uint32_t>& parts, std::uint32_t wanted);

  // Whether placements that do not fit may be passed through on the way: steps are then judged by
  // their time and a price of what overflows, which rises while the walk does not fit and falls
  // while it does.
  void soften_memory(bool soft);

  // What a move must stay below: the present value and what the Metropolis rule draws at this
  // temperature, in nanoseconds; nothing worse at 0. Overflow comes first, so a placement that fits
  // is not left for one that does not; one that does not may draw a little more of it.
  Evaluation threshold(double temperature);
  // Tries a move, and makes it if it stays below the threshold. Whether it was made.
  bool step(double temperature);
  bool step(Neighbourhood::Kind kind, double temperature);
  // Makes a move however bad it is.
  void kick();
  // The value of these moves, which must leave the placement valid, and the moves made.
  Evaluation attempt(std::span<const Move> moves, const std::optional<Evaluation>& cutoff);
  void make(std::span<const Move> moves, const Evaluation& value);

  // Looks where the time goes now, and the memory, unless it knows.
  void focus();
  // As of the last look; by device.
  const std::vector<HotSpot>& spots() const { return spots_; }
  const std::vector<Bytes>& peaks() const { return peaks_; }

 private:
  void pay(std::int64_t evaluations) {
    left_ -= evaluations;
    spent_ += evaluations;
  }
  template <class Propose>
  bool propose(const Propose& propose);
  bool metropolis(double temperature);
  bool metropolis_with_price(double temperature);
  Nanoseconds priced(const Evaluation& value) const;
  void remember();

  Evaluator& evaluator_;
  const CoarseGraph& graph_;
  std::string origin_;
  Rng rng_;
  std::unique_ptr<Walker> walker_;
  Neighbourhood neighbourhood_;
  Schedule schedule_;
  ReadyOrder order_;  // of schedule_
  Solution best_;
  bool started_ = false;
  bool best_has_schedule_ = false;  // best_.schedule is schedule(), which moves do not change
  std::int64_t left_ = 0;
  std::int64_t spent_ = 0;
  const Budget* clock_ = nullptr;
  bool soft_memory_ = false;
  double price_ = 0;  // of a byte that overflows, in nanoseconds
  double least_price_ = 0;
  int steps_since_focus_ = 0;
  bool moved_since_focus_ = true;
  std::vector<HotSpot> spots_;
  std::vector<Bytes> peaks_;
  std::vector<Move> moves_;
};

}  // namespace emplace

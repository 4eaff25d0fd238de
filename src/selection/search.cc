#include "selection/search.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/parallel.h"

namespace emplace {
namespace {

// Table entries that the opening may look at, and its steps.
constexpr double kOpeningWork = 5e7;
constexpr double kOpeningSteps = 400;
// Of the time, for the prices before the first thread walks too; of a minute and of longer runs the
// same, so that a longer one goes on where the shorter one ends.
constexpr double kAscentShare = 0.25;
constexpr double kAscentMost = 15;
// Seconds of an episode of a walk: a share of the time, likewise.
constexpr double kEpisodeShare = 0.05;
constexpr double kEpisodeLeast = 0.5;
constexpr double kEpisodeMost = 3;
// Steps after which a bound that has not risen by this share has settled.
constexpr int kSettledSteps = 150;
constexpr double kSettled = 1e-5;
// How many choices of the messages are kept to walk from.
constexpr std::size_t kStarts = 12;
// Of the passes whose bound is as good as the best cost, every how many is proven exactly.
constexpr int kCertifyEvery = 8;
// An episode goes on as long as it gets better by this share.
constexpr double kFurther = 1e-5;

}  // namespace

void SelectionSearch::set_start(std::vector<std::int32_t> choice) {
  const Assignment given(tables_, choice);
  incumbent_.offer(given);
  if (!given.feasible()) return;
  starts_.push_back({static_cast<double>(given.cost()), std::move(choice)});
  prices_.assign(tables_.num_times(), 0.0);
  ++version_;
}

void SelectionSearch::consider(const PriceAscent& ascent) {
  const Assignment& decoded = ascent.decoded();
  incumbent_.offer(decoded);
  const double merit = static_cast<double>(decoded.cost()) +
                       tables_.forbidden() * decoded.blocked() +
                       4 * usual_price(ascent.best_prices()) * decoded.excess();
  const std::lock_guard lock(mutex_);
  const auto at = std::lower_bound(starts_.begin(), starts_.end(), merit,
                                   [](const Start& start, double m) { return start.merit < m; });
  if (at == starts_.end() && starts_.size() >= kStarts) return;
  if (at != starts_.end() && at->merit == merit) return;
  const bool best = at == starts_.begin();
  starts_.insert(at, {merit, {decoded.choice().begin(), decoded.choice().end()}});
  if (starts_.size() > kStarts) starts_.pop_back();
  if (!best) return;
  prices_ = ascent.best_prices();
  ++version_;
}

void SelectionSearch::certify(const PriceAscent& ascent) {
  if (!bounds_hold_ || !incumbent_.feasible()) return;
  if (ascent.last_bound() <= static_cast<double>(incumbent_.cost()) - 1) return;
  if (++near_proofs_ % kCertifyEvery == 1) incumbent_.raise_bound(ascent.certified_bound());
}

void SelectionSearch::ascend_once() {
  incumbent_.count_evaluation();
  if (incumbent_.feasible()) ascent_.tell(static_cast<double>(incumbent_.cost()));
  ascent_.step();
  consider(ascent_);
  const double bound = ascent_.bound();
  if (bounds_hold_) {
    incumbent_.raise_bound(
        static_cast<std::int64_t>(std::floor(bound - 1 - 1e-9 * std::abs(bound))));
  }
  certify(ascent_);
}

void SelectionSearch::ascend(double until) {
  double settled = ascent_.bound();
  int since = 0;
  while (!incumbent_.done() && incumbent_.elapsed() < until) {
    ascend_once();
    const double bound = ascent_.bound();
    if (++since == 1 || bound > settled + kSettled * std::abs(settled)) {
      settled = bound;
      since = 1;
    }
    if (since > kSettledSteps && ascent_.settled()) break;
  }
  const std::lock_guard lock(mutex_);
  prices_ = ascent_.best_prices();
  ++version_;
  settled_ = true;
}

std::vector<std::int32_t> SelectionSearch::best_start() const {
  const std::lock_guard lock(mutex_);
  return starts_.front().choice;
}

std::vector<std::int32_t> SelectionSearch::some_start(Rng& rng) const {
  const std::lock_guard lock(mutex_);
  return starts_[rng.below(starts_.size())].choice;
}

std::vector<double> SelectionSearch::prices() const {
  const std::lock_guard lock(mutex_);
  return prices_;
}

// Follows the best start until the prices have settled; then one episode after the other, each
// from the best so far or from another start, until it gets no further.
void SelectionSearch::walk(Rng rng, double episode) {
  while (version_ == 0 && !incumbent_.done()) std::this_thread::yield();
  if (version_ == 0 || incumbent_.done()) return;
  std::int64_t version = version_;
  SelectionWalk walk(tables_, prices(), best_start(), incumbent_, rng.split(0));
  double marked = incumbent_.elapsed();
  double before = walk.merit();
  double least = before;
  while (!incumbent_.done()) {
    if (version != version_) {
      version = version_;
      walk.consider(best_start(), prices());
    }
    walk.advance();
    const double now = incumbent_.elapsed();
    least = std::min(least, walk.merit());
    if (now < marked + episode) continue;
    if (settled_ && least > before - kFurther * std::abs(before)) {
      walk.restart(incumbent_.feasible() && rng.chance(0.5) ? incumbent_.choice()
                                                            : some_start(rng));
      least = walk.merit();
    }
    marked = now;
    before = least;
  }
}

void SelectionSearch::run(int threads, Rng rng) {
  // A fixed number of steps first: what they prove does not depend on threads.
  const auto steps = static_cast<int>(std::clamp(
      kOpeningWork / static_cast<double>(tables_.num_entries() + 1), 10.0, kOpeningSteps));
  for (int step = 0; step < steps && !incumbent_.proven(); ++step) {
    ascend_once();
    if (incumbent_.done()) break;
  }
  const double seconds = incumbent_.limit();
  const double began = incumbent_.elapsed();
  parallel_for(threads, threads, [&](std::size_t thread) {
    const double ascent = std::min(kAscentMost, kAscentShare * std::max(0.0, seconds - began));
    if (thread == 0) ascend(began + (threads > 1 ? 1.5 : 1.0) * ascent);
    walk(rng.split(thread), std::clamp(kEpisodeShare * seconds, kEpisodeLeast, kEpisodeMost));
  });
}

}  // namespace emplace

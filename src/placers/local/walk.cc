#include "placers/local/walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "placers/local/orders.h"

namespace emplace {
namespace {

// Steps after which the critical chain is looked for again.
constexpr int kFocusInterval = 32;
constexpr int kIdleProposals = 64;
constexpr int kOrders = 6;  // to try
// How much more overflow than now a step may draw, as a share, where there is some.
constexpr double kOverflowTemperature = 0.02;
// Of overflow, in steps per capacity of all devices together; and how it changes with each step.
constexpr double kLeastPrice = 0.2;
constexpr double kFirstPrice = 2;
constexpr double kMostPrice = 1000;
constexpr double kPriceRise = 1.01;
constexpr double kPriceFall = 0.995;
// Far above any step time, and what may be added to one.
constexpr double kMostUphill = 1e17;

}  // namespace

Walk::Walk(Evaluator& evaluator, const CoarseGraph& graph, std::string origin, Rng rng)
    : evaluator_(evaluator),
      graph_(graph),
      origin_(std::move(origin)),
      rng_(rng),
      walker_(Walker::make(evaluator)),
      neighbourhood_(evaluator.problem(), graph) {}

void Walk::begin(const Turn& turn) {
  left_ = std::min<std::int64_t>(left_, 0) + turn.evaluations;
  clock_ = turn.clock;
}

void Walk::go_to(const Solution& solution) {
  schedule_ = solution.schedule;
  order_ = ReadyOrder(evaluator_.problem(), schedule_);
  walker_->start(solution.placement, schedule_);
  pay(1);
  best_has_schedule_ = false;
  moved_since_focus_ = true;
  if (!started_) best_ = here();
  started_ = true;
  remember();
}

void Walk::start_over(const Solution& solution) {
  started_ = false;
  go_to(solution);
}

void Walk::reorder() {
  if (!evaluator_.order_is_free() || clock_->spent(0)) return;
  Solution ordered = here();
  pay(kOrders);
  if (improve_order(evaluator_, *clock_, ordered, kOrders, rng_)) go_to(ordered);
}

void Walk::return_to_best() {
  if (best_.value < value()) go_to(Solution(best_));
  reorder();
}

void Walk::cluster(std::uint32_t wanted) {
  cluster(devices_of_groups(evaluator_.problem(), placement()), wanted);
}

void Walk::cluster(const std::vector<std::uint32_t>& parts, std::uint32_t wanted) {
  neighbourhood_.set_clusters(cluster_groups(graph_, parts, wanted, rng_));
}

void Walk::soften_memory(bool soft) {
  soft_memory_ = soft;
  double capacity = 0;
  for (DeviceId device = 0; device < evaluator_.problem().num_devices(); ++device) {
    const Bytes memory = evaluator_.problem().cluster().device(device).memory;
    if (memory != kUnlimited) capacity += static_cast<double>(memory);
  }
  least_price_ = kLeastPrice * static_cast<double>(value().step) / std::max(1.0, capacity);
  price_ = kFirstPrice / kLeastPrice * least_price_;
}

template <class Propose>
bool Walk::propose(const Propose& propose) {
  for (int i = 0; i < kIdleProposals; ++i) {
    if (propose()) return true;
  }
  pay_idle();
  return false;
}

void Walk::pay_idle() {
  evaluator_.count(1);
  pay(1);
}

bool Walk::step(double temperature) {
  if (++steps_since_focus_ > kFocusInterval) focus();
  if (!more()) return false;
  return propose([&] { return neighbourhood_.propose(placement(), rng_, moves_); }) &&
         metropolis(temperature);
}

bool Walk::step(Neighbourhood::Kind kind, double temperature) {
  return propose([&] { return neighbourhood_.propose(kind, placement(), rng_, moves_); }) &&
         metropolis(temperature);
}

Evaluation Walk::threshold(double temperature) {
  Evaluation limit = value();
  limit.step += 1;
  if (temperature <= 0) return limit;
  const double drawn = -std::log(1 - rng_.uniform());
  limit.step += static_cast<Nanoseconds>(std::min(temperature * drawn, kMostUphill));
  limit.overflow +=
      static_cast<Bytes>(kOverflowTemperature * drawn * static_cast<double>(limit.overflow));
  return limit;
}

// The draw comes first: then there is a value that the move must stay below, and most moves show
// early that they do not.
bool Walk::metropolis(double temperature) {
  if (soft_memory_) return metropolis_with_price(temperature);
  const Evaluation cutoff = threshold(temperature);
  const Evaluation tried = attempt(moves_, cutoff);
  if (!(tried < cutoff)) return false;
  make(moves_, tried);
  return true;
}

bool Walk::metropolis_with_price(double temperature) {
  const double factor = value().fits() ? kPriceFall : kPriceRise;
  price_ = std::clamp(price_ * factor, least_price_, least_price_ * (kMostPrice / kLeastPrice));
  const double drawn = -std::log(1 - rng_.uniform());
  const Nanoseconds limit =
      priced(value()) + 1 + static_cast<Nanoseconds>(std::min(temperature * drawn, kMostUphill));
  pay(1);
  const Evaluation tried = walker_->try_before(moves_, limit);
  if (priced(tried) >= limit) return false;
  make(moves_, tried);
  return true;
}

Nanoseconds Walk::priced(const Evaluation& value) const {
  const double extra = price_ * static_cast<double>(value.overflow);
  return value.step + static_cast<Nanoseconds>(std::min(extra, kMostUphill));
}

void Walk::kick() {
  if (!propose([&] { return neighbourhood_.propose(placement(), rng_, moves_); })) return;
  make(moves_, attempt(moves_, {}));
}

Evaluation Walk::attempt(std::span<const Move> moves, const std::optional<Evaluation>& cutoff) {
  pay(1);
  return walker_->try_moves(moves, cutoff);
}

void Walk::make(std::span<const Move> moves, const Evaluation& value) {
  walker_->accept(moves, value);
  moved_since_focus_ = true;
  remember();
}

void Walk::remember() {
  if (!(value() < best_.value)) return;
  best_.value = value();
  best_.placement = placement();
  if (!best_has_schedule_) best_.schedule = schedule();
  best_has_schedule_ = !evaluator_.order_follows_placement();
}

void Walk::focus() {
  steps_since_focus_ = 0;
  if (!moved_since_focus_) return;
  moved_since_focus_ = false;
  pay(1);
  evaluator_.objective().match(
      [&](const StepTime&) { spots_ = evaluator_.hot_spots(placement(), order_, &peaks_); },
      [&](const StreamPeriod&) { evaluator_.evaluate(placement(), ReadyOrder(), peaks_); });
  neighbourhood_.set_focus(spots_, peaks_);
}

}  // namespace emplace

#include "selection/prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace emplace {
namespace {

constexpr double kMemory = 0.8;     // of the mean usage
constexpr int kPricePatience = 25;  // steps without a better bound
constexpr double kLeastShare = 0.002;

}  // namespace

double usual_price(std::span<const double> prices) {
  double total = 0;
  double count = 0;
  for (const double price : prices) {
    total += price;
    count += price > 0 ? 1 : 0;
  }
  return count > 0 ? total / count : 0;
}

PriceAscent::PriceAscent(const CostTables& tables)
    : tables_(tables),
      messages_(tables),
      decoded_(tables, std::vector<std::int32_t>(tables.num_nodes(), 0)),
      prices_(tables.num_times(), 0.0),
      best_prices_(prices_),
      mean_usage_(tables.num_times(), 0.0),
      best_bound_(-std::numeric_limits<double>::infinity()) {}

bool PriceAscent::settled() const {
  return share_ <= 10 * kLeastShare;
}

void PriceAscent::step() {
  messages_.set_prices(prices_);
  last_bound_ = messages_.pass();
  messages_.decode(choice_);
  decoded_.reset(choice_);
  if (decoded_.feasible()) {
    feasible_cost_ = std::min(feasible_cost_, static_cast<double>(decoded_.cost()));
  }
  ++since_best_;
  if (last_bound_ > best_bound_) {
    best_bound_ = last_bound_;
    best_prices_ = prices_;
    since_best_ = 0;
  }
  ++steps_;
  move_prices();
}

void PriceAscent::move_prices() {
  const auto& slack = tables_.problem().slack;
  const auto usage = decoded_.usage();
  if (since_best_ > kPricePatience) {
    share_ = std::max(share_ * 0.7, kLeastShare);
    since_best_ = 0;
    prices_ = best_prices_;
  }
  const double memory = steps_ == 1 ? 0.0 : kMemory;
  double square = 0;
  for (std::size_t t = 0; t < slack.size(); ++t) {
    mean_usage_[t] = memory * mean_usage_[t] + (1 - memory) * static_cast<double>(usage[t]);
    const double over = mean_usage_[t] - static_cast<double>(slack[t]);
    if (over > 0 || prices_[t] > 0) square += over * over;
  }
  if (square <= 0) return;
  // Polyak's step towards the best feasible cost; as long as there is none, a little above the
  // bound.
  const double target = std::min(feasible_cost_, best_bound_ + 0.1 * std::abs(best_bound_) + 1);
  const double length = share_ * std::max(target - last_bound_, 1.0) / square;
  for (std::size_t t = 0; t < slack.size(); ++t) {
    const double over = mean_usage_[t] - static_cast<double>(slack[t]);
    prices_[t] = std::max(0.0, prices_[t] + length * over);
  }
}

}  // namespace emplace

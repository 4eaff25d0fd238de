// One step frees some nodes (a run in the order of the file, a connected set, or what is alive
// together with a seed) and finds their best choice by elimination (region.h), the others fixed and
// usage paid for at prices. With prices that part is an unlimited problem, which elimination solves
// exactly, within tables of the drawn size: nodes that would make them larger stay fixed. If the
// choice uses too much somewhere, the prices rise there and it is solved again, up to five times.
// So the value of every choice is exact, and a step never makes a feasible choice infeasible, nor
// worse, outside of jumps; the walk as a whole proves nothing.
//
// Sizes of neighbourhoods are drawn in proportion to what they gained per second of late. After 80
// steps without a gain the walk jumps: it exceeds the limits for a while at a low price, or takes a
// worse choice found with prices far off. Large-neighbourhood search: Shaw, CP 1998. Time decides
// what is drawn, so that runs differ.
#include "selection/walk.h"

#include <algorithm>
#include <cmath>

#include "selection/prices.h"

namespace emplace {
namespace {

constexpr std::size_t kTimeBlock = 16;
constexpr int kPriceRounds = 5;
constexpr int kTableBits = 20;
// Entries of all tables of a neighbourhood, for each that the largest may have.
constexpr double kWork = 25;
// Steps without a gain after which a walk jumps.
constexpr int kPatience = 80;

}  // namespace

SelectionWalk::SelectionWalk(const CostTables& tables, std::span<const double> prices,
                             std::vector<std::int32_t> choice, SelectionIncumbent& incumbent,
                             Rng rng)
    : tables_(tables),
      incumbent_(incumbent),
      rng_(rng),
      current_(tables, choice),
      region_(tables),
      seen_(tables.num_nodes(), -1),
      nodes_at_(tables.num_times() / kTimeBlock + 1) {
  for (double nodes = 6; nodes < 1.5 * tables.num_nodes() && nodes <= 4000; nodes *= 1.8) {
    for (int bits = 10; bits <= kTableBits; bits += 3) {
      sizes_.push_back({std::min<double>(nodes, tables.num_nodes()), std::exp2(bits)});
    }
  }
  if (sizes_.empty()) sizes_.push_back({static_cast<double>(tables.num_nodes()), 1 << 16});
  for (std::int32_t node = 0; node < tables.num_nodes(); ++node) {
    for (const UsagePiece& piece : tables.problem().nodes[node].pieces) {
      for (std::size_t block = piece.begin / kTimeBlock; block <= (piece.end - 1) / kTimeBlock;
           ++block) {
        if (nodes_at_[block].empty() || nodes_at_[block].back() != node) {
          nodes_at_[block].push_back(node);
        }
      }
    }
  }
  set_prices(prices);
  restart(choice);
}

void SelectionWalk::set_prices(std::span<const double> prices) {
  prices_.assign(prices.begin(), prices.end());
  usual_price_ = usual_price(prices);
  if (usual_price_ == 0) {
    double usage = 1;
    for (const std::int64_t slack : tables_.problem().slack) {
      usage = std::max(usage, static_cast<double>(slack));
    }
    usual_price_ = static_cast<double>(current_.cost() + 1) / usage / 100;
  }
  excess_price_ = 4 * usual_price_;
}

void SelectionWalk::restart(std::span<const std::int32_t> choice) {
  current_.reset(choice);
  stale_ = 0;
  incumbent_.offer(current_);
  home_.clear();
}

void SelectionWalk::consider(std::span<const std::int32_t> choice, std::span<const double> prices) {
  set_prices(prices);
  const Assignment other(tables_, {choice.begin(), choice.end()});
  if (merit(other) < merit(current_)) restart(choice);
}

double SelectionWalk::merit(const Assignment& assignment) const {
  return static_cast<double>(assignment.cost()) + tables_.forbidden() * assignment.blocked() +
         excess_price_ * assignment.excess();
}

double SelectionWalk::merit(const ChangeEffect& effect) const {
  return static_cast<double>(effect.cost) + tables_.forbidden() * effect.blocked +
         excess_price_ * effect.excess;
}

// What was good is likely to be; what takes long is tried less often when nothing is known of it.
double SelectionWalk::Size::weight() const {
  return gain + 1e-6 / std::sqrt(seconds);
}

std::size_t SelectionWalk::pick_size() {
  double total = 0;
  for (const Size& size : sizes_) total += size.weight();
  double left = rng_.uniform() * total;
  for (std::size_t k = 0; k < sizes_.size(); ++k) {
    left -= sizes_[k].weight();
    if (left <= 0) return k;
  }
  return sizes_.size() - 1;
}

std::int32_t SelectionWalk::pick_centre() {
  if (current_.excess() > 0 && rng_.chance(0.8)) {
    // A time that has too much, from a random one on.
    const auto usage = current_.usage();
    const std::size_t from = rng_.below(usage.size());
    for (std::size_t k = 0; k < usage.size(); ++k) {
      const std::size_t t = (from + k) % usage.size();
      if (usage[t] <= tables_.problem().slack[t]) continue;
      const auto& nodes = nodes_at_[t / kTimeBlock];
      if (!nodes.empty()) return nodes[rng_.below(nodes.size())];
    }
  }
  return static_cast<std::int32_t>(rng_.below(tables_.num_nodes()));
}

// Breadth-first from what is there, neighbours in random order.
void SelectionWalk::grow(std::size_t count) {
  for (std::size_t k = 0; k < nodes_.size() && nodes_.size() < count; ++k) {
    const auto arcs = tables_.arcs(nodes_[k]);
    if (arcs.empty()) continue;
    const std::size_t from = rng_.below(arcs.size());
    for (std::size_t i = 0; i < arcs.size() && nodes_.size() < count; ++i) {
      const std::int32_t other = arcs[(from + i) % arcs.size()].other;
      if (seen_[other] == steps_) continue;
      seen_[other] = steps_;
      nodes_.push_back(other);
    }
  }
}

void SelectionWalk::pick_nodes(std::size_t count) {
  nodes_.clear();
  const auto add = [&](std::int32_t node) {
    if (seen_[node] == steps_) return;
    seen_[node] = steps_;
    nodes_.push_back(node);
  };
  const std::int32_t centre = pick_centre();
  const double way = rng_.uniform();
  if (way < 0.15) {
    // Neighbours in the order of the file.
    const auto begin = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(centre - static_cast<std::int64_t>(count / 2), 0,
                                 tables_.num_nodes() - static_cast<std::int64_t>(count)));
    for (std::size_t k = 0; k < count; ++k) add(begin + static_cast<std::int32_t>(k));
    return;
  }
  add(centre);
  const auto& pieces = tables_.problem().nodes[centre].pieces;
  if (way < 0.5 && !pieces.empty()) {
    // Others that are alive with it, which may have to make room for it.
    const UsagePiece& piece = pieces[rng_.below(pieces.size())];
    const std::size_t t = piece.begin + rng_.below(piece.end - piece.begin);
    const auto& nodes = nodes_at_[t / kTimeBlock];
    const std::size_t others = 1 + rng_.below(std::max<std::size_t>(count / 6, 1));
    for (std::size_t k = 0; k < others; ++k) add(nodes[rng_.below(nodes.size())]);
  }
  grow(count);
  while (nodes_.size() < count) {
    add(static_cast<std::int32_t>(rng_.below(tables_.num_nodes())));
    grow(count);
  }
}

void SelectionWalk::price_region() {
  before_.resize(local_.size() + 1);
  before_[0] = 0;
  for (std::size_t t = 0; t < local_.size(); ++t) before_[t + 1] = before_[t] + local_[t];
}

// Where the last try uses too much; false where nothing does.
bool SelectionWalk::raise_prices(const ChangeEffect& effect) {
  const auto usage = current_.changed_usage();
  bool raised = false;
  for (std::int32_t t = effect.begin; t < effect.end; ++t) {
    if (usage[t] <= tables_.problem().slack[t]) continue;
    local_[t] = 1.6 * local_[t] + 0.3 * usual_price_;
    raised = true;
  }
  return raised;
}

// The prices times a factor that changes now and then along the times.
void SelectionWalk::blur_prices() {
  const auto factor = [&] { return std::exp(blur_ * (rng_.uniform() + rng_.uniform() - 1)); };
  local_ = prices_;
  const double changes = rng_.chance(0.5) ? 0 : 8.0 * rng_.uniform();
  const double each = changes / static_cast<double>(local_.size() + 1);
  double scale = factor();
  std::size_t next = 0;
  for (std::size_t t = 0; t < local_.size(); ++t) {
    if (t == next) {
      if (t > 0) scale = factor();
      next = each > 0 ? t + 1 + static_cast<std::size_t>(-std::log(1 - rng_.uniform()) / each)
                      : local_.size();
    }
    local_[t] *= scale;
  }
}

bool SelectionWalk::try_region() {
  blur_prices();
  for (int round = 0; round < kPriceRounds; ++round) {
    price_region();
    region_.solve(before_, {}, changes_);
    if (changes_.empty()) return false;
    const ChangeEffect effect = current_.effect(changes_);
    const double gain = -merit(effect);
    const bool keeps =
        !current_.feasible() || soft_steps_ > 0 || (effect.excess <= 0 && effect.blocked <= 0);
    if (keeps && gain >= 0) {
      current_.apply(changes_, effect);
      incumbent_.offer(current_);
      return gain > 0;
    }
    if (!raise_prices(effect)) return false;
  }
  return false;
}

void SelectionWalk::step() {
  ++steps_;
  const double now = incumbent_.elapsed();
  incumbent_.count_evaluation();
  const std::size_t choice = pick_size();
  const double before = static_cast<double>(current_.cost());
  const bool was_feasible = current_.feasible();
  pick_nodes(static_cast<std::size_t>(sizes_[choice].nodes));
  protection_.resize(nodes_.size());
  const bool hubs = rng_.chance(0.7);
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    protection_[k] = rng_.uniform() * (hubs ? 0.5 + tables_.degree(nodes_[k]) : 1.0);
  }
  const double table = sizes_[choice].table;
  region_.select(nodes_, current_.choice(), {.table = table, .work = kWork * table}, protection_);
  const bool better = try_region();
  stale_ = better ? 0 : stale_ + 1;
  const double seconds = incumbent_.elapsed() - now + 1e-6;
  double gain = better ? 1e-9 : 0;
  if (better && was_feasible) {
    gain += std::max(0.0, before - static_cast<double>(current_.cost())) / (before + 1);
  }
  if (better && !was_feasible) gain += 1e-3;
  Size& size = sizes_[choice];
  size.gain = 0.95 * size.gain + 0.05 * gain / seconds;
  size.seconds = 0.8 * size.seconds + 0.2 * seconds;
  if (!current_.feasible() && stale_ > 300) {
    excess_price_ *= 1.5;
    stale_ = 0;
  }
}

// Elsewhere from what has been reached, if that is better than where the last jump began, else from
// there.
void SelectionWalk::jump() {
  if (home_.empty() || merit(current_) <= home_merit_) {
    home_.assign(current_.choice().begin(), current_.choice().end());
    home_merit_ = merit(current_);
  } else {
    current_.reset(home_);
  }
  stale_ = 0;
  if (rng_.chance(0.5)) {
    soft_steps_ = 3 + static_cast<int>(rng_.below(30));
    excess_price_ = usual_price_ * std::pow(10.0, 1.5 * rng_.uniform() - 1);
  } else {
    kick();
  }
}

// A feasible choice nearby that costs more, from prices far off.
void SelectionWalk::kick() {
  const double most =
      std::pow(10.0, -2 - 3 * rng_.uniform()) * static_cast<double>(current_.cost());
  for (int tries = 0; tries < 10; ++tries) {
    ++steps_;
    incumbent_.count_evaluation();
    pick_nodes(std::min<std::size_t>(tables_.num_nodes(), 4 + rng_.below(60)));
    protection_.resize(nodes_.size());
    for (double& protection : protection_) protection = rng_.uniform();
    region_.select(nodes_, current_.choice(), {.table = 1 << 12, .work = 1e5}, protection_);
    blur_ = 5;
    blur_prices();
    blur_ = 0.6;
    price_region();
    region_.solve(before_, {}, changes_);
    if (changes_.empty()) continue;
    const ChangeEffect effect = current_.effect(changes_);
    if (effect.excess > 0 || effect.blocked > 0 || static_cast<double>(effect.cost) > most)
      continue;
    current_.apply(changes_, effect);
    incumbent_.offer(current_);
    return;
  }
}

void SelectionWalk::advance() {
  step();
  if (soft_steps_ > 0 && --soft_steps_ == 0) {
    excess_price_ = 4 * usual_price_;
    stale_ = 0;
  }
  if (current_.feasible() && soft_steps_ == 0 && stale_ > kPatience) jump();
}

}  // namespace emplace

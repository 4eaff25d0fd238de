#include "bound/balance.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/union_find.h"
#include "base/wide.h"

#include "bound/alive.h"
#include "bound/dag.h"
#include "bound/memory.h"

namespace emplace {
namespace {

constexpr std::size_t kMostClasses = 6;
constexpr Wide kImpossible = static_cast<Wide>(1) << 126U;

// What goes from one group to another: tensors that are sent when the groups lie apart, and bytes
// that one of the two devices holds at the fullest moment.
struct Bond {
  GroupId from = 0;
  GroupId to = 0;
  Bytes bytes = 0;
  std::int64_t tensors = 0;
  Bytes alive = 0;
};

struct Prices {
  std::vector<Wide> time;     // by class: of a nanosecond of one device
  std::vector<Wide> memory;   // by class: of a byte
  std::vector<Wide> sending;  // [class][class]: of a nanosecond of one channel
};

// What the cheapest placement uses.
struct Usage {
  std::vector<double> time;
  std::vector<double> memory;
  std::vector<double> sending;
};

class Balance {
 public:
  Balance(const Problem& problem, std::vector<std::vector<DeviceId>> classes)
      : problem_(problem), classes_(std::move(classes)) {
    load_groups();
    find_channels();
    plant(find_bonds());
  }

  std::size_t num_classes() const { return classes_.size(); }
  double size(std::size_t kind) const { return static_cast<double>(classes_[kind].size()); }
  Bytes capacity(std::size_t kind) const {
    return problem_.cluster().device(classes_[kind].front()).memory;
  }
  Bytes needed() const { return needed_; }
  double channels(std::size_t pair) const { return static_cast<double>(pair_channels_[pair]); }

  // At most every step time, for whatever prices; and what the cheapest placement uses.
  Nanoseconds bound(const Prices& prices, Usage& usage);

 private:
  struct Tie {
    Bond bond;
    bool down = false;  // the bond's tensors go from the parent to the child
  };

  std::size_t at(GroupId group, std::size_t kind) const { return group * num_classes() + kind; }
  void load_groups();
  void find_channels();
  std::vector<Bond> find_bonds();
  void plant(std::vector<Bond> bonds);
  Nanoseconds sending_time(const Bond& bond, std::size_t pair) const;
  Wide bond_cost(const Tie& tie, std::size_t child, std::size_t parent, const Prices& prices) const;
  void use(const Prices& prices, Usage& usage) const;

  const Problem& problem_;
  std::vector<std::vector<DeviceId>> classes_;
  std::vector<Nanoseconds> load_;  // [group][class], gaps included; kNever: not there
  std::vector<Bytes> held_;        // by group, at the fullest moment
  Bytes anywhere_ = 0;             // held on some device, at the fullest moment
  Bytes needed_ = 0;
  std::vector<std::optional<Connection>> connection_;  // [class][class]
  std::vector<std::vector<std::size_t>>
      pairs_by_channel_;  // pairs of classes that a channel serves
  std::vector<std::size_t> pair_channels_;
  std::vector<GroupId> order_;   // parents before children
  std::vector<GroupId> parent_;  // itself for a root
  std::vector<Tie> tie_;         // by group, with its parent
  std::vector<Wide> cost_;       // [group][class], of the tree below it
};

void Balance::load_groups() {
  const MemoryNeeds needs = memory_needs(problem_, MemoryRule::kStep);
  load_.assign(problem_.num_groups() * num_classes(), kNever);
  for (GroupId group = 0; group < problem_.num_groups(); ++group) {
    for (std::size_t kind = 0; kind < num_classes(); ++kind) {
      const DeviceId device = classes_[kind].front();
      if (!needs.possible(problem_, group, device)) continue;
      if (std::none_of(classes_[kind].begin(), classes_[kind].end(),
                       [&](DeviceId one) { return problem_.allowed(group, one); })) {
        continue;
      }
      Nanoseconds load = 0;
      for (const OpId op : problem_.group_ops(group)) {
        const Nanoseconds time = problem_.duration(op, device);
        if (time > 0) load += time + problem_.cluster().device(device).gap;
      }
      load_[at(group, kind)] = load;
    }
    held_.push_back(problem_.group_resident_bytes(group));
  }
}

void Balance::find_channels() {
  const Cluster& cluster = problem_.cluster();
  pairs_by_channel_.resize(cluster.num_channels());
  pair_channels_.assign(num_classes() * num_classes(), 0);
  for (std::size_t from = 0; from < num_classes(); ++from) {
    for (std::size_t to = 0; to < num_classes(); ++to) {
      const std::size_t pair = from * num_classes() + to;
      connection_.push_back(best_connection(cluster, classes_[from], classes_[to]));
      for (const DeviceId a : classes_[from]) {
        for (const DeviceId b : classes_[to]) {
          const Link* link = from == to ? nullptr : cluster.link(a, b);
          if (link == nullptr) continue;
          auto& pairs = pairs_by_channel_[link->channel];
          if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) continue;
          pairs.push_back(pair);
          ++pair_channels_[pair];
        }
      }
    }
  }
}

// Every tensor counts for one of those that read it, so that nothing is counted twice.
std::vector<Bond> Balance::find_bonds() {
  constexpr std::size_t kTries = 16;
  const Graph& graph = problem_.graph();
  std::map<std::pair<GroupId, GroupId>, Bond> bonds;
  const auto bond = [&](GroupId from, GroupId to) -> Bond& {
    Bond& found = bonds[{from, to}];
    found.from = from;
    found.to = to;
    return found;
  };
  const std::vector<AliveAt> moments = Liveness(problem_).full_moments(kTries);
  std::vector<OpId> reader(graph.num_tensors(), kNoOp);
  if (!moments.empty()) {
    const HeldAt held(problem_, moments.front());
    held_ = held.by_group;
    for (const HeldAt::Shared& shared : held.shared) {
      bond(shared.from, shared.to).alive += shared.bytes;
    }
    for (const AliveTensor& tensor : moments.front().tensors) {
      reader[tensor.tensor] = tensor.needed_by;
    }
  }
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const GroupId from = problem_.group_of(graph.producer(tensor));
    const auto readers = graph.consumers(tensor);
    OpId chosen = kNoOp;
    for (const OpId op : readers) {
      if (problem_.group_of(op) == from) continue;
      if (chosen == kNoOp || op == reader[tensor]) chosen = op;
    }
    if (chosen == kNoOp) continue;
    Bond& found = bond(from, problem_.group_of(chosen));
    found.bytes += graph.bytes(tensor);
    ++found.tensors;
  }
  std::vector<Bond> result;
  for (const auto& [key, value] : bonds) result.push_back(value);
  return result;
}

// A spanning forest of the heaviest bonds.
void Balance::plant(std::vector<Bond> bonds) {
  const GroupId groups = problem_.num_groups();
  std::stable_sort(bonds.begin(), bonds.end(), [](const Bond& a, const Bond& b) {
    return a.bytes + a.alive > b.bytes + b.alive;
  });
  UnionFind trees(groups);
  std::vector<std::pair<GroupId, std::uint32_t>> ends;
  for (std::uint32_t i = 0; i < bonds.size(); ++i) {
    needed_ += bonds[i].alive;
    if (trees.unite(bonds[i].from, bonds[i].to)) {
      ends.emplace_back(bonds[i].from, i);
      ends.emplace_back(bonds[i].to, i);
    } else {
      anywhere_ += bonds[i].alive;
    }
  }
  for (const Bytes bytes : held_) needed_ += bytes;
  const auto neighbours = Csr<std::uint32_t>::from_pairs(groups, ends);
  parent_.assign(groups, groups);
  tie_.resize(groups);
  for (GroupId root = 0; root < groups; ++root) {
    if (parent_[root] != groups) continue;
    parent_[root] = root;
    order_.push_back(root);
    for (std::size_t i = order_.size() - 1; i < order_.size(); ++i) {
      const GroupId group = order_[i];
      for (const std::uint32_t index : neighbours[group]) {
        const Bond& bond = bonds[index];
        const GroupId other = bond.from == group ? bond.to : bond.from;
        if (parent_[other] != groups) continue;
        parent_[other] = group;
        tie_[other] = {bond, bond.from == group};
        order_.push_back(other);
      }
    }
  }
  cost_.resize(groups * num_classes());
}

Nanoseconds Balance::sending_time(const Bond& bond, std::size_t pair) const {
  const auto& link = connection_[pair];
  if (!link) return kNever;
  const Nanoseconds time = transfer_time({.bandwidth = link->bandwidth}, bond.bytes);
  return time + link->latency * bond.tensors;
}

Wide Balance::bond_cost(const Tie& tie, std::size_t child, std::size_t parent,
                        const Prices& prices) const {
  const Wide alive = static_cast<Wide>(tie.bond.alive);
  if (child == parent) return alive * prices.memory[child];
  const std::size_t pair =
      tie.down ? parent * num_classes() + child : child * num_classes() + parent;
  const Nanoseconds time = sending_time(tie.bond, pair);
  if (time == kNever) return kImpossible;
  return alive * std::min(prices.memory[child], prices.memory[parent]) +
         static_cast<Wide>(time) * prices.sending[pair];
}

Nanoseconds Balance::bound(const Prices& prices, Usage& usage) {
  const std::size_t classes = num_classes();
  for (GroupId group = 0; group < problem_.num_groups(); ++group) {
    for (std::size_t kind = 0; kind < classes; ++kind) {
      const Nanoseconds load = load_[at(group, kind)];
      cost_[at(group, kind)] = load == kNever
                                   ? kImpossible
                                   : static_cast<Wide>(load) * prices.time[kind] +
                                         static_cast<Wide>(held_[group]) * prices.memory[kind];
    }
  }
  Wide sum =
      static_cast<Wide>(anywhere_) * *std::min_element(prices.memory.begin(), prices.memory.end());
  for (std::size_t i = order_.size(); i-- > 0;) {
    const GroupId group = order_[i];
    const GroupId parent = parent_[group];
    if (parent == group) {
      const Wide* first = &cost_[at(group, 0)];
      sum += *std::min_element(first, first + classes);
      if (sum >= kImpossible) return 0;
      continue;
    }
    for (std::size_t above = 0; above < classes; ++above) {
      Wide least = kImpossible;
      for (std::size_t kind = 0; kind < classes; ++kind) {
        least =
            std::min(least, cost_[at(group, kind)] + bond_cost(tie_[group], kind, above, prices));
      }
      Wide& total = cost_[at(parent, above)];
      total = std::min(kImpossible, total + least);
    }
  }
  Wide rate = 0;   // of what a nanosecond pays for
  Wide spare = 0;  // paid for once: memory, and the last gap of each device
  for (std::size_t kind = 0; kind < classes; ++kind) {
    const Wide devices = classes_[kind].size();
    const Device& device = problem_.cluster().device(classes_[kind].front());
    rate += devices * prices.time[kind];
    spare += devices * prices.time[kind] * static_cast<Wide>(device.gap);
    if (prices.memory[kind] > 0) {
      spare += devices * prices.memory[kind] * static_cast<Wide>(device.memory);
    }
  }
  for (const auto& pairs : pairs_by_channel_) {
    Wide most = 0;
    for (const std::size_t pair : pairs) most = std::max(most, prices.sending[pair]);
    rate += most;
  }
  use(prices, usage);
  if (sum <= spare || rate == 0) return 0;
  const Wide step = (sum - spare + rate - 1) / rate;
  return step > static_cast<Wide>(kNever) ? 0 : static_cast<Nanoseconds>(step);
}

void Balance::use(const Prices& prices, Usage& usage) const {
  const std::size_t classes = num_classes();
  usage.time.assign(classes, 0);
  usage.memory.assign(classes, 0);
  usage.sending.assign(classes * classes, 0);
  std::vector<std::size_t> chosen(problem_.num_groups());
  const auto cheapest = static_cast<std::size_t>(
      std::min_element(prices.memory.begin(), prices.memory.end()) - prices.memory.begin());
  usage.memory[cheapest] += static_cast<double>(anywhere_);
  for (const GroupId group : order_) {
    const GroupId above = parent_[group];
    const auto cost = [&](std::size_t kind) {
      const Wide own = cost_[at(group, kind)];
      return above == group ? own : own + bond_cost(tie_[group], kind, chosen[above], prices);
    };
    std::size_t best = 0;
    for (std::size_t kind = 1; kind < classes; ++kind) {
      if (cost(kind) < cost(best)) best = kind;
    }
    chosen[group] = best;
    usage.time[best] += static_cast<double>(load_[at(group, best)]);
    usage.memory[best] += static_cast<double>(held_[group]);
    if (above == group) continue;
    const Bond& bond = tie_[group].bond;
    const std::size_t other = chosen[above];
    const bool here = prices.memory[best] <= prices.memory[other];
    usage.memory[here ? best : other] += static_cast<double>(bond.alive);
    if (other == best) continue;
    const std::size_t pair = tie_[group].down ? other * classes + best : best * classes + other;
    usage.sending[pair] += static_cast<double>(sending_time(bond, pair));
  }
}

// Subgradient steps on weights that are scaled to be of one size.
class Pricing {
 public:
  Pricing(const Balance& balance, Nanoseconds scale) : balance_(&balance) {
    const std::size_t classes = balance.num_classes();
    time_.assign(classes, 1);
    memory_.assign(classes, 0);
    sending_.assign(classes * classes, 0);
    scale_ = static_cast<double>(std::max<Nanoseconds>(1, scale));
    bytes_ = static_cast<double>(std::max<Bytes>(1, balance.needed()));
    normalize();
  }

  Prices prices() const {
    const auto whole = [](double weight) { return static_cast<Wide>(std::min(weight, kMost)); };
    Prices result;
    for (const double weight : time_) result.time.push_back(whole(weight * kUnit));
    for (const double weight : memory_) {
      result.memory.push_back(whole(weight * kUnit * scale_ / bytes_));
    }
    for (const double weight : sending_) result.sending.push_back(whole(weight * kUnit));
    return result;
  }

  // What is used more than a step of `value` allows becomes dearer, as much as would raise the
  // value to `target` if nothing changed places (Polyak 1969).
  void follow(const Usage& usage, Nanoseconds value, double target) {
    const double time = static_cast<double>(value);
    std::vector<double> slope;
    for (std::size_t kind = 0; kind < time_.size(); ++kind) {
      slope.push_back((usage.time[kind] - balance_->size(kind) * time) / scale_);
    }
    for (std::size_t kind = 0; kind < memory_.size(); ++kind) {
      const double room = balance_->size(kind) * static_cast<double>(balance_->capacity(kind));
      const bool enough = balance_->capacity(kind) >= balance_->needed();
      slope.push_back(enough ? 0 : (usage.memory[kind] - room) / bytes_);
    }
    for (std::size_t pair = 0; pair < sending_.size(); ++pair) {
      const bool none = balance_->channels(pair) == 0;
      slope.push_back(none ? 0 : (usage.sending[pair] - balance_->channels(pair) * time) / scale_);
    }
    double norm = 0;
    for (const double one : slope) norm += one * one;
    if (norm == 0) return;
    const double factor = (target - time) / scale_ / norm;
    std::size_t i = 0;
    for (auto* weights : {&time_, &memory_, &sending_}) {
      for (double& weight : *weights) weight = std::max(0.0, weight + factor * slope[i++]);
    }
    normalize();
  }

 private:
  static constexpr double kUnit = 1ULL << 40U;
  static constexpr double kMost = 1ULL << 58U;  // sums of products stay within 126 bits

  void normalize() {
    double sum = 0;
    for (std::size_t kind = 0; kind < time_.size(); ++kind)
      sum += balance_->size(kind) * time_[kind];
    for (std::size_t pair = 0; pair < sending_.size(); ++pair) {
      sum += balance_->channels(pair) * sending_[pair];
    }
    if (sum <= 0) return;
    for (auto* weights : {&time_, &memory_, &sending_}) {
      for (double& weight : *weights) weight /= sum;
    }
  }

  const Balance* balance_;
  std::vector<double> time_, memory_, sending_;
  double scale_ = 1;
  double bytes_ = 1;
};

}  // namespace

Nanoseconds balance_bound(const Problem& problem, const std::function<bool()>& go_on,
                          const std::function<void(Nanoseconds)>& on_improvement) {
  constexpr int kSteps = 600;
  constexpr int kPatience = 15;
  auto classes = classes_of_devices(problem, kMostClasses);
  if (classes.empty()) return 0;
  Balance balance(problem, std::move(classes));
  const Nanoseconds simple = lower_bound(problem).step;
  Pricing pricing(balance, simple);
  Pricing best_pricing = pricing;
  Nanoseconds best = 0;
  Usage usage;
  Usage best_usage;
  double hope = static_cast<double>(simple);  // how much more than the best is aimed at
  int patience = kPatience;
  for (int step = 0; step < kSteps && go_on(); ++step) {
    const Nanoseconds value = balance.bound(pricing.prices(), usage);
    if (usage.time.empty()) break;  // nothing fits
    if (value > best || step == 0) {
      best = value;
      best_pricing = pricing;
      best_usage = usage;
      patience = kPatience;
      if (best > 0) on_improvement(best);
    } else if (--patience == 0) {
      hope /= 2;
      pricing = best_pricing;
      pricing.follow(best_usage, best, static_cast<double>(best) + hope);
      patience = kPatience;
      continue;
    }
    pricing.follow(usage, value, static_cast<double>(best) + hope);
  }
  return best;
}

}  // namespace emplace

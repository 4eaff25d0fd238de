// Let a placement that fits take time T. A device runs its ops one after another, each followed by
// a gap, so they take at most T + gap; what a channel sends takes at most T; and at the fullest
// moment a device holds at most its memory. With a price on each of these, the priced sum of what
// the placement uses is at most rate * T + spare, for any prices. So T >= (least - spare) / rate,
// where `least` is at most the least priced sum over all placements: the sum is exact for the
// tensors of a spanning forest of the groups, found by dynamic programming from the leaves to the
// roots; of other tensors, sending is free and memory is paid for where it is cheapest. Each tensor
// counts for one of its readers only, so nothing is paid for twice.
//
// All of that is in integers, so every value is a proven bound; floating point only steers the
// prices (subgradient steps with Polyak's length). The heaviest edges are in the forest, which is a
// choice, not a need. One evaluation takes O(groups * classes^2), of which there are at most 600.
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
struct GroupEdge {
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
    build_forest(find_edges());
  }

  std::size_t num_classes() const { return classes_.size(); }
  double size(std::size_t device_class) const {
    return static_cast<double>(classes_[device_class].size());
  }
  Bytes capacity(std::size_t device_class) const {
    return problem_.cluster().device(classes_[device_class].front()).memory;
  }
  Bytes needed() const { return needed_; }
  double channels(std::size_t pair) const { return static_cast<double>(pair_channels_[pair]); }

  // At most every step time, for whatever prices; and what the cheapest placement uses.
  Nanoseconds bound(const Prices& prices, Usage& usage);

 private:
  struct ParentEdge {
    GroupEdge edge;
    bool from_parent = false;  // the tensors go from the parent to the child
  };

  std::size_t at(GroupId group, std::size_t device_class) const {
    return group * num_classes() + device_class;
  }
  void load_groups();
  void find_channels();
  std::vector<GroupEdge> find_edges();
  void build_forest(std::vector<GroupEdge> edges);
  Nanoseconds sending_time(const GroupEdge& edge, std::size_t pair) const;
  Wide edge_cost(const ParentEdge& to_parent, std::size_t child, std::size_t parent,
                 const Prices& prices) const;
  void find_usage(const Prices& prices, Usage& usage) const;

  const Problem& problem_;
  std::vector<std::vector<DeviceId>> classes_;
  std::vector<Nanoseconds> load_;  // [group][class], gaps included; kInfinite: not there
  std::vector<Bytes> held_;        // by group, at the fullest moment
  Bytes anywhere_ = 0;             // held on some device, at the fullest moment
  Bytes needed_ = 0;
  std::vector<std::optional<Connection>> connection_;  // [class][class]
  std::vector<std::vector<std::size_t>>
      pairs_by_channel_;                    // pairs of classes that a channel serves
  std::vector<std::size_t> pair_channels_;  // 0: none, or some that are unlimited
  std::vector<GroupId> order_;              // parents before children
  std::vector<GroupId> parent_;             // itself for a root
  std::vector<ParentEdge> parent_edge_;     // by group, with its parent
  std::vector<Wide> cost_;                  // [group][class], of the tree below it
};

void Balance::load_groups() {
  const MemoryNeeds needs = memory_needs(problem_, MemoryRule::kStep);
  load_.assign(problem_.num_groups() * num_classes(), kInfinite);
  for (GroupId group = 0; group < problem_.num_groups(); ++group) {
    for (std::size_t device_class = 0; device_class < num_classes(); ++device_class) {
      const DeviceId device = classes_[device_class].front();
      if (!needs.possible(problem_, group, device)) continue;
      if (std::none_of(classes_[device_class].begin(), classes_[device_class].end(),
                       [&](DeviceId one) { return problem_.allowed(group, one); })) {
        continue;
      }
      Nanoseconds load = 0;
      for (const OpId op : problem_.group_ops(group)) {
        const Nanoseconds time = problem_.duration(op, device);
        if (time > 0) load += time + problem_.cluster().device(device).gap;
      }
      load_[at(group, device_class)] = load;
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
      bool unlimited = false;
      for (const DeviceId a : classes_[from]) {
        for (const DeviceId b : classes_[to]) {
          const Link* link = from == to ? nullptr : cluster.link(a, b);
          if (link == nullptr) continue;
          unlimited = unlimited || link->unlimited;
          auto& pairs = pairs_by_channel_[link->channel];
          if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) continue;
          pairs.push_back(pair);
          ++pair_channels_[pair];
        }
      }
      // All could take the way on which nothing adds up: no price.
      if (unlimited) pair_channels_[pair] = 0;
    }
  }
}

// Every tensor counts for one of those that read it, so that nothing is counted twice.
std::vector<GroupEdge> Balance::find_edges() {
  constexpr std::size_t kTries = 16;
  const Graph& graph = problem_.graph();
  std::map<std::pair<GroupId, GroupId>, GroupEdge> edges;
  const auto edge = [&](GroupId from, GroupId to) -> GroupEdge& {
    GroupEdge& found = edges[{from, to}];
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
      edge(shared.from, shared.to).alive += shared.bytes;
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
    GroupEdge& found = edge(from, problem_.group_of(chosen));
    found.bytes += graph.bytes(tensor);
    ++found.tensors;
  }
  std::vector<GroupEdge> result;
  for (const auto& [key, value] : edges) result.push_back(value);
  return result;
}

// A spanning forest of the heaviest edges.
void Balance::build_forest(std::vector<GroupEdge> edges) {
  const GroupId groups = problem_.num_groups();
  std::stable_sort(edges.begin(), edges.end(), [](const GroupEdge& a, const GroupEdge& b) {
    return a.bytes + a.alive > b.bytes + b.alive;
  });
  UnionFind trees(groups);
  std::vector<std::pair<GroupId, std::uint32_t>> ends;
  for (std::uint32_t i = 0; i < edges.size(); ++i) {
    needed_ += edges[i].alive;
    if (trees.unite(edges[i].from, edges[i].to)) {
      ends.emplace_back(edges[i].from, i);
      ends.emplace_back(edges[i].to, i);
    } else {
      anywhere_ += edges[i].alive;
    }
  }
  for (const Bytes bytes : held_) needed_ += bytes;
  const auto neighbours = Csr<std::uint32_t>::from_pairs(groups, ends);
  parent_.assign(groups, groups);
  parent_edge_.resize(groups);
  for (GroupId root = 0; root < groups; ++root) {
    if (parent_[root] != groups) continue;
    parent_[root] = root;
    order_.push_back(root);
    for (std::size_t i = order_.size() - 1; i < order_.size(); ++i) {
      const GroupId group = order_[i];
      for (const std::uint32_t index : neighbours[group]) {
        const GroupEdge& edge = edges[index];
        const GroupId other = edge.from == group ? edge.to : edge.from;
        if (parent_[other] != groups) continue;
        parent_[other] = group;
        parent_edge_[other] = {edge, edge.from == group};
        order_.push_back(other);
      }
    }
  }
  cost_.resize(groups * num_classes());
}

Nanoseconds Balance::sending_time(const GroupEdge& edge, std::size_t pair) const {
  const auto& link = connection_[pair];
  if (!link) return kInfinite;
  const Nanoseconds time = transfer_time({.bandwidth = link->bandwidth}, edge.bytes);
  return time + link->latency * edge.tensors;
}

Wide Balance::edge_cost(const ParentEdge& to_parent, std::size_t child, std::size_t parent,
                        const Prices& prices) const {
  const Wide alive = static_cast<Wide>(to_parent.edge.alive);
  if (child == parent) return alive * prices.memory[child];
  const std::size_t pair =
      to_parent.from_parent ? parent * num_classes() + child : child * num_classes() + parent;
  const Nanoseconds time = sending_time(to_parent.edge, pair);
  if (time == kInfinite) return kImpossible;
  return alive * std::min(prices.memory[child], prices.memory[parent]) +
         static_cast<Wide>(time) * prices.sending[pair];
}

Nanoseconds Balance::bound(const Prices& prices, Usage& usage) {
  const std::size_t classes = num_classes();
  for (GroupId group = 0; group < problem_.num_groups(); ++group) {
    for (std::size_t device_class = 0; device_class < classes; ++device_class) {
      const Nanoseconds load = load_[at(group, device_class)];
      cost_[at(group, device_class)] =
          load == kInfinite ? kImpossible
                            : static_cast<Wide>(load) * prices.time[device_class] +
                                  static_cast<Wide>(held_[group]) * prices.memory[device_class];
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
      for (std::size_t device_class = 0; device_class < classes; ++device_class) {
        least = std::min(least, cost_[at(group, device_class)] +
                                    edge_cost(parent_edge_[group], device_class, above, prices));
      }
      Wide& total = cost_[at(parent, above)];
      total = std::min(kImpossible, total + least);
    }
  }
  Wide rate = 0;   // of what a nanosecond pays for
  Wide spare = 0;  // paid for once: memory, and the last gap of each device
  for (std::size_t device_class = 0; device_class < classes; ++device_class) {
    const Wide devices = classes_[device_class].size();
    const Device& device = problem_.cluster().device(classes_[device_class].front());
    rate += devices * prices.time[device_class];
    spare += devices * prices.time[device_class] * static_cast<Wide>(device.gap);
    if (prices.memory[device_class] > 0) {
      spare += devices * prices.memory[device_class] * static_cast<Wide>(device.memory);
    }
  }
  for (const auto& pairs : pairs_by_channel_) {
    Wide most = 0;
    for (const std::size_t pair : pairs) most = std::max(most, prices.sending[pair]);
    rate += most;
  }
  find_usage(prices, usage);
  if (sum <= spare || rate == 0) return 0;
  const Wide step = (sum - spare + rate - 1) / rate;
  return step > static_cast<Wide>(kInfinite) ? 0 : static_cast<Nanoseconds>(step);
}

void Balance::find_usage(const Prices& prices, Usage& usage) const {
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
    const auto cost = [&](std::size_t device_class) {
      const Wide own = cost_[at(group, device_class)];
      return above == group
                 ? own
                 : own + edge_cost(parent_edge_[group], device_class, chosen[above], prices);
    };
    std::size_t best = 0;
    for (std::size_t device_class = 1; device_class < classes; ++device_class) {
      if (cost(device_class) < cost(best)) best = device_class;
    }
    chosen[group] = best;
    usage.time[best] += static_cast<double>(load_[at(group, best)]);
    usage.memory[best] += static_cast<double>(held_[group]);
    if (above == group) continue;
    const GroupEdge& edge = parent_edge_[group].edge;
    const std::size_t other = chosen[above];
    const bool here = prices.memory[best] <= prices.memory[other];
    usage.memory[here ? best : other] += static_cast<double>(edge.alive);
    if (other == best) continue;
    const std::size_t pair =
        parent_edge_[group].from_parent ? other * classes + best : best * classes + other;
    usage.sending[pair] += static_cast<double>(sending_time(edge, pair));
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
    for (std::size_t device_class = 0; device_class < time_.size(); ++device_class) {
      slope.push_back((usage.time[device_class] - balance_->size(device_class) * time) / scale_);
    }
    for (std::size_t device_class = 0; device_class < memory_.size(); ++device_class) {
      const double room =
          balance_->size(device_class) * static_cast<double>(balance_->capacity(device_class));
      const bool enough = balance_->capacity(device_class) >= balance_->needed();
      slope.push_back(enough ? 0 : (usage.memory[device_class] - room) / bytes_);
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
    for (std::size_t device_class = 0; device_class < time_.size(); ++device_class)
      sum += balance_->size(device_class) * time_[device_class];
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

Nanoseconds balance_bound(const Problem& problem, Nanoseconds simple,
                          const std::function<bool()>& go_on,
                          const std::function<void(Nanoseconds)>& on_improvement) {
  constexpr int kSteps = 600;
  constexpr int kPatience = 15;
  auto classes = classes_of_devices(problem, kMostClasses);
  if (classes.empty()) return 0;
  Balance balance(problem, std::move(classes));
  Pricing pricing(balance, simple);
  Pricing best_pricing = pricing;
  Nanoseconds best = 0;
  Usage usage;
  Usage best_usage;
  double margin = static_cast<double>(simple);  // how much more than the best is aimed at
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
      margin /= 2;
      pricing = best_pricing;
      pricing.follow(best_usage, best, static_cast<double>(best) + margin);
      patience = kPatience;
      continue;
    }
    pricing.follow(usage, value, static_cast<double>(best) + margin);
  }
  return best;
}

}  // namespace emplace

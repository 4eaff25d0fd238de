// A step lasts at least as long as the busiest device computes and as the busiest channel sends. So
// for every plan, and every s from 0 to 1, it is at least s (weighted work) + (1 - s) (weighted
// transfers), and the least of that over all plans bounds the steps of all. Transfers alone would
// not do: a plan in which everybody does everything sends nothing.
//
// Transfers are those between groups of workers, which the first levels make; for each number of
// levels there is a bound. All channels that lead from group to group carry together, in time T, no
// more than T times the sum of their bandwidths. Of a tensor that op p makes and op r reads, as
// they are cut,
// - each group is sent what it needs and does not make. However workers exchange it and whatever
//   is kept where, it has no other way to get there.
// - Where k groups have partial results of an element and m groups need it, at least k - 1 + m - 1
//   are sent: the first group that has the sum was sent something by, or by way of, each of the
//   k - 1 others, and each of the m - 1 that need it and did not have it yet then is sent more.
// Several readers of one tensor may share what was sent, so each counts in a share, which add up
// to one.
//
// The least over all plans is a strategy-selection problem (src/selection): a node for each op and
// each weight, whose strategies are ways to cut it, an edge for each pair. What updates change is
// sent to whoever else keeps the weight. The solver's lower bound is what counts, exact or not.
// Groups are few, since ways to cut grow with levels. Left out, which keeps the bound valid: data
// and constants, which may lie anywhere, and sums that may be of partial results. The bound is
// concave in s, which is searched for.
#include "tensor/step_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tensor/budgets.h"
#include "tensor/op_regions.h"
#include "tensor/work_bound.h"

#include "selection/solve.h"

namespace emplace {
namespace {

// A tensor on its way from an op, or from where a weight lies, to an op.
struct Pair {
  TensorId tensor;
  OpId maker, reader;
  std::size_t output, input;
};

enum class PairKind : std::uint8_t { kChange, kForward, kOther };

// Elements that are sent at least, by the ways of the maker (rows) and of the reader; less than 0:
// no plan is cut so.
using SentTable = std::vector<float>;

struct Branch {
  std::int32_t maker, reader;  // nodes
  const SentTable* sent;
  double ns;  // for each element
};

constexpr Worker kMostGroups = 4;
// Costs are in these parts of a nanosecond.
constexpr double kFine = 1000;

class TransferBound {
 public:
  TransferBound(const PartitionInput& input, const Problem& problem, const WorkerDevices& on,
                WorkBound& work, std::size_t levels, const Budget* limit)
      : limit_(limit),
        input_(input),
        graph_(input.graph),
        on_(on),
        work_(work),
        levels_(levels),
        regions_(input, on.workers, levels),
        adds_(may_add_partial_results(input)),
        node_of_(graph_.num_ops(), kNoNode),
        groups_(on.workers.first(levels).count()),
        ns_per_byte_(ns_per_byte(problem.cluster())) {
    if (ns_per_byte_ > 0) choose_pairs();
    work_elsewhere_ = work_.of_all();
    for (const Node& each : nodes_) work_elsewhere_ -= work_.of_op(each.op);
  }

  bool any() const { return !branches_.empty(); }

  // The least over all plans of so much of the work and the rest of the transfers.
  double least(double share) const {
    SelectionProblem problem;
    std::vector<std::int64_t> costs;
    for (const Node& node : nodes_) {
      costs.clear();
      for (const double work : node.work) costs.push_back(fine(share * work));
      problem.add_node(costs);
    }
    for (const Branch& branch : branches_) {
      costs.clear();
      for (const float sent : *branch.sent) {
        costs.push_back(sent < 0 ? kForbidden
                                 : fine((1 - share) * branch.ns * static_cast<double>(sent)));
      }
      problem.add_edge(branch.maker, branch.reader, costs);
    }
    if (limit_ != nullptr && limit_->spent(0)) throw OutOfTime{};
    Budget budget;
    if (limit_ != nullptr) budget = budget_part(*limit_, seconds_left(*limit_));
    budget.evaluations = 20;
    const std::int64_t bound = select_strategies(problem, budget).lower_bound;
    return share * work_elsewhere_ + static_cast<double>(bound) / kFine;
  }

 private:
  static constexpr std::int32_t kNoNode = -1;

  struct Node {
    OpId op;
    std::vector<double> work;  // by way
  };

  static std::int64_t fine(double ns) { return static_cast<std::int64_t>(ns * kFine); }

  std::uint32_t group_of(Worker worker) const { return worker / (on_.workers.count() / groups_); }

  // Of all channels from group to group together; 0 where that has no limit.
  double ns_per_byte(const Cluster& cluster) const {
    std::map<ChannelId, std::int64_t> bandwidths;
    for (Worker from = 0; from < on_.workers.count(); ++from) {
      for (Worker to = 0; to < on_.workers.count(); ++to) {
        if (group_of(from) == group_of(to)) continue;
        const Link* link = cluster.link(on_.devices[from], on_.devices[to]);
        if (link == nullptr || link->unlimited || link->multicast) return 0;
        std::int64_t& bandwidth = bandwidths[link->channel];
        bandwidth = std::max(bandwidth, link->bandwidth);
      }
    }
    double sum = 0;
    for (const auto& [channel, bandwidth] : bandwidths) sum += static_cast<double>(bandwidth);
    return sum > 0 ? 1e9 / sum : 0;
  }

  // Nothing where the maker only has it.
  std::optional<PairKind> kind_of(const Pair& pair) const {
    const Phase read = graph_.phase(pair.reader);
    if (!graph_.is_source(pair.maker)) {
      const bool forward = graph_.phase(pair.maker) == Phase::kForward && read == Phase::kForward;
      return forward ? PairKind::kForward : PairKind::kOther;
    }
    if (graph_.role(pair.maker) != OpRole::kParameter || graph_.outputs(pair.maker).size() != 1) {
      return std::nullopt;
    }
    const bool changes = read == Phase::kUpdate && input_.descriptions[pair.reader] != nullptr &&
                         graph_.type(pair.reader) != "AccumulateGrad";
    return changes ? PairKind::kChange : PairKind::kOther;
  }

  // What sums that may be of partial results make, and what of it they need, is not known.
  std::vector<std::pair<PairKind, Pair>> pairs() {
    std::vector<std::pair<PairKind, Pair>> result;
    for (OpId reader = 0; reader < graph_.num_ops(); ++reader) {
      const auto inputs = graph_.inputs(reader);
      for (std::size_t input = 0; input < inputs.size() && adds_[reader] == 0; ++input) {
        const OpId maker = graph_.producer(inputs[input]);
        const auto outputs = graph_.outputs(maker);
        const auto output = std::find(outputs.begin(), outputs.end(), inputs[input]);
        const Pair pair{inputs[input], maker, reader,
                        static_cast<std::size_t>(output - outputs.begin()), input};
        const auto kind = kind_of(pair);
        if (!kind || adds_[maker] != 0 || regions_.of(maker) == nullptr) continue;
        const OpRegions* needed = regions_.of(reader);
        if (needed != nullptr && needed->inputs[input].dense) result.emplace_back(*kind, pair);
      }
    }
    return result;
  }

  // What all groups are sent weighs more in reads of the forward pass than what they exchange for
  // gradients.
  void choose_pairs() {
    const auto chosen = pairs();
    std::map<TensorId, std::pair<int, int>> readers;
    for (const auto& [kind, pair] : chosen) {
      if (kind == PairKind::kChange) continue;
      auto& [forward, others] = readers[pair.tensor];
      ++(kind == PairKind::kForward ? forward : others);
    }
    for (const auto& [kind, pair] : chosen) {
      const auto& [forward, others] = readers[pair.tensor];
      const bool is_forward = kind == PairKind::kForward;
      const double few = 1 / static_cast<double>(groups_);
      const double side = forward == 0 || others == 0 ? 1 : is_forward ? few : 1 - few;
      const double share = kind == PairKind::kChange ? 1 : side / (is_forward ? forward : others);
      add_branch(kind, pair, share);
    }
  }

  void add_branch(PairKind kind, const Pair& pair, double share) {
    if (limit_ != nullptr && limit_->spent(0)) throw OutOfTime{};
    const auto elements =
        static_cast<double>(std::max<tdl::Position>(volume(input_.whole(pair.tensor)), 1));
    const double bytes = static_cast<double>(graph_.bytes(pair.tensor)) / elements;
    branches_.push_back(
        {node(pair.maker), node(pair.reader), sent(kind, pair), share * bytes * ns_per_byte_});
  }

  std::int32_t node(OpId op) {
    if (node_of_[op] == kNoNode) {
      node_of_[op] = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({op, work_.of_ways(op, regions_.of(op)->ways, levels_)});
    }
    return node_of_[op];
  }

  const SentTable* sent(PairKind kind, const Pair& pair) {
    const std::uint32_t maker = input_.descriptions.signature(pair.maker);
    const std::uint32_t reader = input_.descriptions.signature(pair.reader);
    // Ops without a description are not alike.
    const bool shared = maker != 0 && reader != 0;
    const auto key = std::tuple(maker, pair.output, reader, pair.input,
                                shared ? OpId{0} : pair.maker, shared ? OpId{0} : pair.reader);
    const auto [at, added] = tables_.try_emplace(key);
    if (added) at->second = kind == PairKind::kChange ? changes(pair) : reads(pair);
    return &at->second;
  }

  // Rounded down.
  static float rounded(double elements) {
    return std::nextafter(static_cast<float>(std::max(0.0, elements)), 0.0F);
  }

  SentTable reads(const Pair& pair) {
    const OpRegions::Made& made = regions_.of(pair.maker)->outputs[pair.output];
    const BoxRows& needed = regions_.of(pair.reader)->inputs[pair.input].boxes;
    const std::size_t columns = regions_.of(pair.reader)->ways.size();
    SentTable table;
    for (std::size_t row = 0; row < made.partial.size(); ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        double elements = 0;
        for (Worker group = 0; group < groups_; ++group) {
          elements += needed.volume(column, group);
          if (made.partial[row] > 1) continue;
          elements -= needed.common(column, made.boxes, row, group);
        }
        if (made.partial[row] > 1) {
          elements += (made.partial[row] - 2) * needed.least_union(column);
        }
        table.push_back(rounded(elements));
      }
    }
    return table;
  }

  // Of a weight, to those who keep more of it than they change.
  SentTable changes(const Pair& pair) {
    const BoxRows& kept = regions_.of(pair.maker)->outputs[pair.output].boxes;
    const BoxRows& changed = regions_.of(pair.reader)->inputs[pair.input].boxes;
    SentTable table;
    for (std::size_t row = 0; row < regions_.of(pair.maker)->ways.size(); ++row) {
      for (std::size_t column = 0; column < regions_.of(pair.reader)->ways.size(); ++column) {
        double elements = 0;
        bool possible = true;
        for (Worker group = 0; group < groups_; ++group) {
          const double common = changed.common(column, kept, row, group);
          possible = possible && common >= changed.volume(column, group);
          elements += kept.volume(row, group) - common;
        }
        table.push_back(possible ? rounded(elements) : -1);
      }
    }
    return table;
  }

  const Budget* limit_;
  const PartitionInput& input_;
  const Graph& graph_;
  const WorkerDevices& on_;
  WorkBound& work_;
  std::size_t levels_;
  OpRegionTable regions_;
  std::vector<std::uint8_t> adds_;  // by op: may_add_partial_results
  std::vector<std::int32_t> node_of_;
  Worker groups_;
  double ns_per_byte_;
  std::vector<Node> nodes_;
  std::vector<Branch> branches_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::uint32_t, std::size_t, OpId, OpId>,
           SentTable>
      tables_;
  double work_elsewhere_ = 0;  // of ops that are no nodes
};

// The function is concave in the share. What was found before the time was over counts.
void raise_over_shares(const TransferBound& bound, double& best, SendingInBound& sending) {
  constexpr int kTries = 7;
  const auto at = [&](double share) {
    const double value = bound.least(share);
    best = std::max(best, value);
    return value;
  };
  const double of_work = at(1);
  const double of_both = at(0.95);
  sending = SendingInBound::kCounted;
  if (of_both <= of_work) return;
  double low = 0;
  double high = 1;
  for (int i = 0; i < kTries; ++i) {
    const double left = low + (high - low) * 0.4;
    const double right = low + (high - low) * 0.6;
    const double at_left = at(left);
    const double at_right = at(right);
    (at_left < at_right ? low : high) = at_left < at_right ? left : right;
  }
}

}  // namespace

StepBound divided_step_bound(const PartitionInput& input, const Problem& problem,
                             const WorkerDevices& on, const PlanCosts& costs, const Budget* limit) {
  WorkBound work(input, problem, on, limit);
  double bound = work.of_all();
  const bool measured = costs.collectives != nullptr;
  SendingInBound sending = measured ? SendingInBound::kMeasured : SendingInBound::kNowhere;
  const std::size_t levels = measured ? 0 : on.workers.levels();
  try {
    for (std::size_t first = 1; first <= levels; ++first) {
      if (on.workers.first(first).count() > kMostGroups) break;
      const TransferBound transfers(input, problem, on, work, first, limit);
      if (transfers.any()) raise_over_shares(transfers, bound, sending);
    }
  } catch (const OutOfTime&) {  // what there is must do
    if (sending == SendingInBound::kNowhere) sending = SendingInBound::kNoTime;
  }
  return {static_cast<Nanoseconds>(std::floor(bound * (1 - 1e-9))), sending};
}

}  // namespace emplace

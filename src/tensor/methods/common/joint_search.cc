// Cuts on all levels at once, by time. There are too many ways to cut an operator on several levels
// to weigh them all, so the ones that are weighed grow around the best known: those that plans at
// hand use and whatever differs from them on one level. Where all of them are few, all are weighed,
// and the result is the best there is.
//
// Each round is a selection problem (partition_problem.h), solved as well as the time allows; the
// answer's ways and their neighbours are the next round's, until one brings nothing better, eight
// at most. Exact only where all ways were weighed and the solver finished. A round costs what its
// tables do: (ways of an op) * (ways of a tensor) for each access.
#include "tensor/methods/common/joint_search.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "tensor/budgets.h"
#include "tensor/methods/common/kept_memory.h"
#include "tensor/methods/common/layer_pairs.h"

#include "selection/solve.h"

namespace emplace {
// What does not change from one search to the next.
struct JointCosts {
  JointCosts(const PartitionContext& the_context, const JointSearchSettings& the_settings)
      : context(the_context),
        settings(the_settings),
        input(the_context.input(), classes_for(the_context, the_settings)),
        traffic(context.workers(), context.cluster(), context.devices(),
                context.costs().collectives.get()),
        problem(input, traffic, Reductions::kOnce, context.limit(), settings.reductions),
        kept(input, context.workers()) {
    const Classes& classes = input.classes;
    const std::size_t some = static_cast<std::size_t>(settings.ways) + 1;
    for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
      first.tensors.push_back(problem.ways_of_tensor(tensor, true, {}, some));
    }
    for (ClassId op = 0; op < classes.num_ops; ++op) {
      first.ops.push_back(problem.ways_of_op(op, true, {}, some));
    }
    if (!settings.free_backward) pairs = layer_pairs(input);
  }

  static CoarseningOptions classes_for(const PartitionContext& context,
                                       const JointSearchSettings& settings) {
    CoarseningOptions options = context.input().coarsening;
    options.updates = options.updates && !settings.storage_apart;
    return options;
  }

  const PartitionContext& context;
  JointSearchSettings settings;
  PartitionInput input;
  Traffic traffic;
  PartitionProblem problem;
  KeptMemory kept;
  Ways first;                    // as many as are all weighed, and one more
  std::vector<LayerPair> pairs;  // to be divided alike
  double round_seconds = 0;      // of the quickest round; 0: there was none
};

namespace {

struct Chosen {
  std::vector<Cuts> tensors, ops;
  std::int64_t cost = kForbidden;
  std::int64_t lower_bound = 0;  // where all ways were weighed
  bool feasible = false;
};

class JointRun {
 public:
  JointRun(JointCosts& costs, std::optional<Bytes> memory_limit, const Budget& budget, Rng rng)
      : costs_(costs),
        input_(costs.input),
        settings_(costs.settings),
        memory_limit_(memory_limit),
        budget_(budget),
        rng_(rng) {}

  void start_from(const Plan& plan) {
    const Classes& classes = input_.classes;
    std::vector<Cuts> tensors, ops;
    for (ClassId tensor = 0; tensor < classes.num_tensors; ++tensor) {
      tensors.push_back(plan.tensors[input_.tensor_of_class[tensor]]);
    }
    for (ClassId op = 0; op < classes.num_ops; ++op) {
      ops.push_back(plan.ops[input_.op_of_class[op]]);
    }
    starts_.push_back({std::move(tensors), std::move(ops)});
  }

  Chosen run() {
    Chosen best;
    for (std::int64_t round = 0; round < settings_.rounds; ++round) {
      // Parts of a round do not look at the clock.
      if (round > 0 && budget_.seconds && *seconds_left(budget_) < costs_.round_seconds) break;
      const Budget clock;
      const auto found = try_round(best);
      if (!found) break;
      const double seconds = clock.elapsed_seconds();
      if (costs_.round_seconds == 0 || seconds < costs_.round_seconds) {
        costs_.round_seconds = seconds;
      }
      const bool better =
          found->feasible != best.feasible ? found->feasible : found->cost < best.cost;
      if (round > 0 && !better) break;
      best = *found;
      if (complete_ || budget_.spent(costs_.context.evaluations())) break;
    }
    return best;
  }

 private:
  // Nothing where time is over, unless there is nothing yet either.
  std::optional<Chosen> try_round(const Chosen& best) {
    try {
      return solve(ways_near(best), best);
    } catch (const OutOfTime&) {
      if (best.ops.empty()) throw;
      return std::nullopt;
    }
  }

  std::set<Cuts> known(std::vector<Cuts> Chosen::*side, const Chosen& best, std::size_t of) const {
    std::set<Cuts> result;
    for (const Chosen& start : starts_) result.insert((start.*side)[of]);
    if (!(best.*side).empty()) result = {(best.*side)[of]};
    return result;
  }

  // Everything where that is little, else what is near the best known.
  Ways ways_near(const Chosen& best) {
    complete_ = true;
    const auto few = static_cast<std::size_t>(settings_.ways);
    const auto choose = [&](const std::vector<Cuts>& first, const auto& near) {
      if (first.size() <= few) return first;
      complete_ = false;
      std::vector<Cuts> some = near();
      return some.empty() ? std::vector<Cuts>(first.begin(), first.begin() + settings_.ways) : some;
    };
    Ways ways;
    for (ClassId tensor = 0; tensor < input_.classes.num_tensors; ++tensor) {
      ways.tensors.push_back(choose(costs_.first.tensors[tensor], [&] {
        return costs_.problem.ways_of_tensor_near(tensor, known(&Chosen::tensors, best, tensor));
      }));
    }
    for (ClassId op = 0; op < input_.classes.num_ops; ++op) {
      ways.ops.push_back(choose(costs_.first.ops[op], [&] {
        return costs_.problem.ways_of_op_near(op, known(&Chosen::ops, best, op));
      }));
    }
    return ways;
  }

  SelectionProblem selection_of(const Ways& ways) {
    const PartitionProblem::Memory memory{
        [&](ClassId tensor, const Cuts& cuts) { return costs_.kept.bytes(tensor, cuts); },
        [&](ClassId tensor) { return costs_.kept.alive(tensor); }};
    SelectionProblem selection = costs_.problem.build(
        ways,
        [&](ClassId op, const Cuts& cuts) {
          return settings_.computing * piece_time(costs_.context, input_, costs_.problem, op, cuts);
        },
        memory_limit_ ? &memory : nullptr);
    forbid_unlike(costs_.pairs, input_, ways, selection);
    selection.set_usage_limit(memory_limit_);
    return selection;
  }

  Chosen solve(const Ways& ways, const Chosen& best) {
    const SelectionProblem selection = selection_of(ways);
    // Half of what is left, for another round may follow.
    const double seconds = seconds_left(budget_).value_or(0) / 2;
    const auto start = start_in(selection, ways, best);
    const SelectionResult result = or_start(
        select_strategies(selection, selection_budget(budget_, seconds), rng_, {.start = start}),
        selection, start);
    Chosen chosen = chosen_of(ways, result);
    if (complete_) chosen.lower_bound = result.lower_bound;
    return chosen;
  }

  // Where nothing is within the limit of memory, at least something that can be lowered.
  SelectionResult or_start(SelectionResult result, const SelectionProblem& selection,
                           const std::optional<std::vector<std::int32_t>>& start) const {
    if (result.cost < kForbidden || !start) return result;
    const SelectionValue value = evaluate(selection, *start);
    if (value.cost >= kForbidden) return result;
    result.strategies = *start;
    result.cost = value.cost;
    result.feasible = value.feasible;
    return result;
  }

  static Chosen chosen_of(const Ways& ways, const SelectionResult& result) {
    Chosen chosen;
    chosen.cost = result.cost;
    chosen.feasible = result.feasible;
    const std::size_t tensors = ways.tensors.size();
    for (std::size_t i = 0; i < tensors; ++i) {
      chosen.tensors.push_back(ways.tensors[i][static_cast<std::size_t>(result.strategies[i])]);
    }
    for (std::size_t i = 0; i < ways.ops.size(); ++i) {
      chosen.ops.push_back(ways.ops[i][static_cast<std::size_t>(result.strategies[tensors + i])]);
    }
    return chosen;
  }

  // The best known, or at first the best start.
  std::optional<std::vector<std::int32_t>> start_in(const SelectionProblem& selection,
                                                    const Ways& ways, const Chosen& best) const {
    if (!best.ops.empty()) return indices_in(ways, best);
    std::optional<std::vector<std::int32_t>> result;
    SelectionValue least;
    for (const Chosen& start : starts_) {
      std::vector<std::int32_t> indices = indices_in(ways, start);
      const SelectionValue value = evaluate(selection, indices);
      const bool better =
          value.feasible != least.feasible ? value.feasible : value.cost < least.cost;
      if (!better) continue;
      result = std::move(indices);
      least = value;
    }
    return result;
  }

  // In terms of the ways that are weighed; of what is not among them the first.
  std::vector<std::int32_t> indices_in(const Ways& ways, const Chosen& chosen) const {
    std::vector<std::int32_t> result;
    const auto add = [&](const std::vector<Cuts>& options, const Cuts& cuts) {
      const auto at = std::find(options.begin(), options.end(), cuts);
      result.push_back(at == options.end() ? 0 : static_cast<std::int32_t>(at - options.begin()));
    };
    for (std::size_t i = 0; i < ways.tensors.size(); ++i) add(ways.tensors[i], chosen.tensors[i]);
    for (std::size_t i = 0; i < ways.ops.size(); ++i) add(ways.ops[i], chosen.ops[i]);
    return result;
  }

  JointCosts& costs_;
  const PartitionInput& input_;
  const JointSearchSettings& settings_;
  std::optional<Bytes> memory_limit_;
  const Budget& budget_;
  Rng rng_;
  std::vector<Chosen> starts_;
  bool complete_ = false;  // whether the ways of this round are all there are
};

}  // namespace

std::int64_t piece_time(const PartitionContext& context, const PartitionInput& input,
                        PartitionProblem& problem, ClassId op, const Cuts& cuts) {
  const OpId first = input.op_of_class[op];
  if (input.graph.is_source(first) || input.graph.is_view(first)) return 0;
  double longest = 0;
  if (const auto* ways = context.piece_times().ways(first)) {
    if (const auto way = ways->find(cuts); way != ways->end()) {
      for (Worker worker = 0; worker < context.workers().count(); ++worker) {
        longest = std::max(
            longest, static_cast<double>(context.piece_times().duration(way->second, worker)));
      }
      return static_cast<std::int64_t>(longest);
    }
  }
  const tdl::Description* description = input.descriptions[first];
  const std::vector<tdl::Piece>& pieces = problem.pieces(op, cuts);
  for (Worker worker = 0; worker < context.workers().count(); ++worker) {
    const DeviceId device = context.devices()[worker];
    const auto whole = static_cast<double>(context.problem().duration(first, device));
    double share = 1;
    for (std::size_t v = 0; description != nullptr && v < pieces[worker].box.size(); ++v) {
      share *= static_cast<double>(pieces[worker].box[v].size()) /
               static_cast<double>(description->variables[v].extent);
    }
    const double launch = std::min(whole, context.cluster().kind_of(device).launch_us * 1000);
    longest = std::max(longest, launch + (whole - launch) * share);
  }
  return static_cast<std::int64_t>(longest + 0.5);
}

JointSearch::JointSearch(const PartitionContext& context, const JointSearchSettings& settings)
    : costs_(std::make_unique<JointCosts>(context, settings)) {}
JointSearch::~JointSearch() = default;

double JointSearch::round_seconds() const {
  return costs_->round_seconds;
}

std::optional<Plan> JointSearch::find(std::string method, const std::vector<Plan>& starts,
                                      std::optional<Bytes> memory_limit, const Budget& budget,
                                      Rng rng) {
  JointRun run(*costs_, memory_limit, budget, rng);
  for (const Plan& plan : starts) run.start_from(plan);
  const Chosen chosen = run.run();
  if (chosen.cost >= kForbidden) return std::nullopt;
  Plan plan = expand(costs_->input, costs_->context.workers(), std::move(method), chosen.tensors,
                     chosen.ops);
  plan.added_cost = {chosen.cost, chosen.lower_bound, chosen.cost <= chosen.lower_bound};
  return plan;
}

}  // namespace emplace

// Consecutive parts of a model, one a device, by dynamic programming: Tarnawski et al., "Efficient
// Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020; PipeDream, SOSP 2019.
//
// For a stream the largest load, which is the period, is the least that any split into consecutive
// parts has. For a single step such a split is a placement like any other: it is computed for every
// number of devices, as communication leaves it open how many are worth using, and the simulator
// says which is the shortest.
//
// Exact for a stream, over all consecutive parts, where all ideals were considered and loads are
// sums over one device (`least_is_exact`); otherwise estimates bound and guide it, and a note says
// what was left out: more than `ideals` ideals, which can be exponential in the width of the graph,
// leave lists of units to cut. Complexity: stream/contiguous_split.cc.
#include <algorithm>
#include <numeric>
#include <optional>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/greedy.h"

#include "stream/contiguous_split.h"
#include "stream/fill.h"
#include "stream/simulated.h"
#include "stream/split_units.h"

namespace emplace {
namespace {

// More make lists of units too slow; neighbours are then merged.
constexpr std::uint32_t kMostRuns = 600;
constexpr std::uint64_t kMostOrderedUnits = 2'000'000;  // of all orders together
// Parts that the dynamic program may look at: seconds for a stream. A step's splits are not the
// best placements anyway.
constexpr std::int64_t kMostStreamParts = 30'000'000;
constexpr std::int64_t kMostStepParts = 2'000'000;
// Orders that are only to find a first upper limit.
constexpr std::int64_t kFirstOrders = 3;

class Dp final : public Placer {
 public:
  struct Options {
    std::int64_t ideals = 50'000;
    std::int64_t orders = 16;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("ideals", &Options::ideals, 1, 10'000'000,
                 "Sets of ops that may come first, at most; with more, lists of ops are cut.")
        .integer("orders", &Options::orders, 1, 1'000'000, "Lists of ops that are tried then.");
  }
  explicit Dp(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// Splits one model again and again, under several estimates, memories and numbers of devices.
class Splitting {
 public:
  Splitting(const Problem& problem, const Dp::Options& options, std::int64_t parts,
            const Budget& budget, Rng rng);

  // From the items: in units that are fine or coarse as the number of ideals allows.
  void set_problem(const SplitProblem& items);
  // None where no load is below the limit.
  std::optional<ContiguousSplit> split(std::size_t devices, Nanoseconds below = kNever);
  std::vector<DeviceId> device_of_group(const ContiguousSplit& split) const;

  // Whether all splits into consecutive parts have been considered so far.
  bool all_considered() const { return lattice_ && !coarse_ && finished_; }
  // What was left out.
  void add_notes(PlaceResult& result) const;

 private:
  // An order of the units, in which neighbours are merged where there are too many.
  struct List {
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> run_of;  // by unit
    SplitProblem runs;
  };
  std::string too_many_ideals() const {
    return in_time_ ? fmt::format("there are more than {} ideals", options_.ideals)
                    : "there are more ideals than there was time to count";
  }
  std::optional<ContiguousSplit> split_list(const List& list, const SplitLimits& limits) const;

  const Dp::Options& options_;
  std::int64_t parts_;  // that may still be looked at
  Budget time_;         // the budget's time alone: evaluations are few
  SplitUnits units_;
  bool coarse_ = false;
  std::optional<IdealLattice> lattice_;
  SplitProblem problem_;  // of the units
  std::vector<List> lists_;
  bool in_time_ = true;  // whether there was time to count the ideals
  bool finished_ = true;
};

Splitting::Splitting(const Problem& problem, const Dp::Options& options, std::int64_t parts,
                     const Budget& budget, Rng rng)
    : options_(options), parts_(parts), time_(budget), units_(find_split_units(problem)) {
  time_.evaluations.reset();
  const auto most = static_cast<std::size_t>(options.ideals);
  // Half of the time for the ideals leaves the other half for what they are for.
  const auto late = [&, start = time_.elapsed_seconds()] {
    return time_.spent(0) ||
           (time_.seconds && time_.elapsed_seconds() - start > (*time_.seconds - start) / 2);
  };
  lattice_ = IdealLattice::enumerate(units_.successors, most, late);
  if (!lattice_) {
    coarse_ = true;
    in_time_ = !late();
    units_ = find_coarse_split_units(problem);
    lattice_ = IdealLattice::enumerate(units_.successors, most, late);
  }
  if (!lattice_) in_time_ = in_time_ && !late();
  const std::uint64_t affordable = 1 + kMostOrderedUnits / (units_.size() + 1);
  std::uint64_t count = static_cast<std::uint64_t>(lattice_ ? kFirstOrders : options.orders);
  count = std::min(count, affordable);
  lists_.resize(count);
  lists_[0].order = numbered_order(units_);
  for (std::size_t i = 1; i < count; ++i) lists_[i].order = depth_first_order(units_, rng);
}

void Splitting::set_problem(const SplitProblem& items) {
  problem_ = merge_units(items, units_.of_group, units_.size());
  const std::uint32_t runs = std::min(kMostRuns, units_.size());
  for (List& list : lists_) {
    if (list.run_of.empty()) list.run_of = merge_into_runs(problem_, list.order, kMostRuns);
    list.runs = merge_units(problem_, list.run_of, runs);
  }
}

std::optional<ContiguousSplit> Splitting::split_list(const List& list,
                                                     const SplitLimits& limits) const {
  const auto lattice = IdealLattice::chain(list.runs.num_units());
  const SplitResult result = best_contiguous_split(list.runs, lattice, limits);
  if (!result.best) return std::nullopt;
  ContiguousSplit split{.device_of = {}, .load = result.best->load};
  for (const std::uint32_t run : list.run_of) {
    split.device_of.push_back(result.best->device_of[run]);
  }
  return split;
}

std::optional<ContiguousSplit> Splitting::split(std::size_t devices, Nanoseconds below) {
  std::optional<ContiguousSplit> best;
  SplitLimits limits;
  limits.devices = devices;
  limits.below = below;
  for (const List& list : lists_) {
    if (auto found = split_list(list, limits)) {
      limits.below = found->load;
      best = std::move(found);
    }
    // The first one is computed however little time there is.
    limits.stop = [&] { return time_.spent(0); };
    if (limits.stop()) break;
  }
  if (!lattice_) return best;
  if (parts_ <= 0) {
    finished_ = false;
    return best;
  }
  limits.parts = parts_;
  SplitResult result = best_contiguous_split(problem_, *lattice_, limits);
  parts_ -= result.parts;
  finished_ = finished_ && result.finished;
  return result.best ? std::move(result.best) : std::move(best);
}

std::vector<DeviceId> Splitting::device_of_group(const ContiguousSplit& split) const {
  std::vector<DeviceId> result;
  for (const std::uint32_t unit : units_.of_group) result.push_back(split.device_of[unit]);
  return result;
}

void Splitting::add_notes(PlaceResult& result) const {
  if (!lattice_ || !finished_) {
    const std::string why = lattice_ ? "the ideals took too long" : too_many_ideals();
    result.notes.push_back(
        fmt::format("{}: consecutive parts of {} lists of the ops were considered, not all", why,
                    lists_.size()));
  } else if (coarse_) {
    result.notes.push_back(too_many_ideals() +
                           ": sources stay with their readers, backward ops with forward ones");
  }
}

// Offers what it is given, and keeps the best.
class Best {
 public:
  Best(const Problem& problem, PlaceContext& context) : problem_(problem), context_(context) {}

  Evaluation offer(const std::vector<DeviceId>& device_of_group) {
    Placement placement = expand_groups(problem_, device_of_group);
    check_placement(problem_, placement);
    const Evaluation value = context_.evaluator().evaluate(placement);
    context_.incumbent().offer({placement, {}, value, "dp"});
    if (!best_ || value < *best_) {
      best_ = value;
      placement_ = std::move(placement);
    }
    return value;
  }

  const std::optional<Evaluation>& value() const { return best_; }
  Placement take() { return std::move(placement_); }

 private:
  const Problem& problem_;
  PlaceContext& context_;
  std::optional<Evaluation> best_;
  Placement placement_;
};

PlaceResult place_stream(const Problem& problem, PlaceContext& context,
                         const StreamPeriod& objective, const std::vector<DeviceId>& devices,
                         Splitting& splitting, const Budget& budget, Rng rng) {
  const bool simulated = stream_is_simulated(problem, objective.overlap);
  Best best(problem, context);
  bool optimal = false;
  const auto try_model = [&](const StreamModel& model) {
    std::vector<SplitEstimate> estimates{SplitEstimate::kLeast};
    if (!least_is_exact(model)) estimates.push_back(SplitEstimate::kTypical);
    for (const SplitEstimate estimate : estimates) {
      splitting.set_problem(make_split_problem(model, devices, estimate));
      const auto split = splitting.split(devices.size());
      if (!split) continue;
      const Evaluation value = best.offer(splitting.device_of_group(*split));
      // No split's period is below its least estimate, where what it holds is none.
      optimal = optimal || (estimate == SplitEstimate::kLeast && splitting.all_considered() &&
                            value.step == split->load && !simulated);
    }
  };
  // With a step in flight for every part, then for half of them, ...
  const StreamModel model = simulated
                                ? estimated_model(context, static_cast<double>(devices.size()))
                                : StreamModel(problem, objective.overlap);
  try_model(model);
  for (std::size_t parts = devices.size() / 2; simulated && parts >= 1; parts /= 2) {
    if (best.value() && budget.spent(context.evaluations())) break;
    try_model(estimated_model(context, static_cast<double>(parts)));
  }
  PlaceResult result;
  const bool best_fits = best.value() && best.value()->fits();
  if (!best_fits) {
    result.notes.push_back("found no consecutive parts that fit");
    std::vector<bool> usable(problem.num_devices(), false);
    for (const DeviceId device : devices) usable[device] = true;
    best.offer(fill_devices(StreamLevel(model), usable, rng));
  }
  result.placement = best.take();
  if (optimal && best_fits && devices.size() == problem.num_devices()) {
    result.notes.push_back("no split into consecutive parts has a lower period");
  } else {
    splitting.add_notes(result);
  }
  note_shortage(problem, context.evaluator(), result);
  return result;
}

// All numbers of devices up to 4, then ever fewer of them, and the highest.
std::vector<std::size_t> device_counts(std::size_t most) {
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count < most; count += std::max<std::size_t>(1, count / 4)) {
    counts.push_back(count);
  }
  counts.push_back(most);
  return counts;
}

// Groups one by one wherever there is room, the least loaded device first.
std::vector<DeviceId> fill_by_room(const Problem& problem, MemoryLedger& ledger) {
  std::vector<GroupId> order(problem.num_groups());
  std::iota(order.begin(), order.end(), GroupId{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](GroupId a, GroupId b) { return ledger.need(a) > ledger.need(b); });
  return place_by_score(problem, order, ledger, [&](GroupId, DeviceId device, Nanoseconds) {
    return static_cast<double>(ledger.used(device));
  });
}

PlaceResult place_step(const Problem& problem, PlaceContext& context, const Budget& budget,
                       const std::vector<DeviceId>& devices, Splitting& splitting) {
  const StreamModel model(problem, Overlap::kNone);
  const SplitProblem items = make_split_problem(model, devices, SplitEstimate::kTypical);
  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    SplitProblem sized = items;
    for (SplitClass& one : sized.classes) one.capacity = ledger.capacity(one.devices[0]);
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      sized.memory[group] = ledger.need(group);
      sized.temp[group] = 0;
    }
    splitting.set_problem(sized);
    Best best(problem, context);
    Nanoseconds below = kNever;
    for (const std::size_t count : device_counts(devices.size())) {
      if (best.value() && budget.spent(context.evaluations())) break;
      const auto split = splitting.split(count, below);
      if (!split) continue;
      best.offer(splitting.device_of_group(*split));
      below = split->load;
    }
    PlaceResult result;
    if (!best.value() || !best.value()->fits()) best.offer(fill_by_room(problem, ledger));
    result.placement = best.take();
    splitting.add_notes(result);
    return result;
  });
}

PlaceResult Dp::place(PlaceContext& context, const Budget& budget, Rng rng) {
  const Problem& problem = context.problem();
  const std::vector<DeviceId> devices = mutually_linked_devices(problem);
  const auto split_into = [&](std::int64_t most_parts) {
    return Splitting(problem, options_, most_parts, budget, rng.split(0));
  };
  PlaceResult result = context.objective().match(
      [&](const StepTime&) {
        Splitting splitting = split_into(kMostStepParts);
        return place_step(problem, context, budget, devices, splitting);
      },
      [&](const StreamPeriod& stream) {
        Splitting splitting = split_into(kMostStreamParts);
        return place_stream(problem, context, stream, devices, splitting, budget, rng.split(1));
      });
  if (devices.size() < problem.num_devices()) {
    result.notes.push_back(unlinked_note(problem, devices));
  }
  return result;
}

}  // namespace

EMPLACE_PLACER(dp, Dp, .family = "exact",
               .summary = "Consecutive parts of the model, of the least largest load.",
               .reference = "Tarnawski et al., NeurIPS 2020", .randomized = true)

}  // namespace emplace

// Large-neighbourhood search: Shaw, CP 1998; the choice of neighbourhoods by their success after
// Ropke and Pisinger, "An adaptive large neighborhood search heuristic for the pickup and delivery
// problem with time windows", Transportation Science 2006.
//
// Frees a few units (groups of ops, or clusters of groups) that have to do with each other, and
// solves what follows exactly: branch and bound over their devices, with the exact value of every
// assignment that is not cut off. How the units are chosen, how large they are and how many are
// freed at a time adapt to what brings improvements for its evaluations. When nothing does, a few
// moves are made however bad they are.
//
// A subproblem has D^k assignments, with k chosen such that there are about 1,000 at most; those
// that loads or memory alone make no better are not tried (local/subproblem.h). Exact for the
// subproblem, a heuristic for the whole. Choices, sizes and levels are drawn by gain per
// evaluation, with a quarter of the draws left to chance.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "placer/placer.h"

#include "placers/local/chains.h"
#include "placers/local/frame.h"
#include "placers/local/starts.h"
#include "placers/local/subproblem.h"
#include "placers/local/walk.h"

namespace emplace {
namespace {

enum class Choice {
  kConnected,  // a unit and what surrounds it
  kPair,       // the same on two devices, which may swap only with each other
  kCritical,   // what lies on the critical chain, or on the device that works longest
  kMemory,     // what the device with the least room holds, and some of others
  kRandom,
};
constexpr std::size_t kNumChoices = 5;

constexpr std::uint32_t kFewestClusters = 32;
constexpr std::uint32_t kScale = 8;
constexpr int kUsesOfClusters = 60;
// Assignments of one subproblem, at most.
constexpr std::array<double, 5> kLeaves = {4, 16, 64, 256, 1024};
// Subproblems without a new best before it begins again near the best there is.
constexpr int kPatience = 200;
constexpr std::uint64_t kStrongestKick = 4;

// Gives every choice a share of the evaluations in proportion to what each of them brings of late.
class Adaptive {
 public:
  // By choice, how many evaluations it takes, about.
  explicit Adaptive(std::vector<double> typical_cost)
      : typical_cost_(std::move(typical_cost)),
        gain_(typical_cost_.size(), 0),
        cost_(typical_cost_.size(), 1) {}

  std::size_t draw(Rng& rng) const {
    double rates = 0;
    for (std::size_t i = 0; i < gain_.size(); ++i) rates += gain_[i] / cost_[i];
    const double equal = 1 / static_cast<double>(gain_.size());
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t i = 0; i < gain_.size(); ++i) {
      const double earned = rates > 0 ? gain_[i] / cost_[i] / rates : equal;
      weights.push_back((kBlind * equal + (1 - kBlind) * earned) / typical_cost_[i]);
      sum += weights.back();
    }
    double drawn = rng.uniform() * sum;
    std::size_t choice = 0;
    while (choice + 1 < weights.size() && drawn >= weights[choice]) drawn -= weights[choice++];
    return choice;
  }
  void reward(std::size_t choice, double gain, double cost) {
    const double kept = std::exp2(-cost / kHalfLife);
    gain_[choice] = kept * gain_[choice] + gain;
    cost_[choice] = kept * cost_[choice] + cost;
  }

 private:
  static constexpr double kHalfLife = 256;  // of what is remembered, in evaluations
  static constexpr double kBlind = 0.25;    // share that all have alike

  std::vector<double> typical_cost_;
  std::vector<double> gain_;
  std::vector<double> cost_;
};

// What is gained from one value to another, as a share.
double gain(const Evaluation& before, const Evaluation& after) {
  if (!(after < before)) return 0;
  const auto share = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(from - to) / static_cast<double>(from);
  };
  return after.overflow < before.overflow ? share(before.overflow, after.overflow)
                                          : share(before.step, after.step);
}

class Lns final : public Placer {
 public:
  struct Options {
    std::int64_t chains = 2;
    bool classical = true;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("chains", &Options::chains, 1, 64, "Searches that share their best.")
        .flag("classical", &Options::classical,
              "Begin from the classical placers' answers even where others are given.");
  }
  explicit Lns(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// One granularity: what its units are.
struct Level {
  std::uint32_t wanted = 0;
  Clusters clusters = {};
  int uses = 0;
};

class LnsChain final : public Chain {
 public:
  LnsChain(Evaluator& evaluator, const CoarseGraph& graph, const Solution& start, Rng rng)
      : problem_(evaluator.problem()),
        graph_(graph),
        walk_(evaluator, graph, "lns", rng),
        start_(start) {
    for (std::uint32_t count = kFewestClusters; count < graph.size(); count *= kScale) {
      levels_.push_back({.wanted = count});
    }
    levels_.push_back({.wanted = std::max<std::uint32_t>(1, graph.size())});
    by_level_ = Adaptive(std::vector<double>(levels_.size(), 1));
  }

  void advance(const Turn& turn) override;
  bool finished() const override { return false; }
  const Solution* best() const override { return walk_.started() ? &walk_.best() : nullptr; }

 private:
  Rng& rng() { return walk_.rng(); }
  DeviceId device_of(GroupId group) const {
    return walk_.placement()[problem_.group_ops(group).front()];
  }

  void open(const Turn& turn);
  void search();
  void close();
  void leave();
  const Clusters& prepare_level();
  void choose_units(const Clusters& clusters, std::size_t count);
  void grow(const Clusters& clusters, std::size_t count, std::span<const DeviceId> within);
  void add(std::uint32_t unit, std::size_t count);
  GroupId random_group() { return static_cast<GroupId>(rng().below(graph_.size())); }
  void add_critical(const Clusters& clusters, std::size_t count);
  void add_heavy(const Clusters& clusters, std::size_t count);
  std::vector<Subproblem::Unit> free_units(const Clusters& clusters) const;

  const Problem& problem_;
  const CoarseGraph& graph_;
  Walk walk_;
  Solution start_;
  std::vector<Level> levels_;
  Adaptive by_choice_{std::vector<double>(kNumChoices, 1)};
  Adaptive by_level_{{1}};
  Adaptive by_size_{{kLeaves.begin(), kLeaves.end()}};
  int vain_ = 0;

  // The subproblem at hand.
  std::optional<Subproblem> subproblem_;
  std::size_t choice_ = 0;
  std::size_t level_ = 0;
  std::size_t size_ = 0;
  std::int64_t begun_at_ = 0;  // evaluations
  std::vector<std::uint32_t> units_;
  std::vector<DeviceId> devices_;  // that units may go to
  Evaluation cutoff_;
  std::vector<Move> moves_;
  std::vector<Move> best_moves_;
};

void LnsChain::advance(const Turn& turn) {
  walk_.begin(turn);
  if (!walk_.started()) walk_.go_to(start_);
  while (walk_.more()) {
    if (!subproblem_) open(turn);
    search();
  }
}

// Tries assignments for as long as the turn lasts.
void LnsChain::search() {
  while (walk_.more()) {
    if (!subproblem_->next(cutoff_)) {
      close();
      return;
    }
    subproblem_->moves(moves_);
    if (!walk_.neighbourhood().links_exist(walk_.placement(), moves_)) continue;
    const Evaluation value = walk_.attempt(moves_, cutoff_);
    if (!(value < cutoff_)) continue;
    cutoff_ = value;
    best_moves_ = moves_;
  }
}

void LnsChain::open(const Turn& turn) {
  if (turn.best->value < walk_.best().value) walk_.go_to(*turn.best);
  if (vain_ > kPatience) leave();
  choice_ = by_choice_.draw(rng());
  const auto choice = static_cast<Choice>(choice_);
  if (choice == Choice::kCritical || choice == Choice::kMemory) walk_.focus();
  level_ = by_level_.draw(rng());
  size_ = by_size_.draw(rng());
  const Clusters& clusters = prepare_level();
  devices_.clear();
  for (DeviceId device = 0; device < problem_.num_devices(); ++device) devices_.push_back(device);
  units_.clear();
  const double ways = choice == Choice::kPair ? 2.0 : static_cast<double>(problem_.num_devices());
  const double count = std::log(kLeaves[size_]) / std::log(std::max(2.0, ways));
  choose_units(clusters, static_cast<std::size_t>(std::max(1.0, std::round(count))));
  begun_at_ = walk_.spent();
  subproblem_.emplace(problem_, walk_.placement(), free_units(clusters));
  best_moves_.clear();
  cutoff_ = walk_.threshold(0);
}

// Begins again not far from the best.
void LnsChain::leave() {
  vain_ = 0;
  walk_.return_to_best();
  for (std::uint64_t kicks = 1 + rng().below(kStrongestKick); kicks > 0; --kicks) walk_.kick();
}

void LnsChain::close() {
  subproblem_.reset();
  if (walk_.spent() == begun_at_) walk_.pay_idle();
  const Evaluation before = walk_.best().value;
  if (!best_moves_.empty()) walk_.make(best_moves_, cutoff_);
  const double gained = gain(before, walk_.best().value);
  const auto cost = static_cast<double>(walk_.spent() - begun_at_);
  by_choice_.reward(choice_, gained, cost);
  by_level_.reward(level_, gained, cost);
  by_size_.reward(size_, gained, cost);
  vain_ = gained > 0 ? 0 : vain_ + 1;
}

const Clusters& LnsChain::prepare_level() {
  Level& level = levels_[level_];
  if (level.uses++ % kUsesOfClusters == 0) {
    walk_.cluster(level.wanted);
    level.clusters = walk_.neighbourhood().clusters();
  }
  return level.clusters;
}

void LnsChain::add(std::uint32_t unit, std::size_t count) {
  if (units_.size() >= count) return;
  if (std::find(units_.begin(), units_.end(), unit) == units_.end()) units_.push_back(unit);
}

void LnsChain::choose_units(const Clusters& clusters, std::size_t count) {
  switch (static_cast<Choice>(choice_)) {
    case Choice::kConnected:
      add(clusters.of_group[random_group()], count);
      grow(clusters, count, devices_);
      break;
    case Choice::kPair: {
      const GroupId seed = random_group();
      const DeviceId a = device_of(seed);
      DeviceId b = static_cast<DeviceId>(rng().below(problem_.num_devices()));
      // A neighbour's device, where there is one, has more to do with it.
      for (std::int64_t e = graph_.offsets[seed]; e < graph_.offsets[seed + 1]; ++e) {
        if (device_of(graph_.neighbours[e]) != a) b = device_of(graph_.neighbours[e]);
      }
      devices_ = {a, b};
      add(clusters.of_group[seed], count);
      grow(clusters, count, devices_);
      break;
    }
    case Choice::kCritical:
      add_critical(clusters, count);
      break;
    case Choice::kMemory:
      add_heavy(clusters, count);
      break;
    case Choice::kRandom:
      for (std::size_t i = 0; i < count; ++i) add(clusters.of_group[random_group()], count);
      break;
  }
}

// Random walks from the units that there are, over groups on the devices given.
void LnsChain::grow(const Clusters& clusters, std::size_t count, std::span<const DeviceId> within) {
  for (std::size_t tries = 0; tries < 8 * count && units_.size() < count; ++tries) {
    const std::span<const GroupId> from = clusters.groups[units_[rng().below(units_.size())]];
    const GroupId group = rng().pick(from);
    const std::int64_t first = graph_.offsets[group];
    const auto degree = static_cast<std::uint64_t>(graph_.offsets[group + 1] - first);
    if (degree == 0) continue;
    const GroupId other = graph_.neighbours[first + static_cast<std::int64_t>(rng().below(degree))];
    if (std::find(within.begin(), within.end(), device_of(other)) == within.end()) continue;
    add(clusters.of_group[other], count);
  }
}

// A piece of the critical chain, with what its ops wait for. In a stream: around a group of the
// device that works longest.
void LnsChain::add_critical(const Clusters& clusters, std::size_t count) {
  const std::vector<HotSpot>& spots = walk_.spots();
  if (!spots.empty()) {
    const std::size_t first = rng().below(spots.size());
    for (std::size_t i = first; i < spots.size() && units_.size() < count; ++i) {
      add(clusters.of_group[problem_.group_of(spots[i].op)], count);
      add(clusters.of_group[problem_.group_of(spots[i].other)], count);
    }
    return;
  }
  const DeviceTotals totals(problem_, walk_.placement());
  DeviceId busiest = 0;
  for (DeviceId device = 1; device < problem_.num_devices(); ++device) {
    if (totals.load(device) > totals.load(busiest)) busiest = device;
  }
  GroupId seed = random_group();
  for (int tries = 0; tries < 32 && device_of(seed) != busiest; ++tries) seed = random_group();
  add(clusters.of_group[seed], count);
  grow(clusters, count, devices_);
}

// Half of them from the device that is shortest of memory.
void LnsChain::add_heavy(const Clusters& clusters, std::size_t count) {
  DeviceId tightest = 0;
  const auto room = [&](DeviceId device) {
    return problem_.cluster().device(device).memory - walk_.peaks()[device];
  };
  for (DeviceId device = 1; device < problem_.num_devices(); ++device) {
    if (room(device) < room(tightest)) tightest = device;
  }
  for (std::size_t tries = 0; tries < 32 * count && units_.size() < count; ++tries) {
    const GroupId group = random_group();
    const bool wanted = (units_.size() % 2 == 0) == (device_of(group) == tightest);
    if (wanted) add(clusters.of_group[group], count);
  }
}

// The heaviest first: what it decides cuts off most.
std::vector<Subproblem::Unit> LnsChain::free_units(const Clusters& clusters) const {
  std::vector<Subproblem::Unit> units;
  std::vector<std::pair<Nanoseconds, std::uint32_t>> by_work;
  for (const std::uint32_t unit : units_) {
    Nanoseconds work = 0;
    for (const GroupId group : clusters.groups[unit]) work += graph_.durations[group];
    by_work.emplace_back(-work, unit);
  }
  std::sort(by_work.begin(), by_work.end());
  for (const auto& [work, unit] : by_work) {
    Subproblem::Unit free{.groups = clusters.groups[unit], .devices = {}};
    for (const DeviceId device : devices_) {
      const bool moves_some =
          std::any_of(free.groups.begin(), free.groups.end(), [&](GroupId group) {
            return device_of(group) != device && problem_.allowed(group, device);
          });
      if (moves_some) free.devices.push_back(device);
    }
    units.push_back(std::move(free));
  }
  return units;
}

PlaceResult Lns::place(PlaceContext& context, const Budget& given, Rng rng) {
  const Problem& problem = context.problem();
  const Budget budget = given.or_default();
  begin_search(context);
  const std::size_t count = chain_count(problem, options_.chains);
  const bool given_only = !options_.classical && !context.starts().empty();
  const std::vector<Solution> starts =
      given_only ? context.starts() : classical_starts(context, budget, rng.split(0), count);
  context.incumbent().offer(starts.front());
  return search_by_chains(context, budget, count, [&](const CoarseGraph& graph, std::size_t i) {
    return std::make_unique<LnsChain>(context.evaluator(), graph, starts[i % starts.size()],
                                      rng.split(1 + i));
  });
}

}  // namespace

EMPLACE_PLACER(lns, Lns, .family = "search",
               .summary = "Frees a few related groups at a time and places them optimally.",
               .reference = "Shaw, CP 1998; Ropke, Pisinger 2006", .randomized = true)

}  // namespace emplace

// A biased random-key genetic algorithm: Goncalves and Resende, "Biased random-key genetic
// algorithms for combinatorial optimization", J. Heuristics 2011, with the chromosome that REGAL
// gives it: Paliwal et al., "Reinforced genetic algorithm learning for optimizing computation
// graphs", ICLR 2020.
//
// A chromosome has, for each unit (a group of ops, or, in large graphs, a cluster of groups), an
// affinity to every device and a priority, all of them random keys. A unit is placed on the device
// of its highest affinity. Where REGAL sorts ops by priority alone, here the priority bends the
// order of a scheduler, pct or msr, by up to a factor of 1.5 either way, and one more key says
// which scheduler, or FIFO: the schedulers know the durations, a random order would have to find
// them. REGAL's third kind of key, the order of transfers, has no counterpart: the simulator's
// channels are first come, first served.
//
// Of a population the elite survives, mutants are new random chromosomes, and all others are
// children of one of the elite and one of the rest, which take each key from the elite parent with
// the probability `bias`. Defaults are within the ranges that Goncalves and Resende recommend; the
// population is at most as large as the chromosome is long, as they do. The first population holds
// the classical placers' answers. When generations bring nothing, all but the best starts anew.
//
// A heuristic. Keys are integers, so a generation is the same on every machine; individuals are
// evaluated in parallel, and of equal ones the earlier comes first. A generation costs one full
// evaluation for each new individual.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "base/wide.h"

#include "placer/linked_devices.h"
#include "placer/placer.h"
#include "placer/scheduler.h"

#include "placers/common/choices.h"
#include "placers/common/coarse_graph.h"
#include "placers/local/clusters.h"
#include "placers/local/frame.h"
#include "placers/local/starts.h"

namespace emplace {
namespace {

using Key = std::uint32_t;
using Chromosome = std::vector<Key>;

constexpr Key kMiddle = Key{1} << 31;
constexpr std::size_t kMostStarts = 16;
constexpr std::int64_t kLeastPopulation = 16;
constexpr int kPatience = 30;  // generations

struct Individual {
  Chromosome keys;
  std::optional<Evaluation> value = std::nullopt;
};

// From chromosomes to placements and schedules, and back.
class Code {
 public:
  // The placement, by group, is what clusters must not tear apart.
  Code(const Evaluator& evaluator, const std::vector<std::uint32_t>& device_of_group,
       std::uint32_t units, Rng rng)
      : problem_(evaluator.problem()),
        ordered_(evaluator.order_is_free()),
        graph_(build_coarse_graph(problem_)),
        clusters_(cluster_groups(graph_, device_of_group, units, rng)),
        choices_(problem_, mutually_linked_devices(problem_)) {}

  std::size_t length() const { return order_key() + (ordered_ ? 1 : 0); }

  Placement placement(const Chromosome& keys) const;
  Schedule schedule(const Chromosome& keys, const Placement& placement) const;
  // A chromosome of this solution, as nearly as units and linked devices allow.
  Chromosome encode(const Solution& solution, Rng& rng) const;

 private:
  std::size_t affinity(std::uint32_t unit, DeviceId device) const {
    return static_cast<std::size_t>(unit) * problem_.num_devices() + device;
  }
  std::size_t priority(std::uint32_t unit) const { return affinity(clusters_.size(), 0) + unit; }
  std::size_t order_key() const {
    return ordered_ ? priority(clusters_.size()) : affinity(clusters_.size(), 0);
  }
  // Where most of the unit's work is.
  DeviceId main_device(std::uint32_t unit, const Placement& placement) const;

  const Problem& problem_;
  bool ordered_;  // whether it chooses the order of ops
  CoarseGraph graph_;
  Clusters clusters_;
  DeviceChoices choices_;
};

Placement Code::placement(const Chromosome& keys) const {
  std::vector<DeviceId> device_of_group(problem_.num_groups());
  for (GroupId group = 0; group < problem_.num_groups(); ++group) {
    const std::uint32_t unit = clusters_.of_group[group];
    const std::span<const DeviceId> devices = choices_.of(group);
    DeviceId best = devices.front();
    for (const DeviceId device : devices) {
      if (keys[affinity(unit, device)] > keys[affinity(unit, best)]) best = device;
    }
    device_of_group[group] = best;
  }
  return expand_groups(problem_, device_of_group);
}

// Which scheduler a key stands for: each has an equal part of the keys.
std::size_t scheduler_of(Key key) {
  return static_cast<std::size_t>((std::uint64_t{key} * schedulers().size()) >> 32);
}

Schedule Code::schedule(const Chromosome& keys, const Placement& placement) const {
  if (!ordered_) return {};
  const std::string& scheduler = schedulers()[scheduler_of(keys[order_key()])].key;
  Schedule schedule = make_schedule(problem_, placement, scheduler);
  if (schedule.fifo()) return schedule;
  for (OpId op = 0; op < problem_.num_ops(); ++op) {
    const Key key = keys[priority(clusters_.of_group[problem_.group_of(op)])];
    std::int64_t& value = schedule.priorities[op];
    value = static_cast<std::int64_t>((static_cast<Wide>(value) * (std::uint64_t{kMiddle} + key)) >>
                                      32);
  }
  return schedule;
}

DeviceId Code::main_device(std::uint32_t unit, const Placement& placement) const {
  std::vector<Nanoseconds> work(problem_.num_devices(), 0);
  for (const GroupId group : clusters_.groups[unit]) {
    work[placement[problem_.group_ops(group).front()]] += graph_.durations[group] + 1;
  }
  return static_cast<DeviceId>(std::max_element(work.begin(), work.end()) - work.begin());
}

Chromosome Code::encode(const Solution& solution, Rng& rng) const {
  Chromosome keys(length(), kMiddle);
  for (std::uint32_t unit = 0; unit < clusters_.size(); ++unit) {
    for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
      keys[affinity(unit, device)] = static_cast<Key>(rng.below(kMiddle));
    }
    keys[affinity(unit, main_device(unit, solution.placement))] += kMiddle;
  }
  if (!ordered_) return keys;
  // A placer's own order is most like the longest path first.
  std::string_view order = solution.schedule.fifo() ? "fifo" : "pct";
  const auto& known = schedulers();
  for (const SchedulerInfo& info : known) {
    const Schedule schedule = make_schedule(problem_, solution.placement, info.key);
    if (schedule.priorities == solution.schedule.priorities) order = info.key;
  }
  const auto at = std::find_if(known.begin(), known.end(),
                               [&](const SchedulerInfo& info) { return info.key == order; });
  const auto place = static_cast<std::uint64_t>(at - known.begin());
  keys[order_key()] = static_cast<Key>(((2 * place + 1) << 31) / known.size());
  return keys;
}

class Genetic final : public Placer {
 public:
  struct Options {
    std::int64_t population = 100;
    double elite = 0.2;
    double mutants = 0.15;
    double bias = 0.7;
    std::int64_t units = 256;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("population", &Options::population, 4, 100'000, "Chromosomes at a time, at most.")
        .real("elite", &Options::elite, 0.01, 0.5, "Share of them that survives.")
        .real("mutants", &Options::mutants, 0, 0.5, "Share of them that is new and random.")
        .real("bias", &Options::bias, 0.5, 1, "Chance that a child's key is its elite parent's.")
        .integer("units", &Options::units, 2, 10'000'000,
                 "Units placed as a whole: groups, or about so many clusters of groups.");
  }
  explicit Genetic(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

class Evolution {
 public:
  Evolution(const Code& code, const Genetic::Options& options, PlaceContext& context,
            const Budget& budget, Rng rng)
      : code_(code), options_(options), context_(context), budget_(budget), rng_(rng) {
    const auto length = static_cast<std::int64_t>(code.length());
    size_ =
        static_cast<std::size_t>(std::min(options.population, std::max(kLeastPopulation, length)));
    clock_ = budget;
    clock_.evaluations.reset();
  }

  void run(const std::vector<Solution>& starts) {
    for (const Solution& start : starts) {
      if (population_.size() < size_) population_.push_back({code_.encode(start, rng_)});
    }
    while (population_.size() < size_) population_.push_back({random()});
    while (evaluate() && !context_.incumbent().optimal()) next_generation();
  }

 private:
  Chromosome random() {
    Chromosome keys(code_.length());
    for (Key& key : keys) key = static_cast<Key>(rng_.next() >> 32);
    return keys;
  }

  Chromosome cross(const Chromosome& elite, const Chromosome& other) {
    Chromosome keys(code_.length());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = rng_.chance(options_.bias) ? elite[i] : other[i];
    }
    return keys;
  }

  std::size_t share(double of_population, std::size_t least) const {
    return std::max(least, static_cast<std::size_t>(of_population * static_cast<double>(size_)));
  }

  bool evaluate();
  void next_generation();

  const Code& code_;
  const Genetic::Options& options_;
  PlaceContext& context_;
  const Budget& budget_;
  Budget clock_;
  Rng rng_;
  std::size_t size_ = 0;
  std::vector<Individual> population_;
  std::optional<Evaluation> best_;  // since the population began anew
  int fruitless_ = 0;               // generations
};

// Values what has none yet, and sorts. False when the budget is spent.
bool Evolution::evaluate() {
  std::vector<Individual*> waiting;
  for (Individual& individual : population_) {
    if (!individual.value) waiting.push_back(&individual);
  }
  if (budget_.evaluations) {
    const std::int64_t left =
        std::max<std::int64_t>(0, *budget_.evaluations - context_.evaluations());
    waiting.resize(std::min(waiting.size(), static_cast<std::size_t>(left)));
  }
  parallel_for(waiting.size(), budget_.threads, [&](std::size_t i) {
    if (clock_.spent(0)) return;
    const Placement placement = code_.placement(waiting[i]->keys);
    waiting[i]->value =
        context_.evaluator().evaluate(placement, code_.schedule(waiting[i]->keys, placement));
  });
  std::erase_if(population_, [](const Individual& individual) { return !individual.value; });
  std::stable_sort(population_.begin(), population_.end(),
                   [](const Individual& a, const Individual& b) { return *a.value < *b.value; });
  if (population_.empty()) return false;
  const Individual& first = population_.front();
  if (*first.value < context_.incumbent().value()) {
    Placement placement = code_.placement(first.keys);
    Schedule schedule =
        context_.evaluator().schedule_of(placement, code_.schedule(first.keys, placement));
    context_.incumbent().offer(
        {std::move(placement), std::move(schedule), *first.value, "genetic"});
  }
  fruitless_ = !best_ || *first.value < *best_ ? 0 : fruitless_ + 1;
  best_ = first.value;
  return !budget_.spent(context_.evaluations());
}

void Evolution::next_generation() {
  std::vector<Individual> next;
  if (fruitless_ >= kPatience || population_.size() < 2) {
    next.push_back(std::move(population_.front()));
    while (next.size() < size_) next.push_back({random()});
    fruitless_ = 0;
  } else {
    const std::size_t elite = std::min(share(options_.elite, 1), population_.size() - 1);
    const std::size_t mutants = share(options_.mutants, 0);
    for (std::size_t i = 0; i < mutants && elite + i < size_; ++i) next.push_back({random()});
    while (elite + next.size() < size_) {
      const std::size_t a = rng_.below(elite);
      const std::size_t b = elite + rng_.below(population_.size() - elite);
      next.push_back({cross(population_[a].keys, population_[b].keys)});
    }
    // Before the new ones, so that of equals the older stays ahead.
    next.insert(next.begin(), std::make_move_iterator(population_.begin()),
                std::make_move_iterator(population_.begin() + static_cast<std::ptrdiff_t>(elite)));
  }
  population_ = std::move(next);
}

PlaceResult Genetic::place(PlaceContext& context, const Budget& given, Rng rng) {
  const Problem& problem = context.problem();
  const Budget budget = given.or_default();
  begin_search(context);
  const std::vector<Solution> starts = classical_starts(context, budget, rng.split(0), kMostStarts);
  if (!worth_searching(context, budget)) return end_search(context);
  const Code code(context.evaluator(), devices_of_groups(problem, starts.front().placement),
                  static_cast<std::uint32_t>(options_.units), rng.split(1));
  Evolution(code, options_, context, budget, rng.split(2)).run(starts);
  return end_search(context);
}

}  // namespace

EMPLACE_PLACER(genetic, Genetic, .family = "search",
               .summary = "A biased random-key genetic algorithm over devices and priorities.",
               .reference = "Goncalves, Resende 2011; Paliwal et al., ICLR 2020 (REGAL)",
               .randomized = true)

}  // namespace emplace

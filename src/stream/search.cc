// Multilevel annealing with the memetic layer of multilevel partitioners (KaFFPaE, Sanders and
// Schulz, ALENEX 2012): V-cycles that keep what an assignment puts together, and crossover by
// overlay, which merges only what both parents put together and so needs no common device names.
//
// A heuristic: it says nothing of how far from the best an answer is (bound.h does). Values are
// exact at the finest level, as merging keeps them (level.cc). The work is that of the annealings,
// O(nets of an item) for each proposal.
#include "stream/search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "base/rng.h"

#include "placer/linked_devices.h"

#include "stream/anneal.h"
#include "stream/chain.h"
#include "stream/coarsen.h"
#include "stream/fill.h"
#include "stream/level.h"
#include "stream/population.h"

namespace emplace {
namespace {

constexpr std::size_t kMembers = 10;
constexpr std::size_t kTasksPerRound = 4;
// So many tasks begin anew before any combines what was found, and this share of the later ones.
constexpr int kFirstFresh = 12;
constexpr double kFreshShare = 0.1;
constexpr double kChainShare = 0.3;  // of those that begin anew
constexpr double kVCycleShare = 0.3;
// The coarsest level has about so many items per device, at most.
constexpr std::uint64_t kCoarsestPerDevice = 6;
// Effort is moves per item and level. Many quick tasks bring more at first; they get longer as they
// stop paying.
constexpr double kFirstEffort = 10;
constexpr double kFirstMoves = 1e6;  // at most, at one level, while kLeastEffort allows it
constexpr double kLeastEffort = 1;
constexpr double kMostEffort = 1000;
constexpr double kEffortGrowth = 1.1;
constexpr std::int64_t kLeastMoves = 1024;
constexpr double kFreshTemperature = 1;
constexpr double kRefineTemperature = 0.2;  // keeps most of what the parents have
constexpr double kEndTemperature = 0.01;
constexpr double kViolationEnergy = 5;
constexpr int kLeastLog2Power = 3;
constexpr int kMostLog2Power = 10;

// Around 1, up to e^(spread / 2) and down to its reciprocal.
double random_factor(Rng& rng, double spread) {
  return std::exp(spread * (rng.uniform() - 0.5));
}

}  // namespace

class StreamSearch::Rounds {
 public:
  Rounds(const StreamModel& model, std::uint64_t seed,
         std::span<const std::vector<DeviceId>> starts, Listener on_improvement)
      : model_(model),
        on_improvement_(std::move(on_improvement)),
        level_(model),
        devices_(mutually_linked_devices(model.problem())),
        usable_(model.num_devices(), false),
        population_(level_, kMembers),
        rng_(seed) {
    for (const DeviceId device : devices_) usable_[device] = true;
    effort_ = std::clamp(kFirstMoves / std::max(1.0, static_cast<double>(level_.num_items())),
                         kLeastEffort, kFirstEffort);
    offer(fill_devices(level_, usable_, rng_));
    for (const std::vector<DeviceId>& start : starts) {
      starts_.push_back(legal(start));
      offer(starts_.back());
    }
    if (!level_.devices().all_linked) offer_single_devices();
  }

  bool open() const { return level_.num_items() > 0 && level_.devices().count > 1; }
  const StreamSolution& best() const { return best_solution_; }
  std::int64_t moves() const { return moves_; }

  void run(const Budget& budget, Nanoseconds lower_bound) {
    budget_ = &budget;
    lower_bound_ = lower_bound;
    const std::int64_t left = budget.evaluations ? *budget.evaluations - moves_
                                                 : std::numeric_limits<std::int64_t>::max() / 2;
    std::vector<Task> tasks(num_tasks(budget));
    for (Task& task : tasks) {
      task.rng = rng_.split(tasks_begun_++);
      task.allowance = std::max<std::int64_t>(0, left + std::ssize(tasks) - 1) / std::ssize(tasks);
      plan(task);
    }
    const StreamValue before = best_.value;
    first_done_ = tasks.size();
    parallel_for(tasks.size(), budget.threads, [&](std::size_t i) { run_one(tasks[i], i); });
    const std::size_t last = first_done_;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      moves_ += tasks[i].moves;
      if (i <= last) take(std::move(tasks[i].result));
    }
    if (!(best_.value < before)) effort_ = std::min(kMostEffort, effort_ * kEffortGrowth);
  }

 private:
  // One multilevel annealing.
  struct Task {
    enum class Kind { kFill, kChain, kImprove, kCombine };

    Kind kind = Kind::kFill;
    Rng rng{0};
    double effort = 1;
    std::int64_t allowance = 0;   // moves
    std::vector<DeviceId> start;  // kImprove, kCombine
    std::vector<DeviceId> other;  // kCombine

    StreamMember result = {};
    std::int64_t moves = 0;
  };

  // A round's tasks see the population as it was before the round. Where their number is fixed, the
  // number of threads changes nothing.
  static std::size_t num_tasks(const Budget& budget) {
    if (budget.evaluations) return kTasksPerRound;
    return std::max(kTasksPerRound, static_cast<std::size_t>(std::max(1, budget.threads)));
  }
  bool enough(const StreamValue& value) const { return value <= StreamValue{0, 0, lower_bound_}; }

  std::vector<DeviceId> legal(std::vector<DeviceId> start) {
    EMPLACE_CHECK(start.size() == level_.num_items());
    for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
      const auto allowed = level_.allowed(item);
      if (std::binary_search(allowed.begin(), allowed.end(), start[item])) continue;
      start[item] = allowed[rng_.below(allowed.size())];
    }
    return start;
  }

  void offer(const std::vector<DeviceId>& device_of) {
    take({device_of, stream_value(level_, device_of)});
  }

  // Where links are missing, a device by itself may be the only place with room.
  void offer_single_devices() {
    for (DeviceId device = 0; device < level_.devices().count; ++device) {
      std::vector<DeviceId> all(level_.num_items(), device);
      if (legal(all) == all) offer(all);
    }
  }

  void take(StreamMember member) {
    if (best_.device_of.empty() || member.value < best_.value) {
      best_ = member;
      best_solution_ = {best_.device_of, best_.value.period, best_.value.overflow};
      if (on_improvement_ && best_.value.missing_links == 0) on_improvement_(best_solution_);
    }
    population_.add(std::move(member));
  }

  void plan(Task& task) {
    task.effort = effort_ * random_factor(task.rng, 2);
    if (next_start_ < starts_.size()) {
      task.kind = Task::Kind::kImprove;
      task.start = std::move(starts_[next_start_++]);
      return;
    }
    const std::vector<StreamMember>& members = population_.members();
    const double choice = task.rng.uniform();
    if (fresh_ < kFirstFresh || choice < kFreshShare || members.size() < 2) {
      ++fresh_;
      if (task.rng.chance(kChainShare)) task.kind = Task::Kind::kChain;
      return;
    }
    const std::size_t a = task.rng.below(members.size());
    if (choice < kFreshShare + kVCycleShare) {
      task.kind = Task::Kind::kImprove;
      task.start = members[a].device_of;
      return;
    }
    const std::size_t b = (a + 1 + task.rng.below(members.size() - 1)) % members.size();
    const bool a_first = members[a].value < members[b].value;
    task.kind = Task::Kind::kCombine;
    task.start = members[a_first ? a : b].device_of;
    task.other = members[a_first ? b : a].device_of;
  }

  void run_one(Task& task, std::size_t index) {
    bool stopped = false;
    const StopCheck stop = [&](std::int64_t moves) {
      task.moves += moves;
      stopped = stopped || task.moves >= task.allowance || budget_->spent(moves_ + task.moves) ||
                first_done_.load(std::memory_order_relaxed) < index;
      return stopped;
    };
    if (task.kind == Task::Kind::kChain) {
      std::vector<DeviceId> devices = devices_;
      task.rng.shuffle(devices);
      task.start = split_order(model_, random_linear_order(model_, task.rng), devices);
    }
    const auto per_device = static_cast<std::uint32_t>(1 + task.rng.below(kCoarsestPerDevice));
    const StreamHierarchy hierarchy(level_, per_device * level_.devices().count, parts(task),
                                    task.rng, stop);
    std::size_t depth = hierarchy.num_levels() - 1;
    std::vector<DeviceId> device_of = task.kind == Task::Kind::kFill
                                          ? fill_devices(hierarchy.level(depth), usable_, task.rng)
                                          : hierarchy.coarsen(task.start);
    while (true) {
      const StreamLevel& level = hierarchy.level(depth);
      if (!stopped) anneal(level, anneal_plan(task, level), task.rng, stop, device_of);
      if (depth == 0) break;
      device_of = hierarchy.refine(depth--, device_of);
    }
    const StreamValue value = stream_value(level_, device_of);
    task.result = {std::move(device_of), value};
    if (!enough(value)) return;
    std::size_t seen = first_done_;
    while (index < seen && !first_done_.compare_exchange_weak(seen, index)) {
    }
  }

  std::vector<std::uint32_t> parts(const Task& task) const {
    if (task.kind == Task::Kind::kCombine) {
      return overlay(task.start, task.other, level_.devices().count);
    }
    return {task.start.begin(), task.start.end()};
  }

  AnnealPlan anneal_plan(Task& task, const StreamLevel& level) const {
    AnnealPlan plan;
    plan.log2_power =
        kLeastLog2Power +
        static_cast<int>(task.rng.below(kMostLog2Power - kLeastLog2Power + std::uint64_t{1}));
    const bool fresh = task.kind == Task::Kind::kFill;
    plan.start_temperature =
        (fresh ? kFreshTemperature : kRefineTemperature) * random_factor(task.rng, 3);
    plan.end_temperature = kEndTemperature;
    const auto wanted = static_cast<std::int64_t>(task.effort * level.num_items());
    plan.moves = std::min(std::max(wanted, kLeastMoves), task.allowance - task.moves);
    plan.violation_energy = kViolationEnergy * random_factor(task.rng, 5);
    plan.fit_first = task.rng.chance(0.5);
    plan.enough = lower_bound_;
    return plan;
  }

  const StreamModel& model_;
  Listener on_improvement_;
  StreamLevel level_;
  std::vector<DeviceId> devices_;  // to begin on: all of them linked with each other
  std::vector<bool> usable_;       // by device, whether it is one of devices_
  std::vector<std::vector<DeviceId>> starts_;
  std::size_t next_start_ = 0;
  StreamPopulation population_;
  StreamMember best_;
  StreamSolution best_solution_;
  Rng rng_;
  std::uint64_t tasks_begun_ = 0;
  int fresh_ = 0;
  double effort_ = kFirstEffort;
  std::int64_t moves_ = 0;
  // Of the round:
  const Budget* budget_ = nullptr;
  Nanoseconds lower_bound_ = 0;
  // The first task that found enough: later ones then need not go on.
  std::atomic<std::size_t> first_done_{0};
};

StreamSearch::StreamSearch(const StreamModel& model, std::uint64_t seed,
                           std::span<const std::vector<DeviceId>> starts, Listener on_improvement)
    : rounds_(std::make_unique<Rounds>(model, seed, starts, std::move(on_improvement))) {}

StreamSearch::~StreamSearch() = default;

bool StreamSearch::open() const {
  return rounds_->open();
}

void StreamSearch::round(const Budget& budget, Nanoseconds lower_bound) {
  rounds_->run(budget, lower_bound);
}

const StreamSolution& StreamSearch::best() const {
  return rounds_->best();
}

std::int64_t StreamSearch::moves() const {
  return rounds_->moves();
}

}  // namespace emplace

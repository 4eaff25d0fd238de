// Annealing at several scales. A tournament chooses where to begin: many starts, some of them
// several times, are annealed as a few dozen clusters, a third of them again for longer, and so on;
// the winners make a pool. (Small graphs: fewer starts, at ever finer scales.) Then the islands
// anneal for as long as the budget allows, slowly, from few clusters to single groups, and one that
// falls behind goes on from the best. What is left goes to members of the pool, which are improved
// at random scales, or combined in pairs: what both parents put together stays together, so that
// the search is about what they disagree on.
//
// A search in several parts (SearchPart) has its tournament in the first, one slow annealing over
// all of them, and the rest in the last.
//
// A heuristic: values are exact (sim/incremental.h), the answer is the best that was met, and
// nothing is proven. Under an evaluation budget the islands are two and meet at fixed points, so
// that the result depends on the seed alone. Nearly all time goes into tries, of which each costs
// what its move changes.
#include "placers/local/latency_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/parallel.h"

#include "placers/local/walk.h"

namespace emplace {
namespace {

// So many under an evaluation budget; else as many as threads.
constexpr std::size_t kFixedIslands = 2;
// Fewer where the graph is large: a walk takes much memory.
constexpr std::size_t kMostOpsOfIslands = 4'000'000;
// Of the budget, for coming to fit where no start does.
constexpr double kFitShare = 0.5;

// Of the budget, until the end of the tournament and of the long annealing. Small graphs have
// little to decide at coarse scales.
constexpr double kTournamentEnd = 0.3;
constexpr double kTournamentEndOfSmall = 0.1;
constexpr double kAnnealingEnd = 0.92;
constexpr double kSmall = 512;  // groups
constexpr int kLegs = 3;
constexpr int kMostLevelsPerLeg = 6;
constexpr int kLeastLevelsPerLeg = 2;
// Fewer starts take part, in fewer levels, where one would be shorter than that; none is longer
// than this.
constexpr double kLeastTriesPerLevel = 300;
constexpr double kMostTriesPerLevel = 1'200;
// Large graphs: tries of an entry at least, entries at most; and how many are left after a leg.
constexpr double kLeastTriesPerEntry = 250;
constexpr double kMostEntries = 16;
constexpr double kLeftAfterLeg = 0.34;
constexpr double kMostTriesPerTask = 5'000;
constexpr double kTaskShare = 0.06;
constexpr double kCombineShare = 0.3;
constexpr double kSoftShare = 0.5;  // of the levels, that may pass through what does not fit
constexpr std::size_t kPoolSize = 6;
// Tries for each group without any improvement, after which the search ends: small graphs are
// searched through long before a usual budget is spent.
constexpr std::int64_t kPatience = 20'000;

// Temperatures are shares of the step.
constexpr double kHottest = 0.015;
constexpr double kColdest = 0.0001;
constexpr double kLevelCooling = 0.4;  // how far along that scale one level cools
constexpr double kImproveCoarse = 0.004;
constexpr double kImproveFine = 0.0002;
constexpr double kImproveCooling = 8;
constexpr double kDescentShare = 0.5;  // of the improvements, that take nothing worse
constexpr double kDescentTemperature = 1e-9;
constexpr double kFewestClusters = 50;
// The long annealing: by how much a scale is finer than the one before, temperatures (at first, for
// one cluster; they fall with the root of the number of clusters, as what one of them can change
// does), how often orders are tried on the way, tries for each group from which on the budget is
// enough for two, at most so many at one scale, and how far an island may be behind the best when
// it begins, and later.
constexpr double kFewestOfScales = 64;
constexpr double kScale = 8;
constexpr double kScaleTemperature = 0.04;
constexpr double kScaleCooling = 20;
constexpr int kOrdersOfScale = 4;
constexpr double kTriesPerGroup = 400;
constexpr double kMostTriesPerGroup = 5'000;
constexpr double kMostRounds = 4;
// A long annealing says this often what it has come to, so that it is not lost with the process,
// and others hear of it.
constexpr double kBetweenOffers = 0.2;          // seconds
constexpr std::int64_t kEnoughToMeasure = 100;  // tries, for how long one takes
constexpr double kBehindAtFirst = 0.05;
constexpr double kBehind = 0.005;
constexpr double kFewestToImprove = 100;

// From low to high along a logarithmic scale.
double between(double low, double high, double x) {
  return low * std::pow(high / low, std::clamp(x, 0.0, 1.0));
}

// One annealing.
struct Level {
  double clusters = 0;
  double start_temperature = 0;
  double end_temperature = 0;
  double most_tries = 0;
  double share = 0;  // of what the search was given, at most
  bool until_it_fits = false;
  int orders = 0;  // how often several are tried on the way
};

// What one thread works on: levels one after the other, the first within `parts`.
struct Task {
  Solution solution;
  std::vector<std::uint32_t> parts;
  std::vector<Level> levels;
};

class LatencySearch {
 public:
  LatencySearch(PlaceContext& context, const Budget& budget, Rng rng,
                const std::vector<Solution>& starts, double share)
      : context_(context),
        problem_(context.problem()),
        budget_(budget),
        share_(context.part().count > 1 ? share : 1),
        rng_(rng),
        starts_(starts),
        graph_(build_coarse_graph(problem_)),
        begin_seconds_(budget.elapsed_seconds()),
        begin_evaluations_(context.evaluations()),
        last_improvement_(begin_evaluations_) {
    EMPLACE_CHECK(!starts.empty());
    std::size_t count =
        budget.evaluations
            ? kFixedIslands
            : static_cast<std::size_t>(std::clamp(budget.threads, 1, hardware_threads()));
    count = std::clamp<std::size_t>(kMostOpsOfIslands / std::max<OpId>(1, problem_.num_ops()), 1,
                                    count);
    for (std::size_t i = 0; i < count; ++i) {
      walks_.push_back(std::make_unique<Walk>(context.evaluator(), graph_, "auto", rng_.split(i)));
    }
    const double before = budget.elapsed_seconds();
    context.evaluator().evaluate(starts.front().placement, starts.front().schedule);
    seconds_per_try_ = std::max(1e-7, budget.elapsed_seconds() - before);
  }

  void run() {
    begin_value_ = context_.incumbent().value();
    if (!starts_.front().value.fits()) come_to_fit();
    if (context_.part().first()) {
      hold_tournament();
    } else {
      for (const Solution& start : starts_) add_to_pool(start);
    }
    anneal_long();
    for (std::int64_t before = -1; !finished() && before != context_.evaluations();) {
      before = context_.evaluations();
      improve_pool();
    }
  }

 private:
  bool finished() const {
    return context_.incumbent().optimal() || budget_.spent(context_.evaluations()) ||
           context_.evaluations() - last_improvement_ > kPatience * graph_.size();
  }
  // Of what the search was given.
  double share_done() const {
    double done = 0;
    if (budget_.seconds) {
      done = (budget_.elapsed_seconds() - begin_seconds_) / (*budget_.seconds - begin_seconds_);
    }
    if (budget_.evaluations) {
      done = std::max(done, static_cast<double>(context_.evaluations() - begin_evaluations_) /
                                static_cast<double>(*budget_.evaluations - begin_evaluations_));
    }
    return done;
  }

  // Takes memory off the devices that are short, from the best starts, before anything else.
  void come_to_fit() {
    std::vector<Task> tasks(std::min(walks_.size(), starts_.size()));
    const auto groups = static_cast<double>(graph_.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      tasks[i] = {starts_[i], parts_of(starts_[i]), {}};
      for (const double clusters : {100.0, 1000.0, groups}) {
        tasks[i].levels.push_back({.clusters = std::min(clusters, groups),
                                   .most_tries = std::numeric_limits<std::int32_t>::max(),
                                   .share = kFitShare / 3,
                                   .until_it_fits = true});
      }
    }
    run_tasks(tasks);
    for (const Task& task : tasks) {
      if (task.solution.value.fits()) starts_.insert(starts_.begin(), task.solution);
    }
  }

  void hold_tournament() {
    const auto better = [](const Solution& a, const Solution& b) { return a.value < b.value; };
    const double end = own_share(tournament_end());
    const double share = std::max(kTournamentEndOfSmall, end - share_done()) / kLegs;
    std::vector<Solution> entries = is_small() ? entries_of_small(share) : entries_of_large(share);
    const double kept = is_small() ? 0.5 : kLeftAfterLeg;
    for (int leg = 0; leg < kLegs && !finished(); ++leg) {
      const std::size_t rounds = (entries.size() + walks_.size() - 1) / walks_.size();
      const double task_share = share / static_cast<double>(rounds);
      for (std::size_t first = 0; first < entries.size() && !finished(); first += walks_.size()) {
        const std::size_t count = std::min(walks_.size(), entries.size() - first);
        std::vector<Task> tasks(count);
        for (std::size_t i = 0; i < count; ++i) {
          tasks[i] = {entries[first + i], parts_of(entries[first + i]),
                      is_small() ? leg_levels(leg, task_share / levels_per_leg_)
                                 : std::vector<Level>{scale(kFewestOfScales, task_share, 0)}};
        }
        run_tasks(tasks);
        for (std::size_t i = 0; i < count; ++i) entries[first + i] = tasks[i].solution;
      }
      std::stable_sort(entries.begin(), entries.end(), better);
      const auto left = std::ceil(kept * static_cast<double>(entries.size()));
      entries.resize(
          std::min(entries.size(), std::max(walks_.size(), static_cast<std::size_t>(left))));
    }
    for (const Solution& entry : entries) add_to_pool(entry);
  }

  // As many starts as there are tries for, in each of several levels.
  std::vector<Solution> entries_of_small(double leg_share) {
    const double levels = tries_within(leg_share) / kLeastTriesPerLevel;
    levels_per_leg_ =
        static_cast<int>(std::clamp<double>(levels, kLeastLevelsPerLeg, kMostLevelsPerLeg));
    const double rounds = std::clamp(levels / levels_per_leg_, 1.0, 1e6);
    std::vector<Solution> entries = starts_;
    entries.resize(std::min(entries.size(), static_cast<std::size_t>(rounds) * walks_.size()));
    return entries;
  }

  // More of them, at the coarsest scale alone. Where there is time for more than there are, they
  // take part several times.
  std::vector<Solution> entries_of_large(double leg_share) const {
    const auto walks = static_cast<double>(walks_.size());
    const double rounds = std::clamp(tries_within(leg_share) / kLeastTriesPerEntry, 1.0,
                                     std::max(1.0, kMostEntries / walks));
    const std::size_t count = static_cast<std::size_t>(rounds) * walks_.size();
    std::vector<Solution> entries;
    for (std::size_t i = 0; i < count; ++i) entries.push_back(starts_[i % starts_.size()]);
    return entries;
  }

  // A slow annealing at one scale.
  Level scale(double clusters, double share, int orders) const {
    const double hot = kScaleTemperature / std::sqrt(std::max(1.0, clusters));
    return {.clusters = clusters,
            .start_temperature = hot,
            .end_temperature = hot / kScaleCooling,
            .most_tries = kMostTriesPerGroup * static_cast<double>(graph_.size()),
            .share = share,
            .orders = orders};
  }

  bool is_small() const { return graph_.size() <= kSmall; }

  // As slowly as the budget allows. Where that is slower than pays, several times, from the pool.
  // Once is all scales, each as long; all of it is a sequence of scales, of which this part of the
  // search has a piece.
  void anneal_long() {
    const SearchPart& part = context_.part();
    const double begin = part.first() ? 0 : annealed_by(part.of_whole(0) / share_);
    const double end = part.last() ? 1 : annealed_by(part.of_whole(1) / share_);
    const double share = own_share(kAnnealingEnd) - share_done();
    if (!(share > 0) || !(end > begin)) return;
    const auto groups = static_cast<double>(graph_.size());
    const double tries = part.count > 1 ? tries_of_all_parts() : tries_within(share);
    const double rounds =
        std::floor(std::clamp(tries / (kTriesPerGroup * groups), 1.0, kMostRounds));
    std::vector<double> scales;
    if (!is_small()) {
      for (double count = kFewestOfScales; count < groups; count *= kScale) scales.push_back(count);
    }
    scales.push_back(groups);
    const auto num_scales = static_cast<double>(scales.size());
    const double level_share = share / (end - begin) / rounds / num_scales;
    const double from = begin * rounds * num_scales;
    const double to = end * rounds * num_scales;
    std::vector<Task> tasks;
    for (auto i = static_cast<std::size_t>(from); static_cast<double>(i) < to && !finished(); ++i) {
      const std::size_t round = i / scales.size();
      const bool anew = tasks.empty() || i % scales.size() == 0;
      if (anew) tasks = tasks_from_pool(round * walks_.size());
      const auto at = static_cast<double>(i);
      const Level whole = scale(scales[i % scales.size()], level_share, kOrdersOfScale);
      anneal_scale(tasks, piece_of(whole, from - at, to - at),
                   anew && part.first() ? kBehindAtFirst : kBehind);
    }
  }

  double tournament_end() const { return is_small() ? kTournamentEndOfSmall : kTournamentEnd; }

  // Of what this part was given, the share at which this share of all parts' is over.
  double own_share(double of_all) const {
    const SearchPart& part = context_.part();
    const double given = part.own_share(share_);
    return given > 0 ? part.own_share(share_ * of_all) / given : 1;
  }

  // How much of the slow annealing is over when this share of the search is.
  double annealed_by(double share) const {
    const double first = tournament_end();
    return std::clamp((share - first) / (kAnnealingEnd - first), 0.0, 1.0);
  }

  // Of one walk, in the slow annealing of all parts: every part comes to the same number, unless
  // time is what ends it.
  double tries_of_all_parts() const {
    const SearchPart& part = context_.part();
    const double given = part.own_share(share_) / part.count;
    double share = (kAnnealingEnd - tournament_end()) * share_ / given;
    if (budget_.evaluations) {
      // Those before it (starts, bounds) are not the same in every part.
      const auto all = static_cast<double>(*budget_.evaluations);
      share *= all / std::max(1.0, all - static_cast<double>(begin_evaluations_));
    }
    return tries_within(share);
  }

  // From one point of an annealing to another, where they are within it.
  static Level piece_of(const Level& whole, double begin, double end) {
    if (begin <= 0 && end >= 1) return whole;
    begin = std::max(begin, 0.0);
    end = std::min(end, 1.0);
    Level piece = whole;
    piece.start_temperature = between(whole.start_temperature, whole.end_temperature, begin);
    piece.end_temperature = between(whole.start_temperature, whole.end_temperature, end);
    piece.most_tries *= end - begin;
    piece.share *= end - begin;
    piece.orders = static_cast<int>(std::ceil(whole.orders * (end - begin)));
    return piece;
  }

  // For each island a member of the pool, the `first` and those after it.
  std::vector<Task> tasks_from_pool(std::size_t first) const {
    std::vector<Task> tasks(walks_.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      tasks[i].solution = pool_[(first + i) % pool_.size()];
    }
    return tasks;
  }

  void anneal_scale(std::vector<Task>& tasks, const Level& level, double most_behind) {
    take_from_outside();
    for (Task& task : tasks) {
      if (is_behind(task.solution, most_behind)) task.solution = pool_.front();
      task.parts = parts_of(task.solution);
      task.levels = {level};
    }
    run_tasks(tasks);
    for (const Task& task : tasks) add_to_pool(task.solution);
  }

  bool is_behind(const Solution& solution, double share) const {
    const Evaluation& best = pool_.front().value;
    return solution.value.overflow > best.overflow ||
           static_cast<double>(solution.value.step) > (1 + share) * static_cast<double>(best.step);
  }

  // Of one walk, with this share of everything.
  double tries_within(double share) const {
    double tries = std::numeric_limits<double>::max();
    if (budget_.seconds) {
      tries = share * (*budget_.seconds - begin_seconds_) / seconds_per_try();
    }
    if (budget_.evaluations) {
      const auto all = static_cast<double>(*budget_.evaluations - begin_evaluations_);
      tries = std::min(tries, share * all / static_cast<double>(walks_.size()));
    }
    return tries;
  }

  // As measured so far; before the first, of one evaluation.
  double seconds_per_try() const {
    const std::int64_t tries = context_.evaluations() - begin_evaluations_;
    if (tries < kEnoughToMeasure) return seconds_per_try_;
    return (budget_.elapsed_seconds() - begin_seconds_) * static_cast<double>(walks_.size()) /
           static_cast<double>(tries);
  }

  std::vector<Level> leg_levels(int leg, double share) const {
    std::vector<Level> levels;
    const auto groups = static_cast<double>(graph_.size());
    for (int i = 0; i < levels_per_leg_; ++i) {
      const double x =
          static_cast<double>(leg * levels_per_leg_ + i) / (kLegs * levels_per_leg_ - 1);
      levels.push_back({between(std::min(groups, kFewestClusters), groups, x),
                        between(kHottest, kColdest, x),
                        between(kHottest, kColdest, x + kLevelCooling), kMostTriesPerLevel, share});
    }
    return levels;
  }

  void improve_pool() {
    take_from_outside();
    std::vector<Task> tasks(walks_.size());
    const auto groups = static_cast<double>(graph_.size());
    for (Task& task : tasks) {
      // The better, the likelier.
      const std::size_t a = std::min(rng_.below(pool_.size()), rng_.below(pool_.size()));
      task.solution = pool_[a];
      task.parts = parts_of(pool_[a]);
      if (pool_.size() > 1 && rng_.chance(kCombineShare)) {
        const std::size_t b = (a + 1 + rng_.below(pool_.size() - 1)) % pool_.size();
        const std::vector<std::uint32_t> other = parts_of(pool_[b]);
        for (GroupId group = 0; group < graph_.size(); ++group) {
          task.parts[group] = task.parts[group] * problem_.num_devices() + other[group];
        }
      }
      const double x = rng_.uniform();
      double heat = between(kImproveCoarse, kImproveFine, x) * std::exp(2 * (rng_.uniform() - 0.5));
      if (rng_.chance(kDescentShare)) heat = kDescentTemperature;
      task.levels = {{between(std::min(groups, kFewestToImprove), groups, x), heat,
                      heat / kImproveCooling, kMostTriesPerTask, kTaskShare}};
    }
    run_tasks(tasks);
    for (const Task& task : tasks) add_to_pool(task.solution);
  }

  // What others have handed in meanwhile: whatever the tasks find is in the pool already.
  void take_from_outside() {
    const std::optional<Evaluation> value = context_.incumbent().value();
    const bool improved = value && (!begin_value_ || *value < *begin_value_);
    if (improved && *value < pool_.front().value) add_to_pool(*context_.incumbent().best());
  }

  std::vector<std::uint32_t> parts_of(const Solution& solution) const {
    return devices_of_groups(problem_, solution.placement);
  }

  void run_tasks(std::vector<Task>& tasks) {
    const std::int64_t left =
        budget_.evaluations ? *budget_.evaluations - context_.evaluations() : 0;
    const std::int64_t allowance =
        std::max<std::int64_t>(1, left / static_cast<std::int64_t>(tasks.size()));
    parallel_for(tasks.size(), budget_.threads,
                 [&](std::size_t i) { run_task(tasks[i], *walks_[i], allowance); });
    for (const Task& task : tasks) context_.incumbent().offer(task.solution);
  }

  // `allowance` counts under an evaluation budget only.
  void run_task(Task& task, Walk& walk, std::int64_t allowance) {
    for (const Level& level : task.levels) {
      Budget clock = budget_;
      clock.evaluations.reset();
      if (clock.spent(0) || (budget_.evaluations && allowance <= Walk::kReturn)) return;
      if (level.until_it_fits && task.solution.value.fits()) return;
      Turn turn{
          .evaluations = std::max<std::int64_t>(8, static_cast<std::int64_t>(level.most_tries)),
          .clock = &clock};
      if (budget_.seconds) {
        clock.seconds =
            std::min(*budget_.seconds,
                     budget_.elapsed_seconds() + level.share * (*budget_.seconds - begin_seconds_));
      }
      if (budget_.evaluations) {
        const auto all = static_cast<double>(*budget_.evaluations - begin_evaluations_);
        const double own = level.share * all / static_cast<double>(walks_.size());
        turn.evaluations =
            std::min({turn.evaluations, allowance, static_cast<std::int64_t>(own) + 8});
      }
      const std::int64_t before = walk.spent();
      anneal(walk, task, level, turn);
      allowance -= walk.spent() - before;
      task.solution = walk.best();
      task.parts = parts_of(task.solution);
      // Of equal ones the first is kept, so they must come in order where the answer has to depend
      // on the generator alone.
      if (!budget_.evaluations) context_.incumbent().offer(task.solution);
    }
  }

  void anneal(Walk& walk, const Task& task, const Level& level, const Turn& turn) {
    constexpr int kStepsPerTemperature = 4;
    walk.begin(turn);
    walk.start_over(task.solution);
    walk.cluster(task.parts, static_cast<std::uint32_t>(std::max(1.0, level.clusters)));
    walk.focus();
    walk.soften_memory(!level.until_it_fits && walk.rng().chance(kSoftShare));
    const std::int64_t first = walk.spent();
    const double begin = budget_.elapsed_seconds();
    const auto step = static_cast<double>(task.solution.value.step);
    while (level.until_it_fits && !walk.value().fits() && walk.more_than(Walk::kReturn)) {
      for (int i = 0; i < 3; ++i) walk.step(0);
      walk.step(Neighbourhood::Kind::kMemory, 0);
    }
    int orders_left = level.orders;
    double offered_at = begin;
    while (!level.until_it_fits && walk.more_than(Walk::kReturn)) {
      double progress =
          static_cast<double>(walk.spent() - first) / static_cast<double>(turn.evaluations);
      if (turn.clock->seconds) {
        const double now = budget_.elapsed_seconds();
        progress = std::max(progress, (now - begin) / std::max(1e-9, *turn.clock->seconds - begin));
        // Under an evaluation budget the order of offers must not depend on the clock.
        if (!budget_.evaluations && now - offered_at >= kBetweenOffers) {
          offered_at = now;
          context_.incumbent().offer(walk.best());
        }
      }
      if (orders_left > 0 && progress * (level.orders + 1) > level.orders + 1 - orders_left) {
        --orders_left;
        walk.reorder();
        continue;
      }
      const double temperature =
          step * between(level.start_temperature, level.end_temperature, progress);
      for (int i = 0; i < kStepsPerTemperature && walk.more_than(Walk::kReturn); ++i) {
        walk.step(temperature);
      }
    }
    walk.return_to_best();
  }

  void add_to_pool(const Solution& solution) {
    if (pool_.empty() || solution.value < pool_.front().value) {
      last_improvement_ = context_.evaluations();
    }
    for (const Solution& member : pool_) {
      if (member.value == solution.value) return;
    }
    pool_.push_back(solution);
    std::stable_sort(pool_.begin(), pool_.end(),
                     [](const Solution& a, const Solution& b) { return a.value < b.value; });
    if (pool_.size() > kPoolSize) pool_.pop_back();
  }

  PlaceContext& context_;
  const Problem& problem_;
  const Budget& budget_;
  double share_;
  Rng rng_;
  std::vector<Solution> starts_;  // best first
  CoarseGraph graph_;
  double begin_seconds_;
  std::int64_t begin_evaluations_;
  std::int64_t last_improvement_;  // of the pool's best, in evaluations
  double seconds_per_try_ = 0;
  std::optional<Evaluation> begin_value_;  // the incumbent's
  int levels_per_leg_ = kMostLevelsPerLeg;
  std::vector<std::unique_ptr<Walk>> walks_;  // one for each island
  std::vector<Solution> pool_;                // best first
};

}  // namespace

void search_latency(PlaceContext& context, const Budget& budget, Rng rng,
                    const std::vector<Solution>& starts, double share) {
  LatencySearch(context, budget, rng, starts, share).run();
}

}  // namespace emplace

// Our own: cuts on all levels at once by time, weights whole where that pays, begun from what the
// other methods find, within the devices' memory; the simulator has the last word.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "tensor/budgets.h"
#include "tensor/method.h"
#include "tensor/methods/all.h"
#include "tensor/methods/common/divided_updates.h"
#include "tensor/methods/common/follow_data.h"
#include "tensor/methods/common/joint_search.h"
#include "tensor/movers.h"

namespace emplace {
namespace {

// To begin from, the quickest first, and to compare with at the end.
constexpr const char* kFirst[] = {"tofu", "recursive-by-time", "equal-chop"};
constexpr const char* kLast[] = {"optcnn", "spartan", "all-row"};
// What a joint search takes at least, as far as it is there.
constexpr double kLeastSeconds = 0.5;

struct SearchOptions {
  std::int64_t ways = JointSearchSettings{}.ways;
  std::int64_t rounds = JointSearchSettings{}.rounds;
  std::int64_t computing = 1;
  double start_share = 0.1;
  double main_share = 0.8;
  std::int64_t memory_tries = 4;
  double memory_shrink = 0.85;
};

class SearchRun {
 public:
  SearchRun(PartitionContext& context, const SearchOptions& options, const Budget& budget, Rng rng)
      : context_(context), options_(options), budget_(budget), rng_(rng) {}

  Plan run() {
    const std::optional<Budget> limit =
        context_.limit() ? std::optional(*context_.limit()) : std::nullopt;
    begin();
    search_jointly();
    for (const char* key : kLast) try_method(key);
    hold_weights();
    divide_updates();
    vary();
    context_.set_limit(limit);
    Plan plan = context_.incumbent().best()->plan;
    plan.method = "search";
    plan.added_cost.reset();  // which did not decide
    return plan;
  }

 private:
  bool spent() const { return budget_.spent(context_.evaluations()) || !has_time_to_evaluate(); }
  bool has_time_to_evaluate() const {
    return !budget_.seconds || *seconds_left(budget_) >= context_.evaluation_seconds();
  }
  // Costs that are known later could not be made a plan and evaluated in time.
  void limit_costs() {
    Budget limit = budget_;
    if (limit.seconds) *limit.seconds -= context_.evaluation_seconds();
    context_.set_limit(limit);
  }

  // Nothing where the divided graph would be too large.
  std::optional<Evaluation> try_plan(Plan plan) {
    try {
      return context_.try_plan(std::move(plan));
    } catch (const TooManyPieces&) {
      return std::nullopt;
    }
  }
  bool try_whether_fits(Plan plan) {
    const auto value = try_plan(std::move(plan));
    return value && value->fits();
  }

  // Some plan there must be.
  void begin() {
    for (const PlanSolution& start : context_.starts()) {
      starts_.push_back(start.plan);
      context_.incumbent().offer(start);
    }
    if (!starts_.empty()) limit_costs();
    const bool fits = try_data_parallelism();
    if (!fits) try_method("fsdp");
    for (const char* key : kFirst) try_method(key);
    if (fits) try_method("fsdp");
  }

  // With weights everywhere, and with updates in parts. Returns whether one of them fits.
  bool try_data_parallelism() {
    const bool first = starts_.empty();
    if (!first && spent()) return true;
    const auto known = known_data_parallelism();
    Plan plan = known ? known->plan : found_by("data-parallel");
    bool fits = known   ? known->outcome.value.fits()
                : first ? context_.try_plan(plan).fits()
                        : try_whether_fits(plan);
    starts_.push_back(plan);
    if (first) limit_costs();
    try_repeating();
    if (spent()) return fits;
    plan = with_divided_updates(context_.input(), std::move(plan), GradientStorage::kInParts);
    plan.method = "search";
    fits = try_whether_fits(plan) || fits;
    starts_.push_back(std::move(plan));
    return fits;
  }

  // Whoever asks may have tried it before.
  std::optional<PartitionContext::Tried> known_data_parallelism() const {
    for (PartitionContext::Tried& tried : context_.tried()) {
      if (tried.method == "data-parallel") return std::move(tried);
    }
    return std::nullopt;
  }

  // Where links between machines are slower than those inside: the same on each machine, so that
  // nothing passes between them; so inside, of groups that faster links join. That is quick, and
  // may be many times as fast.
  void try_repeating() {
    Evaluation best = context_.incumbent().best()->value;
    const std::size_t slower = levels_of_slower_links(context_.cluster(), context_.on());
    for (std::size_t levels = 1; levels <= slower; ++levels) {
      if (spent()) return;
      Plan plan = follow_data(context_, "search", WeightStorage::kEverywhere, levels);
      if (!has_time_to_evaluate()) return;
      const auto value = try_plan(plan);
      if (!value || !(*value < best)) return;
      best = *value;
      starts_.push_back(std::move(plan));
    }
  }

  void try_method(const char* key) {
    if (spent()) return;
    try {
      Plan plan = found_by(key);
      if (!has_time_to_evaluate()) return;
      context_.try_plan(plan);
      starts_.push_back(std::move(plan));
    } catch (const OutOfTime&) {
      return;  // what there is must do
    } catch (const Error&) {
      return;  // too many pieces, or no plan for this graph: whoever compares says which
    }
  }

  Plan found_by(const char* key) {
    const double seconds = budget_.seconds.value_or(0) * options_.start_share;
    return all_partition_methods().make({key})->find(context_, budget_part(budget_, seconds), rng_);
  }

  // Without a limit of memory first. The limit is on what lies in memory for long; where the rest
  // does not fit beside it, it is lowered.
  void search_jointly() {
    if (spent()) return;
    const JointSearchSettings settings = joint_settings();
    bool fits = try_joint(settings, std::nullopt, options_.main_share);
    if (options_.computing > 1 && !spent()) {
      JointSearchSettings equal = settings;
      equal.computing = 1;
      fits |= try_joint(equal, std::nullopt, 0.5);
    }
    auto limit = static_cast<double>(smallest_memory());
    for (std::int64_t i = 0; i < options_.memory_tries && !fits && !spent(); ++i) {
      limit_ = limit;
      fits = try_joint(settings, static_cast<Bytes>(limit), 0.5);
      limit *= options_.memory_shrink;
    }
  }

  // What is best by the costs that joint searches go by need not be best when it is simulated: so
  // what is left of the budget is for what they find with another limit of memory, and when a
  // weight lies as its gradient and state do until its update is divided.
  void vary() {
    constexpr double kLessMemory = 0.7;
    const JointSearchSettings apart = joint_settings();
    JointSearchSettings tied = apart;
    tied.storage_apart = false;
    // From another method's plan, which they did not begin from, or leave too far behind.
    const bool beaten = context_.incumbent().best()->plan.method != "search";
    if (beaten && !limit_ && !spent()) try_joint(apart, std::nullopt, 0.5);
    if (!limit_) {
      const auto memory = kLessMemory * static_cast<double>(peak_of_best());
      if (!spent()) try_joint(apart, static_cast<Bytes>(memory), 0.5);
    }
    if (!spent()) try_joint(tied, std::nullopt, 0.5, /*divide_updates=*/true);
    if (!limit_) return;
    const auto least = static_cast<Bytes>(*limit_);
    const auto more = static_cast<Bytes>(*limit_ * (1 + 1 / options_.memory_shrink) / 2);
    if (!spent()) try_joint(tied, least, 0.5, /*divide_updates=*/true);
    if (!spent()) try_joint(apart, more, 0.5);
    if (!spent()) try_joint(tied, more, 1, /*divide_updates=*/true);
  }

  JointSearchSettings joint_settings() const {
    return {.ways = options_.ways,
            .rounds = options_.rounds,
            .computing = options_.computing,
            .storage_apart = true};
  }

  Bytes peak_of_best() const {
    const Evaluation best = context_.incumbent().best()->value;
    for (const PartitionContext::Tried& tried : context_.tried()) {
      if (!(tried.outcome.value == best)) continue;
      return *std::max_element(tried.outcome.peaks.begin(), tried.outcome.peaks.end());
    }
    return smallest_memory();  // it was given
  }

  double shortest_round() const {
    double shortest = 0;
    for (const auto& [settings, joint] : joint_) {
      const double seconds = joint != nullptr ? joint->round_seconds() : 0;
      if (seconds > 0 && (shortest == 0 || seconds < shortest)) shortest = seconds;
    }
    return shortest;
  }

  // With this share of what is left of the time; returns whether the plan fits.
  bool try_joint(const JointSearchSettings& settings, std::optional<Bytes> memory_limit,
                 double share, bool divide_updates = false) {
    std::optional<double> seconds = seconds_left(budget_);
    if (seconds) {
      const double most = std::max(0.0, *seconds - context_.evaluation_seconds());
      if (most < shortest_round()) return false;
      seconds = std::min(most, std::max(kLeastSeconds, *seconds * share));
    }
    try {
      std::unique_ptr<JointSearch>& joint = joint_[{settings.computing, settings.storage_apart}];
      if (joint == nullptr) joint = std::make_unique<JointSearch>(context_, settings);
      std::optional<Plan> plan =
          joint->find("search", starts_, memory_limit, budget_part(budget_, seconds), rng_);
      if (!plan || !has_time_to_evaluate()) return false;
      if (divide_updates) {
        plan = with_divided_updates(context_.input(), std::move(*plan), GradientStorage::kInParts);
      }
      return try_whether_fits(std::move(*plan));
    } catch (const OutOfTime&) {
      return false;
    }
  }

  // Weights of the best plan that are fetched, once a step: all of them, or fewer if these do not
  // fit, the last first, which lie there the shortest until the backward pass needs them again.
  void hold_weights() {
    const Plan best = context_.incumbent().best()->plan;
    const Graph& graph = context_.input().graph;
    std::vector<TensorId> fetched;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.role(op) != OpRole::kParameter) continue;
      for (const TensorId tensor : graph.outputs(op)) {
        const Cuts& cuts = best.tensors[tensor];
        const bool cut = std::any_of(cuts.begin(), cuts.end(), [](auto c) { return c != kUncut; });
        if (cut && graph.consumers(tensor).size() > 2) fetched.push_back(tensor);  // and an update
      }
    }
    std::stable_sort(fetched.begin(), fetched.end(), [&](TensorId a, TensorId b) {
      return graph.consumers(a)[0] > graph.consumers(b)[0];
    });
    for (const std::size_t parts : {1, 2, 4}) {
      if (fetched.empty() || spent()) return;
      Plan plan = best;
      plan.held.assign(graph.num_tensors(), 0);
      for (std::size_t i = 0; i < fetched.size() / parts; ++i) plan.held[fetched[i]] = 1;
      if (try_whether_fits(std::move(plan))) return;
    }
  }

  // Updates of what several workers keep, each a part, if that is more than a little.
  void divide_updates() {
    constexpr double kLittle = 0.1;
    Plan best = context_.incumbent().best()->plan;
    best.method = "search";
    const Graph& graph = context_.input().graph;
    double all = 0;
    double repeated = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.role(op) != OpRole::kParameter) continue;
      for (const TensorId tensor : graph.outputs(op)) {
        const Cuts& cuts = best.tensors[tensor];
        const auto bytes = static_cast<double>(graph.bytes(tensor));
        all += bytes;
        if (std::find(cuts.begin(), cuts.end(), kUncut) != cuts.end()) repeated += bytes;
      }
    }
    if (repeated <= kLittle * all || spent()) return;
    try_plan(with_divided_updates(context_.input(), best, GradientStorage::kInParts));
  }

  Bytes smallest_memory() const {
    Bytes least = context_.cluster().device(context_.devices()[0]).memory;
    for (const DeviceId device : context_.devices()) {
      least = std::min(least, context_.cluster().device(device).memory);
    }
    return least;
  }

  PartitionContext& context_;
  const SearchOptions& options_;
  const Budget& budget_;
  Rng rng_;
  std::vector<Plan> starts_;
  std::optional<double> limit_;  // of memory, of the last joint search that had one
  // By the weight of computing, and whether storage is apart.
  std::map<std::pair<std::int64_t, bool>, std::unique_ptr<JointSearch>> joint_;
};

class Search final : public PartitionMethod {
 public:
  using Options = SearchOptions;
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("ways", &Options::ways, 1, 1'000'000,
                 "Ways to cut a tensor or an op that are all weighed; of more, those near the best "
                 "known.")
        .integer("rounds", &Options::rounds, 1, 1000, "Times to look around the best known.")
        .integer("computing", &Options::computing, 1, 100,
                 "How many times computing counts as much as moving, which it partly hides; where "
                 "that is more than once, a search with equal weights follows.")
        .real("start_share", &Options::start_share, 0, 1,
              "Of the time, for each of the methods to begin from.")
        .real("main_share", &Options::main_share, 0, 1,
              "Of the time that is left then, for the search on all levels at once.")
        .integer("memory_tries", &Options::memory_tries, 0, 100,
                 "Searches under a limit of memory, where the best plan does not fit.")
        .real("memory_shrink", &Options::memory_shrink, 0.1, 1,
              "What the limit is multiplied with after each of them that does not fit.");
  }
  explicit Search(const Options& options) : options_(options) {}

  Plan find(PartitionContext& context, const Budget& given, Rng rng) override {
    const Budget budget = given.or_default(kPartitionSeconds);
    return SearchRun(context, options_, budget, rng).run();
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PARTITION_METHOD(
    search, Search, .family = "joint",
    .summary = "Cuts on all levels at once, by time, within the memory; the simulator decides.",
    .reference = "emplace", .randomized = true)
}  // namespace emplace

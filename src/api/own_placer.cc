#include "api/own_placer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

#include "placer/memory.h"

#include "placers/all.h"

#include "api/group_evaluator.h"
#include "run/portfolio.h"

namespace emplace {
namespace {

class OwnSession final : public PlacerSession {
 public:
  OwnSession(PlaceContext& context, const Budget& budget, std::uint64_t seed)
      : context_(context),
        budget_(budget),
        seed_(seed),
        problem_(context.evaluator().simulator(), &context.problem()),
        groups_(context.evaluator()) {
    for (const Solution& start : context.starts()) {
      std::vector<std::int32_t> devices;
      for (GroupId group = 0; group < problem_->num_groups(); ++group) {
        devices.push_back(start.placement[problem_->group_ops(group)[0]]);
      }
      starts_.push_back(std::move(devices));
    }
  }

  const std::shared_ptr<const Problem>& problem() const override { return problem_; }
  const Objective& objective() const override { return context_.objective(); }
  std::uint64_t seed() const override { return seed_; }
  const Budget& budget() const override { return budget_; }
  bool spent() const override { return budget_.spent(context_.evaluations()); }
  const std::vector<std::vector<std::int32_t>>& starts() const override { return starts_; }

  std::size_t evaluate(std::span<const std::int32_t> devices,
                       std::span<StepValue> values) override {
    if (devices.size() != values.size() * groups_.num_groups()) {
      fail_input("expected {} devices, one for each group in {} placements, instead of {}",
                 values.size() * groups_.num_groups(), values.size(), devices.size());
    }
    std::size_t done = 0;
    // In parts, so that the clock is looked at between them.
    while (done < values.size() && !spent()) {
      std::size_t count = std::min<std::size_t>(values.size() - done, 256);
      if (budget_.evaluations) {
        const std::int64_t left = *budget_.evaluations - context_.evaluations();
        count = std::min(count, static_cast<std::size_t>(left));
      }
      const std::size_t width = groups_.num_groups();
      const auto part = devices.subspan(done * width, count * width);
      groups_.evaluate(part, values.subspan(done, count), budget_.threads);
      keep_best(part, values.subspan(done, count));
      done += count;
    }
    return done;
  }

  // Where the function has an answer of its own, that is valued too, whatever the budget.
  PlaceResult finish(const std::vector<std::int32_t>& answer) {
    if (!answer.empty()) {
      StepValue value;
      groups_.evaluate(answer, {&value, 1}, 1);
      keep_best(answer, {&value, 1});
    }
    const std::optional<Solution> best = context_.incumbent().best();
    if (!best) fail_input("gave no placement, and evaluated none");
    PlaceResult result{.placement = best->placement};
    note_shortage(*problem_, context_.evaluator(), result);
    return result;
  }

 private:
  void keep_best(std::span<const std::int32_t> devices, std::span<const StepValue> values) {
    const auto better = [](const StepValue& a, const StepValue& b) {
      return Evaluation{a.step, a.overflow} < Evaluation{b.step, b.overflow};
    };
    const auto best = std::min_element(values.begin(), values.end(), better);
    const Evaluation value{best->step, best->overflow};
    const std::optional<Evaluation> known = context_.incumbent().value();
    if (known && !(value < *known)) return;
    const auto row = static_cast<std::size_t>(best - values.begin());
    Solution solution{.placement = {}, .value = value, .origin = "own"};
    groups_.expand(devices.subspan(row * groups_.num_groups(), groups_.num_groups()),
                   solution.placement);
    context_.incumbent().offer(std::move(solution));
  }

  PlaceContext& context_;
  Budget budget_;
  std::uint64_t seed_;
  std::shared_ptr<const Problem> problem_;
  GroupEvaluator groups_;
  std::vector<std::vector<std::int32_t>> starts_;
};

class OwnPlacer final : public Placer {
 public:
  explicit OwnPlacer(PlacerFunction function) : function_(std::move(function)) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    // A number that every language can hold.
    OwnSession session(context, budget.or_default(), rng.next() >> 32);
    const std::vector<std::int32_t> answer = function_.place(session);
    return session.finish(answer);
  }

 private:
  PlacerFunction function_;
};

void check_name(const std::string& name) {
  if (name.empty() || name.find_first_of(",()") != std::string::npos) {
    fail_option("placer '{}': expected a name without commas and parentheses", name);
  }
  for (const MethodInfo* info : all_placers().list()) {
    if (info->key == name) fail_option("placer '{}': there is one of that name already", name);
  }
}

}  // namespace

std::vector<PlacerRun> own_runs(const PlaceOptions& options, int seeds) {
  std::vector<PlacerRun> runs;
  for (const PlacerFunction& function : options.functions) {
    check_name(function.name);
    // Its orders of ops are those that any placer's placement can have.
    for (PlacerRun run :
         make_runs("random", options.scheduler, options.seed, function.randomized ? seeds : 1)) {
      run.placer = {function.name, {}};
      run.make = [function] { return std::make_unique<OwnPlacer>(function); };
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace emplace

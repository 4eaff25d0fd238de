#include "run/measured_choice.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "sim/simulator.h"

#include "run/contention.h"

namespace emplace {
namespace {

// Less than this share of the time elsewhere is the same answer.
constexpr double kSame = 0.005;

// Where none was given: much more than a step takes, however far its prediction is off.
Nanoseconds deadline_of(const MeasureSettings& settings, Nanoseconds predicted) {
  constexpr Nanoseconds kLeast = 30'000'000'000;
  constexpr Nanoseconds kTimes = 50;
  return settings.deadline > 0 ? settings.deadline : std::max(kLeast, kTimes * predicted);
}

double moved_share(const Problem& problem, const Placement& a, const Placement& b) {
  double moved = 0;
  double all = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const auto time = static_cast<double>(problem.mean_duration(op));
    all += time;
    if (a[op] != b[op]) moved += time;
  }
  return all == 0 ? 0 : moved / all;
}

bool uses_at_most(const Placement& placement, int devices) {
  const std::set<DeviceId> used(placement.begin(), placement.end());
  return devices == 0 || used.size() <= static_cast<std::size_t>(devices);
}

void add_single_devices(const Problem& problem, std::vector<Solution>& answers) {
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const auto allowed = [&](GroupId group) { return problem.allowed(group, device); };
    bool all = true;
    for (GroupId group = 0; group < problem.num_groups() && all; ++group) all = allowed(group);
    if (!all) continue;
    answers.push_back({.placement = Placement(problem.num_ops(), device),
                       .origin = fmt::format("all on {}", problem.cluster().device(device).name)});
  }
}

}  // namespace

std::vector<Solution> promising_answers(const std::shared_ptr<const Simulator>& simulator,
                                        const PortfolioResult& found, int count, int most_devices,
                                        const std::string& scheduler) {
  const Problem& problem = simulator->problem();
  std::vector<Solution> answers;
  for (const RunResult& run : found.results) {
    answers.push_back({.placement = run.result.placement,
                       .schedule = run.result.schedule,
                       .origin = run.run.placer.to_string()});
  }
  answers.insert(answers.end(), found.runners_up.begin(), found.runners_up.end());
  add_single_devices(problem, answers);
  for (const RunResult& run : quick_splits(simulator, {}, scheduler)) {
    answers.push_back({.placement = run.result.placement,
                       .schedule = run.result.schedule,
                       .origin = run.run.placer.to_string()});
  }
  std::erase_if(answers, [&](const Solution& answer) {
    return !uses_at_most(answer.placement, most_devices);
  });
  Evaluator evaluator(simulator);
  evaluator.order_by(scheduler);
  for (Solution& answer : answers) {
    answer.schedule = evaluator.schedule_of(answer.placement, std::move(answer.schedule));
    answer.value = evaluator.evaluate(answer.placement, answer.schedule);
  }
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Solution& a, const Solution& b) { return a.value < b.value; });
  std::vector<Solution> chosen;
  // The last place is the best single device's, where one has room for all.
  const auto is_single = [](const Solution& answer) {
    return answer.value.fits() && uses_at_most(answer.placement, 1);
  };
  bool single = count == 1 || std::none_of(answers.begin(), answers.end(), is_single);
  for (Solution& answer : answers) {
    const int left = count - static_cast<int>(chosen.size());
    if (left == 0 || !answer.value.fits()) break;
    const bool alone = uses_at_most(answer.placement, 1);
    if (left == 1 && !single && !alone) continue;
    const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Solution& other) {
      return moved_share(problem, answer.placement, other.placement) < kSame;
    });
    single = single || alone;
    if (!known) chosen.push_back(std::move(answer));
  }
  return chosen;
}

std::vector<MeasuredCandidate> measure_answers(Laboratory& laboratory,
                                               const std::shared_ptr<const Problem>& problem,
                                               std::vector<Solution> answers,
                                               MeasureSettings settings) {
  constexpr int kRounds = 2;
  settings.in_place = problem->compile_options().in_place;
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  std::vector<MeasuredCandidate> candidates;
  for (Solution& answer : answers) candidates.push_back({.solution = std::move(answer)});
  std::vector<std::vector<Nanoseconds>> steps(candidates.size());
  bool interrupted = false;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < candidates.size() && !interrupted; ++i) {
      MeasuredCandidate& candidate = candidates[i];
      if (candidate.failed()) continue;
      const Solution& answer = candidate.solution;
      MeasureSettings own = settings;
      own.deadline = deadline_of(settings, answer.value.step);
      const Measurement measured = laboratory.measure(
          graph, answer.placement,
          order_of(*problem, answer.placement, answer.schedule, settings.fixed_order), own);
      interrupted = measured.interrupted;
      if (measured.failure && !interrupted) candidate.failure = measured.failure->text;
      steps[i].insert(steps[i].end(), measured.steps.begin(), measured.steps.end());
    }
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Solution& answer = candidates[i].solution;
    candidates[i].predicted = predict(problem, answer.placement, answer.schedule).step;
    if (!candidates[i].failed()) candidates[i].measured = spread_of(steps[i]);
  }
  std::erase_if(candidates, [](const MeasuredCandidate& candidate) {
    return !candidate.failed() && candidate.measured.median == 0;
  });
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    if (a.failed() != b.failed()) return b.failed();
    return a.measured.median < b.measured.median;
  });
  return candidates;
}

Evaluator::Measure measured_costs_of(Laboratory& laboratory,
                                     const std::shared_ptr<const Problem>& problem,
                                     MeasureSettings settings) {
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  const auto simulator = std::make_shared<const Simulator>(problem);
  settings.in_place = problem->compile_options().in_place;
  const auto one_at_a_time = std::make_shared<std::mutex>();
  return [&laboratory, problem, graph, simulator, settings, one_at_a_time](
             const Placement& placement, const ReadyOrder& order) {
    Schedule schedule;
    for (const std::uint32_t rank : order.rank_of_op()) {
      schedule.priorities.push_back(-static_cast<std::int64_t>(rank));
    }
    auto workspace = simulator->make_workspace();
    Evaluation value = simulator->evaluate(placement, order, *workspace);
    MeasureSettings own = settings;
    own.deadline = deadline_of(settings, value.step);
    const exec::ProgramOrder steps = order_of(*problem, placement, schedule, settings.fixed_order);
    const std::lock_guard lock(*one_at_a_time);
    const Measurement measured = laboratory.measure(graph, placement, steps, own);
    if (!measured.failure) return Evaluation{.step = measured.step().median, .overflow = 0};
    value.overflow = std::max<Bytes>(value.overflow, 1);
    return value;
  };
}

}  // namespace emplace

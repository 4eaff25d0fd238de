#include "placers/local/orders.h"

#include <algorithm>

#include "placer/scheduler.h"

namespace emplace {

Schedule weighted_ranks(const Problem& problem, const Placement& placement, double transfer_weight,
                        double noise, Rng& rng) {
  const Graph& graph = problem.graph();
  std::vector<double> up(graph.num_ops(), 0);
  Schedule schedule;
  schedule.priorities.resize(graph.num_ops());
  for (OpId op = graph.num_ops(); op-- > 0;) {
    auto duration = static_cast<double>(problem.duration(op, placement[op]));
    if (noise > 0) duration *= 1 + noise * (2 * rng.uniform() - 1);
    up[op] += duration;
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const auto transfer = static_cast<double>(std::max<Nanoseconds>(
          0, problem.transfer_time(tensor, placement[producer], placement[op])));
      up[producer] = std::max(up[producer], transfer_weight * transfer + up[op]);
    }
    for (const OpId before : graph.after(op)) up[before] = std::max(up[before], up[op]);
    schedule.priorities[op] = static_cast<std::int64_t>(up[op]);
  }
  return schedule;
}

bool improve_order(Evaluator& evaluator, const Budget& clock, Solution& solution, int tries,
                   Rng& rng) {
  const Problem& problem = evaluator.problem();
  bool better = false;
  for (int i = 0; i < tries && !clock.spent(0); ++i) {
    Schedule schedule;
    switch (i) {
      case 0:
        schedule = make_schedule(problem, solution.placement, "pct");
        break;
      case 1:
        schedule = weighted_ranks(problem, solution.placement, 2, 0, rng);
        break;
      case 2:
        schedule = make_schedule(problem, solution.placement, "msr");
        break;
      case 3:
        break;  // FIFO
      default:
        schedule = weighted_ranks(problem, solution.placement, 0.5 + 3.5 * rng.uniform(),
                                  rng.chance(0.5) ? 0 : rng.uniform(), rng);
    }
    const Evaluation value = evaluator.evaluate(solution.placement, schedule);
    if (!(value < solution.value)) continue;
    solution.value = value;
    solution.schedule = std::move(schedule);
    better = true;
  }
  return better;
}

}  // namespace emplace

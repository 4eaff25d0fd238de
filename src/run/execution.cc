#include "run/execution.h"

#include <algorithm>
#include <map>

#include "sim/simulator.h"

#include "placer/run.h"

#include "placers/all.h"

#include "run/contention.h"

namespace emplace {
namespace {

double ratio_of(Nanoseconds a, Nanoseconds b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

std::vector<TypeTimes> times_by_type(const Graph& graph, const std::vector<Nanoseconds>& measured,
                                     const Timeline& predicted) {
  std::map<std::string_view, TypeTimes> by_type;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    // What is launched together has no times of its own.
    if (graph.is_source(op) || graph.is_view(op) || measured[op] == 0) continue;
    TypeTimes& times = by_type[graph.type(op)];
    times.type = graph.type(op);
    ++times.ops;
    times.measured += measured[op];
    times.predicted += predicted.ops[op].finish - predicted.ops[op].start;
  }
  std::vector<TypeTimes> types;
  for (auto& [type, times] : by_type) types.push_back(std::move(times));
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.measured > b.measured; });
  return types;
}

}  // namespace

double Execution::predicted_ratio() const {
  return ratio_of(predicted.step, measurement.step().median);
}

double Execution::oracle_ratio() const {
  return ratio_of(oracle, measurement.step().median);
}

Timeline simulate_with_times(const std::shared_ptr<const Problem>& problem,
                             const Placement& placement, const Schedule& schedule,
                             const std::vector<Nanoseconds>& op_times) {
  const Cluster& cluster = problem->cluster();
  CompileOptions options = problem->compile_options();
  options.sources = {costs_from(
      "this run", [&](const Graph&, OpId op, const std::string& name, const std::string&) {
        const double slowdown = cluster.device(*cluster.find_device(name)).slowdown.to_double();
        // What is launched together has no times of its own.
        const Nanoseconds time =
            op_times[op] > 0 ? op_times[op] : problem->duration(op, *cluster.find_device(name));
        return std::optional(static_cast<double>(time) / 1000 / slowdown);
      })};
  const auto timed = compile(std::shared_ptr<const Graph>(problem, &problem->graph()),
                             std::shared_ptr<const Cluster>(problem, &cluster), options);
  return Simulator(timed).run(placement, schedule);
}

Placement on_one_device(const std::shared_ptr<const Problem>& problem) {
  PlaceContext context(problem);
  return run_placer(all_placers(), context, {.placer = MethodSpec::parse("single")}, {})
      .result.placement;
}

Execution execute(Laboratory& laboratory, const std::shared_ptr<const Problem>& problem,
                  const Placement& placement, const Schedule& schedule, MeasureSettings settings) {
  settings.in_place = problem->compile_options().in_place;
  Execution result{.problem = problem,
                   .placement = placement,
                   .settings = settings,
                   .predicted = predict(problem, placement, schedule),
                   .warnings = laboratory.warnings()};
  const auto graph = std::shared_ptr<const Graph>(problem, &problem->graph());
  for (std::string& warning : number_warnings(*graph, settings.numbers)) {
    result.warnings.push_back(std::move(warning));
  }
  const std::optional<Nanoseconds> before = laboratory.reference_step();
  result.measurement = laboratory.measure(
      graph, placement, order_of(*problem, placement, schedule, settings.fixed_order), settings);
  if (result.failed()) return result;
  const std::optional<Nanoseconds> after = laboratory.reference_step();
  if (before && after) result.drift = ratio_of(*after, *before);
  result.measured = measured_timeline(*problem, placement, result.measurement);
  result.oracle =
      simulate_with_times(problem, placement, schedule, result.measurement.op_times).step;
  result.types = times_by_type(*graph, result.measurement.op_times, result.predicted);
  if (!result.measurement.slow_types.empty()) {
    result.warnings.push_back(
        fmt::format("no kernels of their own, so these take longer than they should: {}",
                    fmt::join(result.measurement.slow_types, ", ")));
  }
  return result;
}

}  // namespace emplace

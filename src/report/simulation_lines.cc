#include "report/simulation_lines.h"

#include <fmt/format.h>

#include "base/error.h"

#include "io/file.h"
#include "io/json_quote.h"
#include "run/problem_request.h"

namespace emplace {

SimulationLines::SimulationLines(std::shared_ptr<const Problem> problem, const Objective& objective,
                                 std::string scheduler)
    : evaluator_(std::move(problem), objective), scheduler_(std::move(scheduler)) {}

template <class Read>
std::string SimulationLines::answer_with(std::string_view name, const Read& read) {
  try {
    const PlacementFile file = read();
    std::vector<Bytes> peaks;
    const ReadyOrder order =
        file.schedule.fifo() ? ReadyOrder() : ReadyOrder(evaluator_.problem(), file.schedule);
    const Evaluation value = evaluator_.evaluate(file.placement, order, peaks);
    return fmt::format(
        "{{\"placement\": {}, \"{}\": {}, \"fits\": {}, \"shortfall_bytes\": {}, "
        "\"peak_bytes\": [{}]}}\n",
        name, evaluator_.objective().order_matters() ? "step_ns" : "period_ns", value.step,
        value.fits(), value.overflow, fmt::join(peaks, ", "));
  } catch (const Error& error) {
    failed_ = true;
    return fmt::format("{{\"placement\": {}, \"error\": {}}}\n", name, json_quoted(error.what()));
  }
}

std::string SimulationLines::answer(std::string_view name, const std::string& placement) {
  return answer_with(name,
                     [&] { return parse_placement(placement, evaluator_.problem(), scheduler_); });
}

std::string SimulationLines::answer_file(const std::string& path) {
  return answer_with(json_quoted(path),
                     [&] { return load_placement(path, evaluator_.problem(), scheduler_); });
}

}  // namespace emplace

#include "cli/measuring.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

#include "cluster/own_devices.h"

#include "placers/all.h"

#include "cli/messages.h"
#include "cli/progress.h"

namespace emplace::cli {
namespace {

void require_learned(const std::vector<PlacerRun>& runs) {
  for (const PlacerRun& run : runs) {
    if (all_placers().info(run.placer.key).family == "learned") continue;
    fail_option(
        "--environment measured: {} asks the simulator too often to execute each placement; "
        "expected a placer that learns, or --measure N, which executes what a search finds",
        run.placer.key);
  }
}

}  // namespace

void MeasuringArguments::add_to(Command command) {
  command
      .integer("--measure", measure, 0, 1000,
               "Execute the N most promising placements on this machine; the fastest is the answer")
      .type("N");
  command
      .text("--environment", environment,
            "What learned placers learn from: simulated steps, or steps that are executed and "
            "measured on this machine. Default: simulated")
      .one_of({"simulated", "measured"});
  add_deadline(command, deadline, "50 times the predicted step, and at least 30s");
}

void add_deadline(Command command, std::string& deadline, const std::string& otherwise) {
  command
      .text("--deadline", deadline,
            fmt::format(
                "Give up on a placement whose executed step takes longer than this; an op "
                "that hangs is abandoned. Not on GPUs, or where ranks share a step. Default: {}",
                otherwise))
      .type("DURATION");
}

Nanoseconds deadline_of(const std::string& text) {
  if (text.empty()) return 0;
  const auto seconds = parse_seconds(text);
  if (!seconds || *seconds <= 0) {
    fail_option("--deadline {}: expected a duration such as 30s", text);
  }
  constexpr double kShortest = 1e-9;
  constexpr double kLongest = 1e9;
  return static_cast<Nanoseconds>(std::clamp(*seconds, kShortest, kLongest) * 1e9);
}

void add_numbers(Command command, std::string& numbers) {
  command
      .text("--numbers", numbers,
            "What floating-point numbers are computed in: float32, float64, own (bfloat16 and "
            "float16 where the model has them, as GPUs can), or tf32 (float32, but GPUs may round "
            "factors to 10 bits). Default: float32")
      .one_of([] {
        std::vector<std::string> names;
        for (const auto& [name, meaning] : kNumbers) names.emplace_back(name);
        return names;
      }());
}

Measuring::Measuring(const MeasuringArguments& arguments, const SubsetProblems& problems,
                     const std::vector<PlacerRun>& runs, const Session& session)
    : arguments_(arguments),
      whole_(problems.whole()),
      most_devices_(problems.most_devices()),
      scheduler_(common_scheduler(runs)),
      problem_(whole_, &problems.whole()->problem()) {
  deadline_of(arguments_.deadline);  // before a search begins
  // What a search finds is executed by rank 0 alone.
  const bool executes = arguments_.measure > 0 && session.member == nullptr;
  if (!executes && !arguments_.measures_costs()) return;
  if (!(problems.objective() == Objective(StepTime{}))) {
    fail_option("--objective throughput: streams can only be simulated");
  }
  if (arguments_.measures_costs()) require_learned(runs);
  const int others = arguments_.measures_costs() ? session.ranks_here : 1;
  const OwnDevices own = devices_of_rank(
      std::shared_ptr<const Cluster>(problem_, &problem_->cluster()), session.rank_here, others);
  laboratory_ = std::make_unique<Laboratory>(
      own.cluster,
      exec::RuntimeOptions{
          .cancelled = session.member != nullptr ? &session.member->stopped() : &session.cancelled,
          .limit_memory = arguments_.measures_costs(),
          .neighbours = {own.cores_of_others, others, others > 1 ? session.rank_here : 0}},
      [this] { ++steps_; });
  for (const std::string& warning : own.warnings) warn(warning);
  for (const std::string& warning : laboratory_->warnings()) warn(warning);
}

void Measuring::prepare(PortfolioRequest& request) {
  if (!laboratory_) return;
  request.keep_runners_up = arguments_.measure > 0;
  if (!arguments_.measures_costs()) return;
  request.measure =
      measured_costs_of(*laboratory_, problem_,
                        {.steps = 10, .warm_up = 5, .deadline = deadline_of(arguments_.deadline)});
}

void Measuring::choose(PortfolioResult& found) {
  if (!laboratory_ || arguments_.measure == 0) return;
  std::vector<Solution> answers =
      promising_answers(whole_, found, arguments_.measure, most_devices_, scheduler_);
  if (answers.empty()) return;
  const std::size_t count = answers.size();
  const MeasureSettings settings{
      .steps = 10, .warm_up = 5, .deadline = deadline_of(arguments_.deadline)};
  steps_ = 0;
  {
    const Progress progress([&] {
      const std::size_t all =
          2 * count * static_cast<std::size_t>(settings.steps + settings.warm_up);
      return fmt::format("executing {} placements: step {} of {}", count, steps_.load(), all);
    });
    tried_ = measure_answers(*laboratory_, problem_, std::move(answers), settings);
  }
  if (tried_.empty()) return;  // interrupted
  if (tried_.front().failed()) {
    warn(fmt::format("none of the placements could be executed: {}", tried_.front().failure));
    return;
  }
  RunResult chosen = found.best();
  const Solution& best = tried_.front().solution;
  chosen.result.placement = best.placement;
  chosen.result.schedule = best.schedule;
  chosen.result.notes.clear();
  chosen.evaluation = best.value;
  found.results.insert(found.results.begin(), std::move(chosen));
}

std::string Measuring::choice(const RunResult& best) const {
  if (tried_.empty() && arguments_.measures_costs() && best.evaluation.fits()) {
    return fmt::format(", {} measured", format_time(best.evaluation.step));
  }
  if (tried_.empty() || tried_.front().failed()) return "";
  return fmt::format(", of {} executed placements the fastest: {}, {} measured", tried_.size(),
                     tried_.front().solution.origin, format_time(tried_.front().measured.median));
}

}  // namespace emplace::cli

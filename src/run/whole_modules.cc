#include "run/whole_modules.h"

#include <algorithm>

#include "placers/all.h"

namespace emplace {
namespace {

// Most of the budget is for the answer.
constexpr double kShareOfOps = 1.0 / 3;

double above(Nanoseconds time, Nanoseconds least) {
  return static_cast<double>(time) / static_cast<double>(std::max<Nanoseconds>(1, least)) - 1;
}

// The answer, unless a kernel that is fused op by op is divided by it.
std::vector<Solution> starts_of(const Assessment& answer, const Problem& problem) {
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const OpId first = problem.group_ops(problem.group_of(op))[0];
    if (answer.placement[op] != answer.placement[first]) return {};
  }
  return {{answer.placement, answer.schedule, {}, "the answer"}};
}

Evaluation value_of(const Assessment& answer) {
  Evaluation value{answer.time(), 0};
  for (DeviceId device = 0; device < answer.problem().num_devices(); ++device) {
    const Bytes capacity = answer.problem().cluster().device(device).memory;
    value.overflow += std::max<Bytes>(0, answer.used(device) - capacity);
  }
  return value;
}

bool takes_no_time(const MethodSpec& placer) {
  const std::string& family = all_placers().info(placer.key).family;
  return family == "heuristic" || family == "partition";
}

}  // namespace

std::optional<double> WholeModules::cost() const {
  if (!op_by_op || !op_by_op->fits() || !whole.fits()) return std::nullopt;
  return above(whole.step, op_by_op->step);
}

std::optional<double> WholeModules::most() const {
  if (bound.step == 0 || !whole.fits()) return std::nullopt;
  return above(whole.step, bound.step);
}

SharedBudget share_with_ops(const Budget& budget) {
  const Budget all = budget.or_default();
  SharedBudget parts{all, all};
  if (all.seconds) {
    parts.op_by_op.seconds = kShareOfOps * *all.seconds;
    parts.whole.seconds = *all.seconds - *parts.op_by_op.seconds;
  }
  if (all.evaluations) {
    const auto share =
        static_cast<std::int64_t>(kShareOfOps * static_cast<double>(*all.evaluations));
    parts.op_by_op.evaluations = std::max<std::int64_t>(1, share);
    parts.whole.evaluations = std::max<std::int64_t>(1, *all.evaluations - share);
  }
  return parts;
}

OpByOp::OpByOp(const std::shared_ptr<const Problem>& problem, const Assessment& answer,
               const RunResult& found)
    : answer_(answer),
      found_(found),
      problems_(problem, answer.objective, answer.most_devices, starts_of(answer, *problem),
                answer.leaves_cpus_out ? CpuUse::kNever : CpuUse::kAlways) {}

PortfolioRequest OpByOp::request(const Budget& budget) const {
  PortfolioRequest request{.runs = {found_.run}, .budget = budget.restarted()};
  if (!takes_no_time(found_.run.placer)) request.runs.front().placer = {"auto", {}};
  return request;
}

WholeModules OpByOp::compare(Granularity granularity, const PortfolioResult* result) const {
  WholeModules made{.granularity = granularity,
                    .parts = std::int64_t{answer_.problem().num_groups()},
                    .whole = value_of(answer_),
                    .bound = problems_.bound()};
  if (result == nullptr) return made;
  made.op_by_op = result->best().evaluation;
  if (!problems_.starts().empty()) made.op_by_op = std::min(made.whole, *made.op_by_op);
  made.placer = result->best().run.placer.to_string();
  made.seconds = result->best().seconds;
  const LowerBound proven = result->proven_bound();
  if (proven.step > made.bound.step) made.bound = proven;
  return made;
}

}  // namespace emplace

#include "placer/valuers.h"

#include "base/error.h"

namespace emplace {

ValuedSample value_sample(Evaluator& evaluator, const Placement& placement, bool with_starts,
                          bool all_linked) {
  ValuedSample sample;
  if (with_starts) sample.starts.assign(evaluator.problem().num_ops(), 0);
  try {
    if (!all_linked) check_placement(evaluator.problem(), placement);
    sample.value = with_starts ? evaluator.evaluate_uncounted(placement, sample.starts)
                               : evaluator.evaluate_uncounted(placement);
  } catch (const Error&) {
    sample.valid = false;
  }
  return sample;
}

void check_measured(const Evaluation& value) {
  if (value.fits() && value.step <= 0) {
    fail_input("it has measured a step of {} ns", value.step);
  }
}

}  // namespace emplace

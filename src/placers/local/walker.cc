#include "placers/local/walker.h"

#include "placers/local/latency_walker.h"
#include "placers/local/ordered_walker.h"
#include "placers/local/plain_walker.h"
#include "placers/local/stream_walker.h"

namespace emplace {

std::unique_ptr<Walker> Walker::make(Evaluator& evaluator) {
  using Made = std::unique_ptr<Walker>;
  return evaluator.objective().match(
      [&](const StepTime&) -> Made {
        if (evaluator.order_follows_placement()) {
          if (evaluator.measures()) return std::make_unique<PlainWalker>(evaluator);
          return std::make_unique<OrderedWalker>(evaluator);
        }
        return std::make_unique<LatencyWalker>(evaluator);
      },
      [&](const StreamPeriod& stream) -> Made {
        if (stream_is_simulated(evaluator.problem(), stream.overlap)) {
          return std::make_unique<PlainWalker>(evaluator);
        }
        return std::make_unique<StreamWalker>(evaluator, stream);
      });
}

}  // namespace emplace

#include "placers/local/walker.h"

#include "placers/local/latency_walker.h"
#include "placers/local/stream_walker.h"

namespace emplace {

std::unique_ptr<Walker> Walker::make(Evaluator& evaluator) {
  if (evaluator.objective().throughput()) return std::make_unique<StreamWalker>(evaluator);
  return std::make_unique<LatencyWalker>(evaluator);
}

}  // namespace emplace

// What a step gets done, how fast that is, and what it costs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "run/prices.h"

namespace emplace {

// Whatever the devices. 0: not known.
struct StepWork {
  std::int64_t samples = 0;       // in the batch
  std::int64_t tokens = 0;        // in all samples together
  double flops = 0;               // without what is computed a second time to save memory
  DType dtype = DType::kFloat32;  // in which most of them are done
};

// FLOPs and their dtype, which the graph says. What samples are, it does not.
StepWork work_of(const Graph& graph);
// The elements of the integer input that has the model's words (input_ids, tokens, words, source);
// 0 where there is none.
std::int64_t count_tokens(const Graph& graph);

// What a step is worth, and what devices cost.
struct StepTerms {
  StepWork work = {};
  Prices prices = {};
};

struct Rates {
  std::optional<double> samples_per_second;
  std::optional<double> tokens_per_second;
  std::optional<double> flops_per_second;
  // Model FLOPs utilisation: of what the devices could do at most, in the work's dtype.
  std::optional<double> utilisation;
  // In whatever money the prices are.
  std::optional<double> cost_per_hour;
  std::optional<double> cost_per_step;
  std::optional<double> cost_per_million_samples;
  std::optional<double> cost_per_million_tokens;
};

// Of a step every `time` on these devices. Throws an Error where one of them has no price
// and others do.
Rates rates_of(const StepTerms& terms, const Cluster& cluster, const std::vector<DeviceId>& used,
               Nanoseconds time);

}  // namespace emplace

#include "run/rates.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "graph/tensor_type.h"

#include "cost/cost_model.h"

namespace emplace {
namespace {

// What training does a second time is no work of the model's.
bool is_recomputed(const Graph& graph, OpId op) {
  return graph.phase(op) != Phase::kForward &&
         graph.op_name(op).find("/recompute") != std::string_view::npos;
}

bool is_integer(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}

double peak_of(const Cluster& cluster, const std::vector<DeviceId>& devices, DType dtype) {
  double sum = 0;
  for (const DeviceId id : devices) {
    sum += peak_flops(cluster.kind_of(id), dtype, OpClass::kMatMul) /
           cluster.device(id).slowdown.to_double();
  }
  return sum;
}

}  // namespace

StepWork work_of(const Graph& graph) {
  StepWork work;
  std::map<DType, double> by_dtype;
  WorkReader reader(graph);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const auto flops = static_cast<double>(graph.flops(op).value_or(0));
    if (flops <= 0 || is_recomputed(graph, op)) continue;
    work.flops += flops;
    by_dtype[reader.work(op).dtype] += flops;
  }
  double most = 0;
  for (const auto& [dtype, flops] : by_dtype) {
    if (flops <= most) continue;
    most = flops;
    work.dtype = dtype;
  }
  return work;
}

std::int64_t count_tokens(const Graph& graph) {
  constexpr std::array<std::string_view, 5> kWords{"input_ids", "token_ids", "tokens", "words",
                                                   "source"};
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kInput || graph.outputs(op).empty()) continue;
    const TensorId tensor = graph.outputs(op)[0];
    const std::string_view name = graph.op_name(op);
    const std::string_view last = name.substr(name.find_last_of("./") + 1);
    const bool named = std::find(kWords.begin(), kWords.end(), last) != kWords.end();
    if (named && is_integer(graph.dtype(tensor)) && graph.shape(tensor).size() == 2) {
      return count_elements(graph.shape(tensor));
    }
  }
  return 0;
}

Rates rates_of(const StepTerms& terms, const Cluster& cluster, const std::vector<DeviceId>& used,
               Nanoseconds time) {
  Rates rates;
  const double seconds = static_cast<double>(time) / 1e9;
  const auto samples = static_cast<double>(terms.work.samples);
  const auto tokens = static_cast<double>(terms.work.tokens);
  if (seconds > 0) {
    if (samples > 0) rates.samples_per_second = samples / seconds;
    if (tokens > 0) rates.tokens_per_second = tokens / seconds;
    if (terms.work.flops > 0) rates.flops_per_second = terms.work.flops / seconds;
    const double peak = peak_of(cluster, used, terms.work.dtype);
    if (rates.flops_per_second && peak > 0) rates.utilisation = *rates.flops_per_second / peak;
  }
  if (terms.prices.empty()) return rates;
  rates.cost_per_hour = terms.prices.per_hour(cluster, used);
  rates.cost_per_step = *rates.cost_per_hour / 3600 * seconds;
  if (samples > 0) rates.cost_per_million_samples = *rates.cost_per_step / samples * 1e6;
  if (tokens > 0) rates.cost_per_million_tokens = *rates.cost_per_step / tokens * 1e6;
  return rates;
}

}  // namespace emplace

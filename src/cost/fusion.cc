#include "cost/fusion.h"

#include <algorithm>
#include <cmath>

#include "graph/elementwise.h"

#include "cost/cost_model.h"

namespace emplace {
namespace {

// The class also has operators that nothing is known of.
bool is_elementwise(std::string_view type, const OpWork& work) {
  return (work.op_class == OpClass::kElementwise || work.op_class == OpClass::kBroadcast) &&
         is_elementwise_operator(type);
}

bool may_share_a_kernel(const Graph& graph, OpId a, OpId b) {
  const auto devices_a = graph.allowed_devices(a);
  const auto devices_b = graph.allowed_devices(b);
  return graph.phase(a) == graph.phase(b) && graph.colocate_id(a) == graph.colocate_id(b) &&
         std::equal(devices_a.begin(), devices_a.end(), devices_b.begin(), devices_b.end());
}

// The one op that reads the op's one output.
std::optional<OpId> only_reader(const Graph& graph, OpId op) {
  if (graph.outputs(op).size() != 1) return std::nullopt;
  const auto readers = graph.consumers(graph.outputs(op)[0]);
  if (readers.size() != 1) return std::nullopt;
  return readers[0];
}

}  // namespace

Fusion::Fusion(const Graph& graph, WorkReader& reader)
    : last_(graph.num_ops()), work_(graph.num_ops()), fused_(graph.num_ops()) {
  std::vector<std::uint8_t> elementwise(graph.num_ops(), 0);
  // What another op waits for must end when it says, not with the kernel of a chain.
  std::vector<std::uint8_t> awaited(graph.num_ops(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const OpId before : graph.after(op)) awaited[before] = 1;
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    last_[op] = op;
    if (graph.is_source(op) || graph.is_view(op)) continue;
    const OpWork work = reader.work(op);
    if (!is_elementwise(graph.type(op), work)) continue;
    elementwise[op] = 1;
    work_[op] = work;
    fused_[op] = work;
  }
  // Readers come later in the order, so that their chains are known.
  for (OpId op = graph.num_ops(); op-- > 0;) {
    if (elementwise[op] == 0 || awaited[op] != 0) continue;
    const auto next = only_reader(graph, op);
    if (!next || elementwise[*next] == 0 || !may_share_a_kernel(graph, op, *next)) continue;
    last_[op] = last_[*next];
    const TensorId between = graph.outputs(op)[0];
    const auto inputs = graph.inputs(*next);
    const auto reads = std::count(inputs.begin(), inputs.end(), between);
    OpWork& chain = fused_[last_[op]];
    chain.flops += work_[op].flops;
    chain.bytes += work_[op].bytes -
                   static_cast<double>(graph.bytes(between)) * static_cast<double>(1 + reads);
    if (work_[op].op_class == OpClass::kBroadcast) chain.op_class = OpClass::kBroadcast;
  }
  // A graph's own counts of bytes may be lower than those of its tensors.
  for (OpWork& work : fused_) work.bytes = std::max(0.0, work.bytes);
}

void Fusion::apply(const DeviceKind& kind, std::span<Nanoseconds> durations) const {
  // Without figures of the device there is no telling what fusion saves beyond a start.
  if (kind.memory_bandwidth <= 0) return;
  // By the last op of a chain: what its other ops would take, and were given.
  std::vector<double> apart(last_.size(), -1);
  std::vector<Nanoseconds> total(last_.size(), 0);
  for (OpId op = 0; op < last_.size(); ++op) {
    if (last_[op] == op) continue;
    apart[last_[op]] = std::max(0.0, apart[last_[op]]) + work_time_us(work_[op], kind);
    total[last_[op]] += durations[op];
    durations[op] = 0;
  }
  for (OpId op = 0; op < last_.size(); ++op) {
    if (apart[op] < 0) continue;
    const double whole = apart[op] + work_time_us(work_[op], kind);
    const double share = whole > 0 ? std::min(1.0, work_time_us(fused_[op], kind) / whole) : 1;
    durations[op] = std::llround(static_cast<double>(total[op] + durations[op]) * share);
  }
}

}  // namespace emplace

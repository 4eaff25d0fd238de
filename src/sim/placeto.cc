#include "sim/placeto.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

#include "graph/copy.h"
#include "graph/graph_builder.h"

namespace emplace {
namespace {

constexpr Nanoseconds kMicrosecond = 1000;

// The times of another problem, whose ops and devices have the same indices.
class TimesOf final : public CostSource {
 public:
  explicit TimesOf(const Problem& problem) {
    const Cluster& cluster = problem.cluster();
    for (DeviceId device = 0; device < problem.num_devices(); ++device) {
      auto& times = times_[cluster.device(device).name];
      for (OpId op = 0; op < problem.num_ops(); ++op) {
        times.push_back(problem.allowed(problem.group_of(op), device) ? problem.duration(op, device)
                                                                      : kUnknown);
      }
    }
  }

  std::string_view name() const override { return "another problem"; }
  std::optional<Decimal> time_us(const Query& query) const override {
    const Nanoseconds time = times_.at(query.device.name)[query.op];
    if (time == kUnknown) return std::nullopt;
    return Decimal{time, -3};
  }

 private:
  static constexpr Nanoseconds kUnknown = -1;
  std::map<std::string, std::vector<Nanoseconds>> times_;  // by device and op
};

// What the op reads: of every op before it the last output that it names. A view keeps the input
// that it shows.
std::vector<TensorId> edges_of(const Graph& graph, OpId op) {
  std::vector<TensorId> reads(graph.inputs(op).begin(), graph.inputs(op).end());
  for (const OpId before : graph.after(op)) {
    if (!graph.outputs(before).empty()) reads.push_back(graph.outputs(before)[0]);
  }
  std::vector<TensorId> kept;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const bool last = std::none_of(
        reads.begin() + static_cast<std::ptrdiff_t>(i) + 1, reads.end(),
        [&](TensorId later) { return graph.producer(later) == graph.producer(reads[i]); });
    if (last || (i == 0 && graph.is_view(op))) kept.push_back(reads[i]);
  }
  return kept;
}

Graph with_single_edges(const Graph& graph) {
  GraphBuilder builder(graph.name(), graph.source());
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    builder.add_tensor(spec_of_tensor(graph, tensor));
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    OpSpec spec = spec_of_op(graph, op);
    spec.inputs = edges_of(graph, op);
    spec.outputs.assign(graph.outputs(op).begin(), graph.outputs(op).end());
    for (const OpId before : graph.after(op)) {
      if (graph.outputs(before).empty()) spec.after.emplace_back(graph.op_name(before));
    }
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

}  // namespace

std::shared_ptr<const Problem> placeto_problem(const Problem& problem) {
  const CompileOptions& given = problem.compile_options();
  if (given.fuse) fail_option("ops are fused; expected a problem that keeps them apart");
  ClusterSpec spec = problem.cluster().spec();
  for (Device& device : spec.devices) device.slowdown = {1, 0};  // the times have it
  return compile(std::make_shared<const Graph>(with_single_edges(problem.graph())),
                 std::make_shared<const Cluster>(std::move(spec)),
                 CompileOptions{.in_place = given.in_place,
                                .rules = given.rules,
                                .sources = {std::make_shared<const TimesOf>(problem)}});
}

Nanoseconds placeto_makespan(const Problem& problem, const Placement& placement,
                             const Timeline& timeline) {
  Nanoseconds last = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const OpSpan& span = timeline.ops[op];
    const bool lasts = span.finish > span.start;
    const Nanoseconds gap = lasts ? problem.cluster().device(placement[op]).gap : 0;
    last = std::max(last, span.finish + gap);
  }
  for (const Transfer& transfer : timeline.transfers) {
    last =
        std::max(last, transfer.finish + problem.cluster().link(transfer.from, transfer.to)->hold);
  }
  return last;
}

std::vector<Bytes> placeto_peaks(const Problem& problem, const Placement& placement,
                                 const Timeline& timeline) {
  const Graph& graph = problem.graph();
  const auto whole = [](Nanoseconds time) { return time - time % kMicrosecond; };
  std::vector<std::tuple<Nanoseconds, bool, DeviceId, Bytes>> events;  // allocations first
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    Bytes bytes = 0;
    Nanoseconds until = timeline.ops[op].start;
    for (const TensorId tensor : graph.outputs(op)) {
      bytes += graph.bytes(tensor);
      for (const OpId reader : graph.consumers(tensor)) {
        const OpSpan& span = timeline.ops[reader];
        until = std::max(until, whole(span.start) + whole(span.finish - span.start) - kMicrosecond);
      }
    }
    if (bytes == 0) continue;
    events.emplace_back(timeline.ops[op].start, false, placement[op], bytes);
    events.emplace_back(until, true, placement[op], -bytes);
  }
  std::sort(events.begin(), events.end());
  std::vector<Bytes> used(problem.num_devices());
  std::vector<Bytes> peaks(problem.num_devices());
  for (const auto& [time, release, device, bytes] : events) {
    used[device] += bytes;
    peaks[device] = std::max(peaks[device], used[device]);
  }
  return peaks;
}

}  // namespace emplace

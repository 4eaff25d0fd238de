#include "run/measurement.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"

#include "cluster/runs_on.h"
#include "graph/graph_builder.h"
#include "graph/precision.h"

#include "sim/simulator.h"

#include "run/kept_steps.h"

namespace emplace {
namespace {

// Products that caches hold and sums that they do not, some milliseconds of each, on every device.
std::shared_ptr<const Graph> reference_graph(DeviceId num_devices) {
  constexpr std::int64_t kSide = 512;
  constexpr std::int64_t kLong = std::int64_t{4} << 20;
  constexpr int kRepeats = 4;
  GraphBuilder builder("reference");
  const auto add = [&](OpSpec spec, const std::vector<std::int64_t>& shape) {
    return builder.add(std::move(spec), {{.shape = shape, .dtype = DType::kFloat32}})[0];
  };
  for (DeviceId device = 0; device < num_devices; ++device) {
    const auto name = [&](const char* what, int i) {
      return fmt::format("{}{}@{}", what, i, device);
    };
    TensorId product = add({.name = name("square", 0), .type = "input"}, {kSide, kSide});
    TensorId sum = add({.name = name("long", 0), .type = "input"}, {kLong});
    const TensorId square = product;
    const TensorId line = sum;
    for (int i = 0; i < kRepeats; ++i) {
      product = add({.name = name("product", i), .type = "MatMul", .inputs = {square, product}},
                    {kSide, kSide});
      sum = add({.name = name("sum", i), .type = "Add", .inputs = {line, sum}}, {kLong});
    }
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

// The ops of each device are together, in the order of devices.
Placement reference_placement(const Graph& graph, DeviceId num_devices) {
  Placement placement(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    placement[op] = static_cast<DeviceId>(op / (graph.num_ops() / num_devices));
  }
  return placement;
}

std::vector<Nanoseconds> medians(const std::vector<exec::StepRecord>& records, std::size_t count,
                                 std::vector<exec::Interval> exec::StepRecord::*times) {
  std::vector<Nanoseconds> result(count);
  std::vector<Nanoseconds> lengths(records.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < records.size(); ++k) lengths[k] = (records[k].*times)[i].length();
    result[i] = spread_of(lengths).median;
  }
  return result;
}

// The first, second or third quartile of sorted times, interpolated between two of them.
Nanoseconds quarter(const std::vector<Nanoseconds>& sorted, std::size_t which) {
  const std::size_t quarters = (sorted.size() - 1) * which;
  const std::size_t below = quarters / 4;
  const auto rest = static_cast<Nanoseconds>(quarters % 4);
  if (rest == 0) return sorted[below];
  return sorted[below] + (sorted[below + 1] - sorted[below]) * rest / 4;
}

// As far as it matters to times and memory.
DType executed_as(DType type, exec::Numbers numbers) {
  const DType real = numbers == exec::Numbers::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  if (is_narrow(type)) return numbers == exec::Numbers::kOwn ? type : real;
  switch (type) {
    case DType::kFloat64:
      return real;
    case DType::kInt4:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kUInt4:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
      return DType::kInt64;
    default:
      return type;
  }
}

}  // namespace

double TimeSpread::relative() const {
  return median == 0 ? 0 : static_cast<double>(high - low) / static_cast<double>(median);
}

TimeSpread spread_of(std::vector<Nanoseconds> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  return {.median = quarter(times, 2), .low = quarter(times, 1), .high = quarter(times, 3)};
}

Laboratory::Laboratory(std::shared_ptr<const Cluster> cluster, const exec::RuntimeOptions& options,
                       std::function<void()> done)
    : cluster_(std::move(cluster)),
      cancelled_(options.cancelled),
      on_ranks_(options.peers != nullptr),
      runtime_(exec::backend("executing a step").start(cluster_, options)),
      done_(std::move(done)) {}

Measurement Laboratory::measure(const std::shared_ptr<const Graph>& graph,
                                const Placement& placement, const exec::ProgramOrder& order,
                                const MeasureSettings& settings) {
  reference_.reset();  // its memory is not the program's
  // Loading takes long, too. Ranks do all together; they are cancelled by a step.
  if (cancelled_ != nullptr && *cancelled_ && !on_ranks_) {
    return {.failure = exec::Failure{exec::Failure::Kind::kCancelled, "cancelled before a step"},
            .interrupted = true};
  }
  const auto program = runtime_->load(graph, placement,
                                      {.order = order,
                                       .seed = settings.seed,
                                       .numbers = settings.numbers,
                                       .gpu_launch = settings.gpu_launch,
                                       .in_place = settings.in_place});
  program->set_deadline(settings.deadline);
  Measurement result{.transfers = program->transfers(), .slow_types = program->slow_types()};
  result.temporary.assign(graph->num_ops(), 0);
  KeptSteps kept;
  for (int i = 0; i < settings.warm_up + settings.steps; ++i) {
    exec::StepRecord record = program->step();
    if (done_) done_();
    result.interrupted = record.failure && record.failure->kind == exec::Failure::Kind::kCancelled;
    if (result.interrupted && !kept.empty()) break;
    if (record.failure) {
      result.failure = record.failure;
      return result;
    }
    if (record.loss) result.losses.push_back(*record.loss);
    if (i < settings.warm_up) continue;
    result.steps.push_back(record.step);
    for (OpId op = 0; op < graph->num_ops(); ++op) {
      result.temporary[op] = std::max(result.temporary[op], record.temporary[op]);
    }
    record.temporary = {};
    kept.add(std::move(record));
  }
  const std::vector<exec::StepRecord>& records = kept.records();
  result.memory = program->memory();
  using Record = exec::StepRecord;
  result.op_times = medians(records, graph->num_ops(), &Record::ops);
  result.transfer_times = medians(records, result.transfers.size(), &Record::transfers);
  const Nanoseconds median = result.step().median;
  const auto off = [&](const Record& record) { return std::abs(record.step - median); };
  result.typical = *std::min_element(records.begin(), records.end(),
                                     [&](const auto& a, const auto& b) { return off(a) < off(b); });
  return result;
}

std::optional<Nanoseconds> Laboratory::reference_step() {
  constexpr int kSteps = 5;
  if (!reference_) {
    const auto graph = reference_graph(cluster_->num_devices());
    reference_ = runtime_->load(graph, reference_placement(*graph, cluster_->num_devices()), {});
    reference_->step();
  }
  std::vector<Nanoseconds> steps;
  for (int i = 0; i < kSteps; ++i) {
    const exec::StepRecord record = reference_->step();
    if (record.failure) {
      reference_.reset();
      return std::nullopt;
    }
    steps.push_back(record.step);
  }
  return spread_of(steps).median;
}

// A program of one op that reads a tensor of the other device.
Nanoseconds Laboratory::send_by_program(DeviceId from, DeviceId to, Bytes bytes) {
  GraphBuilder builder("send");
  TensorSpec spec;
  spec.shape = {std::max<std::int64_t>(1, bytes / 4)};
  spec.dtype = DType::kFloat32;
  const TensorId x = builder.add({.name = "x", .type = "input"}, {spec})[0];
  const TensorId y = builder.add({.name = "y", .type = "Relu", .inputs = {x}}, {spec})[0];
  builder.add({.name = "z", .type = "Relu", .inputs = {y}}, {spec});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  const auto program = runtime_->load(graph, {from, from, to}, {});
  constexpr int kSteps = 5;
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kSteps; ++i) {
    const exec::StepRecord record = program->step();
    if (record.failure) fail(ErrorKind::kSystem, "sending a tensor: {}", record.failure->text);
    if (i > 1) times.push_back(record.transfers[0].length());
  }
  return spread_of(times).median;
}

Nanoseconds Laboratory::send(DeviceId from, DeviceId to, Bytes bytes) {
  const bool gpus = is_gpu(cluster_->device(from)) || is_gpu(cluster_->device(to));
  return gpus || on_ranks_ ? send_by_program(from, to, bytes) : runtime_->send(from, to, bytes);
}

std::optional<exec::Numbers> numbers_named(std::string_view name) {
  for (const auto& [known, numbers] : kNumbers) {
    if (name == known) return numbers;
  }
  return std::nullopt;
}

std::vector<std::string> number_warnings(const Graph& graph, exec::Numbers numbers) {
  constexpr double kFewIntegers = 0.01;
  std::map<DType, double> bytes;
  double all = 0;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    bytes[graph.dtype(tensor)] += static_cast<double>(graph.bytes(tensor));
    all += static_cast<double>(graph.bytes(tensor));
  }
  std::vector<std::string> warnings;
  for (const auto& [type, share] : bytes) {
    const DType executed = executed_as(type, numbers);
    if (executed == type) continue;
    if (executed == DType::kInt64 && share <= kFewIntegers * all) continue;
    warnings.push_back(
        fmt::format("numbers of type {} are executed as {}: times and memory are not theirs",
                    dtype_name(type), dtype_name(executed)));
  }
  return warnings;
}

exec::ProgramOrder order_of(const Problem& problem, const Placement& placement,
                            const Schedule& schedule, bool fixed) {
  exec::ProgramOrder order;
  const ReadyOrder ready(problem, schedule);
  order.rank.assign(ready.rank_of_op().begin(), ready.rank_of_op().end());
  const auto& devices = problem.cluster().spec().devices;
  if (!fixed && std::none_of(devices.begin(), devices.end(), is_gpu)) return order;
  const Simulator simulator(std::shared_ptr<const Problem>(&problem, [](const Problem*) {}));
  const Timeline timeline = simulator.run(placement, schedule);
  order.sequence.resize(problem.num_devices());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (problem.graph().is_source(op) || problem.graph().is_view(op)) continue;
    order.sequence[placement[op]].push_back(op);
  }
  for (auto& ops : order.sequence) {
    std::stable_sort(ops.begin(), ops.end(),
                     [&](OpId a, OpId b) { return timeline.ops[a].start < timeline.ops[b].start; });
  }
  for (const OpSpan& span : timeline.ops) order.starts.push_back(span.start);
  for (const Transfer& transfer : timeline.transfers) {
    order.arrivals[{transfer.tensor, transfer.to}] = transfer.finish;
  }
  return order;
}

Timeline measured_timeline(const Problem& problem, const Placement& placement,
                           const Measurement& measurement) {
  const exec::StepRecord& step = measurement.typical;
  Timeline timeline;
  timeline.step = step.step;
  timeline.devices.resize(problem.num_devices());
  timeline.channels.resize(problem.cluster().num_channels());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    timeline.ops.push_back({step.ops[op].start, step.ops[op].end});
    timeline.devices[placement[op]].busy += step.ops[op].length();
  }
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    timeline.devices[id].peak = measurement.memory[id].peak;
    timeline.devices[id].capacity = problem.cluster().device(id).memory;
  }
  for (std::size_t i = 0; i < measurement.transfers.size(); ++i) {
    const exec::Transfer& sent = measurement.transfers[i];
    const exec::Interval& time = step.transfers[i];
    const ChannelId channel = problem.cluster().link(sent.from, sent.to)->channel;
    const Bytes bytes = problem.graph().bytes(sent.tensor);
    timeline.transfers.push_back({.tensor = sent.tensor,
                                  .from = sent.from,
                                  .to = sent.to,
                                  .channel = channel,
                                  .queued = time.start,
                                  .start = time.start,
                                  .finish = time.end});
    ChannelUse& use = timeline.channels[channel];
    use.busy += time.length();
    use.bytes += bytes;
    ++use.transfers;
    timeline.transfer_bytes += bytes;
  }
  timeline.num_transfers = static_cast<std::int64_t>(timeline.transfers.size());
  return timeline;
}

}  // namespace emplace

#include "support/reference_simulator.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace emplace::reference {
namespace {

__extension__ typedef __int128 Wide;

Wide power_of_ten(int exponent) {
  Wide result = 1;
  for (int i = 0; i < exponent; ++i) result *= 10;
  return result;
}

const Decimal* measured(const Graph& graph, OpId op, const std::string& key) {
  for (const MeasuredTime& time : graph.measured_times(op)) {
    if (graph.strings().get(time.device) == key) return &time.microseconds;
  }
  return nullptr;
}

}  // namespace

TensorId root_of(const Graph& graph, TensorId tensor) {
  while (graph.is_view(graph.producer(tensor))) tensor = graph.inputs(graph.producer(tensor))[0];
  return tensor;
}

namespace {

// Ops that read what lies in the tensor's memory. A view that nobody reads is one of them.
std::set<OpId> readers_of_memory(const Graph& graph, TensorId tensor) {
  std::set<OpId> readers;
  for (const OpId reader : graph.consumers(tensor)) {
    std::set<OpId> through;
    if (graph.is_view(reader) && graph.inputs(reader)[0] == tensor) {
      for (const TensorId seen : graph.outputs(reader))
        through.merge(readers_of_memory(graph, seen));
    }
    if (through.empty()) through.insert(reader);
    readers.merge(through);
  }
  return readers;
}

bool candidate(const Graph& graph, OpId op, InPlace mode) {
  if (mode == InPlace::kNone || graph.role(op) != OpRole::kCompute || graph.is_view(op)) {
    return false;
  }
  static const std::set<std::string_view> kParts{"PartSum", "PartMax", "PartMin", "PartProd"};
  static const std::set<std::string_view> kSums{"Add", "add", "Sum"};
  // Those that random problems have.
  static const std::set<std::string_view> kElementwise{"Add", "add", "Sum", "Relu", "relu_"};
  if (graph.outputs(op).size() != 1) return false;
  if (kParts.contains(graph.type(op))) return true;
  if (mode == InPlace::kAll) return kElementwise.contains(graph.type(op));
  return kSums.contains(graph.type(op)) && graph.phase(op) != Phase::kForward;
}

}  // namespace

bool writes_over(const Graph& graph, OpId op, TensorId tensor, InPlace mode) {
  if (!candidate(graph, op, mode)) return false;
  for (const TensorId input : graph.inputs(op)) {
    const TensorId root = root_of(graph, input);
    const Bytes bytes = graph.memory_bytes(graph.outputs(op)[0]);
    if (graph.role(graph.producer(root)) == OpRole::kCompute &&
        readers_of_memory(graph, root) == std::set<OpId>{op} &&
        graph.memory_bytes(input) == bytes && graph.memory_bytes(root) == bytes) {
      return input == tensor;
    }
  }
  return false;
}

bool whole_step(const Graph& graph, OpId op) {
  return graph.role(op) == OpRole::kParameter || graph.role(op) == OpRole::kBuffer;
}

std::vector<Sending> sendings_of(const Graph& graph, const Cluster& cluster,
                                 const Placement& placement, TensorId tensor) {
  const DeviceId from = placement[graph.producer(tensor)];
  std::set<DeviceId> destinations;
  for (const OpId consumer : graph.consumers(tensor)) {
    if (placement[consumer] != from) destinations.insert(placement[consumer]);
  }
  std::vector<Sending> result;
  std::map<ChannelId, std::size_t> multicast;  // by channel, where in result
  for (const DeviceId to : destinations) {
    const Link& link = *cluster.link(from, to);
    const Nanoseconds length = sending_length(link, graph.bytes(tensor));
    if (link.multicast && multicast.contains(link.channel)) {
      Sending& shared = result[multicast.at(link.channel)];
      shared.to.push_back(to);
      shared.length = std::max(shared.length, length);
      continue;
    }
    if (link.multicast) multicast[link.channel] = result.size();
    Sending sending;
    sending.tensor = tensor;
    sending.from = from;
    sending.to = {to};
    sending.channel = link.channel;
    sending.length = length;
    result.push_back(sending);
  }
  return result;
}

namespace {

class EventLoop {
 public:
  EventLoop(const Graph& graph, const Cluster& cluster, const Placement& placement,
            const Schedule& schedule)
      : graph_(graph), cluster_(cluster), placement_(placement), schedule_(schedule) {
    run_.ops.resize(graph.num_ops());
    missing_tensors_.resize(graph.num_ops());
    missing_ops_.resize(graph.num_ops());
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      missing_tensors_[op].insert(graph.inputs(op).begin(), graph.inputs(op).end());
      missing_ops_[op].insert(graph.after(op).begin(), graph.after(op).end());
    }
  }

  Run run() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.inputs(op).empty() && graph_.after(op).empty()) became_ready(op);
    }
    start_what_is_free();
    while (!agenda_.empty()) {
      now_ = agenda_.begin()->first;
      const std::vector<Event> events = agenda_.begin()->second;
      agenda_.erase(agenda_.begin());
      for (const Event& event : events) {
        if (event.kind == Event::kOpFinishes) op_finished(static_cast<OpId>(event.index));
        if (event.kind == Event::kSendingArrives) arrived(event.index);
      }
      start_what_is_free();
    }
    for (const OpTimes& times : run_.ops) {
      if (times.finish < 0) throw std::logic_error("reference simulator: an op never ran");
      run_.step = std::max(run_.step, times.finish);
    }
    return std::move(run_);
  }

 private:
  struct Event {
    enum Kind { kOpFinishes, kSendingArrives, kSomethingIsFree } kind;
    std::size_t index;
  };

  void became_ready(OpId op) {
    const DeviceId device = placement_[op];
    if (duration(graph_, cluster_, op, device) == 0) {  // rule 2
      run_.ops[op] = {now_, now_};
      op_finished(op);
      return;
    }
    const Wide key = schedule_.fifo() ? Wide{now_} : -Wide{schedule_.priorities[op]};
    ready_[device].insert({key, op});
  }

  void became_ready_if_nothing_is_missing(OpId op) {
    if (missing_tensors_[op].empty() && missing_ops_[op].empty()) became_ready(op);
  }

  void op_finished(OpId op) {
    for (OpId later = op + 1; later < graph_.num_ops(); ++later) {
      if (missing_ops_[later].erase(op) != 0) became_ready_if_nothing_is_missing(later);
    }
    for (const TensorId tensor : graph_.outputs(op)) {
      is_on(tensor, placement_[op]);
      for (const Sending& sending : sendings_of(graph_, cluster_, placement_, tensor))
        queue(sending);
    }
  }

  void is_on(TensorId tensor, DeviceId device) {
    for (const OpId consumer : graph_.consumers(tensor)) {
      if (placement_[consumer] != device) continue;
      missing_tensors_[consumer].erase(tensor);
      became_ready_if_nothing_is_missing(consumer);
    }
  }

  void queue(Sending sending) {
    const std::size_t index = run_.sendings.size();
    sending.queued = now_;
    sending.start = sending.finish = now_;
    run_.sendings.push_back(sending);
    if (sending.length == 0) {
      arrived(index);
    } else if (cluster_.link(sending.from, sending.to.front())->unlimited) {  // rule 5
      run_.sendings[index].finish = now_ + sending.length;
      agenda_[now_ + sending.length].push_back({Event::kSendingArrives, index});
    } else {
      queues_[sending.channel].insert({now_, sending.tensor, sending.to.front(), index});
    }
  }

  void arrived(std::size_t index) {
    const std::vector<DeviceId> destinations = run_.sendings[index].to;
    const TensorId tensor = run_.sendings[index].tensor;
    for (const DeviceId device : destinations) is_on(tensor, device);
  }

  void start_what_is_free() {  // rules 3, 5 and the end of 6
    for (auto& [device, ops] : ready_) {
      if (ops.empty() || device_free_at_[device] > now_) continue;
      const OpId op = ops.begin()->second;
      ops.erase(ops.begin());
      run_.ops[op] = {now_, now_ + duration(graph_, cluster_, op, device)};
      agenda_[run_.ops[op].finish].push_back({Event::kOpFinishes, op});
      device_free_at_[device] = run_.ops[op].finish + cluster_.device(device).gap;
      agenda_[device_free_at_[device]].push_back({Event::kSomethingIsFree, device});
    }
    for (auto& [channel, waiting] : queues_) {
      if (waiting.empty() || channel_free_at_[channel] > now_) continue;
      const std::size_t index = std::get<3>(*waiting.begin());
      waiting.erase(waiting.begin());
      Sending& sending = run_.sendings[index];
      sending.start = now_;
      sending.finish = now_ + sending.length;
      agenda_[sending.finish].push_back({Event::kSendingArrives, index});
      Nanoseconds hold = 0;
      for (const DeviceId to : sending.to) {
        hold = std::max(hold, cluster_.link(sending.from, to)->hold);
      }
      channel_free_at_[channel] = sending.finish + hold;
      agenda_[channel_free_at_[channel]].push_back({Event::kSomethingIsFree, channel});
    }
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const Placement& placement_;
  const Schedule& schedule_;
  Nanoseconds now_ = 0;
  std::map<Nanoseconds, std::vector<Event>> agenda_;
  std::vector<std::set<TensorId>> missing_tensors_;
  std::vector<std::set<OpId>> missing_ops_;
  std::map<DeviceId, std::set<std::pair<Wide, OpId>>> ready_;
  std::map<DeviceId, Nanoseconds> device_free_at_;
  using Waiting = std::tuple<Nanoseconds, TensorId, DeviceId, std::size_t>;
  std::map<ChannelId, std::set<Waiting>> queues_;
  std::map<ChannelId, Nanoseconds> channel_free_at_;
  Run run_;
};

// Memory held from `begin` until just before `end`.
struct Interval {
  Nanoseconds begin;
  Nanoseconds end;
  Bytes bytes;
};

Bytes largest_sum(const std::vector<Interval>& intervals) {
  Bytes largest = 0;
  for (const Interval& at : intervals) {
    Bytes sum = 0;
    for (const Interval& other : intervals) {
      if (other.begin <= at.begin && at.begin < other.end) sum += other.bytes;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

class MemoryOverTime {
 public:
  MemoryOverTime(const Graph& graph, const Placement& placement, const Run& run, InPlace mode)
      : graph_(graph), placement_(placement), run_(run), mode_(mode) {}

  std::vector<Bytes> peaks(DeviceId num_devices) {
    std::vector<Bytes> always(num_devices, 0);
    std::vector<std::vector<Interval>> held(num_devices);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const DeviceId device = placement_[op];
      always[device] += graph_.persistent_bytes(op);
      held[device].push_back({run_.ops[op].start, run_.ops[op].finish, graph_.temp_bytes(op)});
      if (graph_.is_view(op)) continue;
      for (const TensorId tensor : graph_.outputs(op)) {
        if (whole_step(graph_, op)) {
          always[device] += graph_.memory_bytes(tensor);
        } else {
          held[device].push_back(
              {run_.ops[op].start, end_with_views(tensor), graph_.memory_bytes(tensor)});
        }
      }
    }
    for (const Sending& sending : run_.sendings) {
      for (const DeviceId to : sending.to) {
        held[to].push_back(
            {sending.start, last_use(sending.tensor, to), graph_.memory_bytes(sending.tensor)});
      }
    }
    for (DeviceId device = 0; device < num_devices; ++device) {
      always[device] += largest_sum(held[device]);
    }
    return always;
  }

 private:
  // Of the copy that was sent to the device, or where it was made.
  Nanoseconds last_use(TensorId tensor, DeviceId device) const {
    const bool copy = placement_[graph_.producer(tensor)] != device;
    Nanoseconds end = 0;
    for (const OpId consumer : graph_.consumers(tensor)) {
      if (placement_[consumer] != device) continue;
      bool taken = writes_over(graph_, consumer, tensor, mode_);
      for (const TensorId input : graph_.inputs(consumer)) {
        taken = taken || (!copy && root_of(graph_, input) == root_of(graph_, tensor) &&
                          writes_over(graph_, consumer, input, mode_));
      }
      end = std::max(end, taken ? run_.ops[consumer].start : run_.ops[consumer].finish);
    }
    return end;
  }

  // When the tensor itself, leaving aside the views of it, is no longer needed where it was made.
  Nanoseconds own_end(TensorId tensor) const {
    const OpId producer = graph_.producer(tensor);
    Nanoseconds end = std::max(run_.ops[producer].finish, last_use(tensor, placement_[producer]));
    for (const Sending& sending : run_.sendings) {
      if (sending.tensor == tensor) end = std::max(end, sending.finish);
    }
    return end;
  }

  Nanoseconds end_with_views(TensorId tensor) const {
    Nanoseconds end = 0;
    for (TensorId other = 0; other < graph_.num_tensors(); ++other) {
      if (root_of(graph_, other) == tensor) end = std::max(end, own_end(other));
    }
    return end;
  }

  const Graph& graph_;
  const Placement& placement_;
  const Run& run_;
  InPlace mode_;
};

}  // namespace

Nanoseconds duration(const Graph& graph, const Cluster& cluster, OpId op, DeviceId device) {
  if (graph.role(op) != OpRole::kCompute || graph.is_view(op)) return 0;
  const Device& where = cluster.device(device);
  const Decimal* time = measured(graph, op, where.name);
  if (time == nullptr) time = measured(graph, op, where.kind);
  if (time == nullptr) throw std::logic_error("reference simulator: an op has no measured time");
  Wide numerator = Wide{time->mantissa} * where.slowdown.mantissa * 1000;
  Wide denominator = 1;
  const int exponent = time->exponent + where.slowdown.exponent;
  (exponent > 0 ? numerator : denominator) *= power_of_ten(std::abs(exponent));
  return static_cast<Nanoseconds>((2 * numerator + denominator) / (2 * denominator));
}

Nanoseconds sending_length(const Link& link, Bytes bytes) {
  const Wide scaled = Wide{bytes} * 1'000'000'000;
  Wide quotient = scaled / link.bandwidth;
  if (quotient * link.bandwidth < scaled) ++quotient;
  return link.latency + static_cast<Nanoseconds>(quotient);
}

Run simulate(const Graph& graph, const Cluster& cluster, const Placement& placement,
             const Schedule& schedule, InPlace mode) {
  Run run = EventLoop(graph, cluster, placement, schedule).run();
  run.peaks = MemoryOverTime(graph, placement, run, mode).peaks(cluster.num_devices());
  run.device_busy.assign(cluster.num_devices(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    run.device_busy[placement[op]] += run.ops[op].finish - run.ops[op].start;
  }
  run.channels.resize(cluster.num_channels());
  for (const Sending& sending : run.sendings) {
    if (sending.length == 0) continue;
    ChannelTotals& totals = run.channels[sending.channel];
    totals.busy += sending.finish - sending.start;
    totals.bytes += graph.bytes(sending.tensor);
    ++totals.sendings;
  }
  return run;
}

Throughput stream(const Graph& graph, const Cluster& cluster, const Placement& placement) {
  Throughput result;
  result.device_loads.assign(cluster.num_devices(), 0);
  result.channel_loads.assign(cluster.num_channels(), 0);
  result.memory.assign(cluster.num_devices(), 0);
  std::vector<Nanoseconds> communication(cluster.num_devices(), 0);
  std::vector<Bytes> largest_temp(cluster.num_devices(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const DeviceId device = placement[op];
    result.device_loads[device] += duration(graph, cluster, op, device);
    result.memory[device] += graph.persistent_bytes(op);
    largest_temp[device] = std::max(largest_temp[device], graph.temp_bytes(op));
    for (const TensorId tensor : graph.outputs(op)) {
      if (!graph.is_view(op)) result.memory[device] += graph.memory_bytes(tensor);
      Nanoseconds longest = 0;
      for (const Sending& sending : sendings_of(graph, cluster, placement, tensor)) {
        if (!cluster.link(sending.from, sending.to.front())->unlimited) {
          result.channel_loads[sending.channel] += sending.length;
        }
        longest = std::max(longest, sending.length);
        for (const DeviceId to : sending.to) communication[to] += sending.length;
      }
      communication[device] += longest;
    }
  }
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    const bool pays = !cluster.device(device).free_communication;
    result.memory[device] += largest_temp[device];
    result.device_sums.push_back(result.device_loads[device] + (pays ? communication[device] : 0));
    result.period_full = std::max(result.period_full, result.device_loads[device]);
    result.period_none = std::max(result.period_none, result.device_sums[device]);
  }
  for (const Nanoseconds load : result.channel_loads) {
    result.period_full = std::max(result.period_full, load);
  }
  return result;
}

}  // namespace emplace::reference

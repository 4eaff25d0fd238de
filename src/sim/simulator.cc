// Chooses the engine (engine.h) that was compiled for what is needed: with or without special links
// and ops of no length, FIFO or by rank, with or without memory and times. All of them make the
// same events in the same order, which property tests compare with a plain implementation of
// docs/simulator.md. The workspace is as large as the worst placement can need, so that no
// evaluation allocates.
//
// A run takes O(edges + events * busy devices and channels) at worst, usually far less, as what
// runs is a short sorted array; peaks are found from its log of events in one more pass (peaks.h).
// A timeline is read from the same log: the engine notes the number of the event at which something
// began and ended, and events have times.
#include "sim/simulator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/error.h"

#include "sim/engine.h"
#include "sim/hot_spots.h"
#include "sim/peaks.h"
#include "sim/program.h"
#include "sim/workspace.h"

namespace emplace {
namespace {

// Evaluations, after one whose devices may be short of memory, before the next is tried without.
constexpr std::uint32_t kCloseLooks = 64;

// What is wanted of a run.
struct Wanted {
  bool memory = false;
  bool timeline = false;
  bool limited = false;
};

template <bool kSpecial, bool kInstants, Wanted kWanted>
Nanoseconds run_engine(const SimProgram& program, const Placement& placement,
                       const ReadyOrder& order, Simulator::Workspace& workspace,
                       Nanoseconds limit) {
  const auto run = [&](auto fifo) {
    constexpr EngineMode kMode{.special = kSpecial,
                               .instants = kInstants,
                               .fifo = decltype(fifo)::value,
                               .memory = kWanted.memory,
                               .timeline = kWanted.timeline,
                               .limited = kWanted.limited};
    return Engine<kMode>(program, workspace, order).run(placement, limit);
  };
  return order.fifo() ? run(std::true_type{}) : run(std::false_type{});
}

// The fastest that knows all that occurs in the program.
template <Wanted kWanted>
Nanoseconds run_fastest(const SimProgram& program, const Placement& placement,
                        const ReadyOrder& order, Simulator::Workspace& workspace,
                        Nanoseconds limit = 0) {
  if (program.special) {
    return run_engine<true, true, kWanted>(program, placement, order, workspace, limit);
  }
  if (program.instants) {
    return run_engine<false, true, kWanted>(program, placement, order, workspace, limit);
  }
  return run_engine<false, false, kWanted>(program, placement, order, workspace, limit);
}

// Ops by descending priority, then by index: a radix sort, eight bits at a time. Searches under pct
// and msr make an order for every placement; std::sort took 45 % of their time.
std::vector<OpId> by_priority(const std::vector<std::int64_t>& priorities) {
  constexpr int kBits = 8;
  struct Entry {
    std::uint64_t below;  // the highest priority
    OpId op;
  };
  const auto [lowest, highest] = std::minmax_element(priorities.begin(), priorities.end());
  const auto below_highest = [top = static_cast<std::uint64_t>(*highest)](std::int64_t priority) {
    return top - static_cast<std::uint64_t>(priority);
  };
  std::vector<Entry> entries;
  entries.reserve(priorities.size());
  for (OpId op = 0; op < priorities.size(); ++op) {
    entries.push_back({below_highest(priorities[op]), op});
  }
  std::vector<Entry> sorted(entries.size());
  const auto bits = static_cast<int>(std::bit_width(below_highest(*lowest)));
  for (int shift = 0; shift < bits; shift += kBits) {
    const auto digit = [&](const Entry& entry) {
      return (entry.below >> shift) & ((std::uint64_t{1} << kBits) - 1);
    };
    std::array<std::uint32_t, (1 << kBits) + 1> begin{};
    for (const Entry& entry : entries) ++begin[digit(entry) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const Entry& entry : entries) sorted[begin[digit(entry)]++] = entry;
    entries.swap(sorted);
  }
  std::vector<OpId> ops;
  ops.reserve(entries.size());
  for (const Entry& entry : entries) ops.push_back(entry.op);
  return ops;
}

// Turns what the engine left in the workspace into spans and transfers.
class TimelineReader {
 public:
  TimelineReader(const Problem& problem, const SimProgram& program, const Placement& placement,
                 const Simulator::Workspace& workspace)
      : graph_(problem.graph()),
        problem_(problem),
        p_(program),
        placement_(placement),
        w_(workspace) {}

  Timeline read(Nanoseconds step) {
    timeline_.step = step;
    timeline_.devices.resize(p_.num_devices);
    timeline_.channels.resize(p_.num_channels);
    read_ops();
    for (std::uint32_t made = 0; made < w_.num_transfers; ++made) {
      if (!w_.multicasts[made].carried) read_transfer(made);
    }
    for (std::uint32_t device = 0; device < p_.num_devices; ++device) {
      timeline_.devices[device].peak = w_.peaks[device];
      timeline_.devices[device].capacity = p_.capacities[device];
    }
    return std::move(timeline_);
  }

 private:
  void read_ops() {
    timeline_.ops.resize(graph_.num_ops());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const std::uint32_t node = p_.node_of_op[op];
      OpSpan& span = timeline_.ops[op];
      span.finish = w_.event_time[w_.memory[node].finish_event];
      span.start = w_.start_of(p_, op);
      timeline_.devices[placement_[op]].busy += problem_.duration(op, placement_[op]);
    }
  }

  void read_transfer(std::uint32_t made) {
    const auto& leader = w_.transfers[made];
    const TensorId tensor = p_.tensor_id[leader.tensor];
    // A transfer that takes no time uses no channel.
    const bool instant = leader.length == 0;
    const ChannelId channel =
        instant ? kNoChannel : p_.pairs[leader.from * p_.num_devices + leader.to].channel;
    Transfer transfer{tensor,
                      leader.from,
                      leader.to,
                      channel,
                      w_.event_time[w_.memory[p_.node_of_op[graph_.producer(tensor)]].finish_event],
                      w_.event_time[leader.start_event],
                      w_.event_time[leader.end_event],
                      false};
    timeline_.transfers.push_back(transfer);
    transfer.shared = true;
    for (std::uint32_t also = w_.multicasts[made].also; also != SimProgram::kNone;
         also = w_.multicasts[also].also) {
      transfer.to = w_.transfers[also].to;
      timeline_.transfers.push_back(transfer);
    }
    timeline_.num_transfers += 1;
    timeline_.transfer_bytes += graph_.bytes(tensor);
    if (instant) return;
    timeline_.channels[channel].busy += leader.length;
    timeline_.channels[channel].bytes += graph_.bytes(tensor);
    timeline_.channels[channel].transfers += 1;
  }

  const Graph& graph_;
  const Problem& problem_;
  const SimProgram& p_;
  const Placement& placement_;
  const Simulator::Workspace& w_;
  Timeline timeline_;
};

}  // namespace

ReadyOrder::ReadyOrder(const Problem& problem, const Schedule& schedule) {
  if (schedule.fifo()) return;
  EMPLACE_CHECK(schedule.priorities.size() == problem.num_ops());
  const Nodes& nodes = problem.nodes();
  const std::vector<OpId> ops = by_priority(schedule.priorities);
  rank_of_op_.resize(ops.size());
  rank_of_node_.resize(nodes.size());
  node_of_rank_.reserve(nodes.size());
  for (std::uint32_t rank = 0; rank < ops.size(); ++rank) {
    const OpId op = ops[rank];
    rank_of_op_[op] = rank;
    const std::uint32_t node = nodes.of_op[op];
    if (nodes.op[node] != op) continue;
    rank_of_node_[node] = static_cast<std::uint32_t>(node_of_rank_.size());
    node_of_rank_.push_back(node);
  }
}

Simulator::Workspace::Workspace(const SimProgram& p)
    : words(p.num_nodes()),
      memory(p.num_nodes()),
      devices(p.num_devices),
      channels(p.num_channels),
      passing(p.num_channels),
      idle_since(p.num_devices),
      work(kWorkSums * static_cast<std::size_t>(p.num_devices)),
      earliest_end(p.num_devices),
      queue(p.num_nodes()),
      waiting(p.num_devices, p.num_nodes()),
      running(2 * static_cast<std::size_t>(p.num_slots()) + 64),
      transfer_to(p.num_devices),
      multicast_on(p.num_channels),
      next_edge(p.edge_target.size()),
      event_instant_of_device(p.num_devices),
      last_use(p.root_bytes.size()),
      used(p.num_devices),
      peaks(p.num_devices) {
  // The most that any placement can need: every edge of a tensor to another device.
  std::size_t most_transfers = 0;
  if (p.num_devices > 1) {
    for (std::uint32_t edge = 0, run = 0; edge < p.edge_target.size(); ++edge) {
      ++run;
      if ((p.edge_target[edge] & SimProgram::kLastEdge) == 0) continue;
      most_transfers += std::min(run, p.num_devices - 1);
      run = 0;
    }
  }
  const std::size_t most_events = p.num_devices + 2 * p.num_nodes() + 2 * most_transfers;
  transfers.resize(most_transfers);
  events.resize(most_events);
  startable.resize(p.num_slots());
  instant.resize(p.num_nodes());
  multicasts.resize(most_transfers);
}

void Simulator::Workspace::note_times(const SimProgram& p) {
  if (!event_time.empty()) return;
  event_time.resize(events.size());
  start_event.resize(p.num_nodes());
  ran_before.resize(p.num_nodes());
  first_transfer.resize(p.num_graph_tensors);
}

// A folded view starts and finishes when the op that it is folded into finishes.
Nanoseconds Simulator::Workspace::start_of(const SimProgram& p, OpId op) const {
  const std::uint32_t node = p.node_of_op[op];
  return event_time[p.op_of_node[node] == op ? start_event[node] : memory[node].finish_event];
}

void Simulator::WorkspaceDeleter::operator()(Workspace* workspace) const {
  delete workspace;
}

Simulator::Simulator(std::shared_ptr<const Problem> problem)
    : problem_(std::move(problem)), program_(std::make_unique<const SimProgram>(*problem_)) {}

Simulator::~Simulator() = default;

Simulator::WorkspacePtr Simulator::make_workspace() const {
  return WorkspacePtr(new Workspace(*program_));
}

Bytes Simulator::find_overflow(const Placement& placement, Workspace& workspace) const {
  find_peaks(*program_, placement, workspace, program_->special || program_->instants);
  Bytes overflow = 0;
  for (std::uint32_t device = 0; device < program_->num_devices; ++device) {
    overflow += std::max<Bytes>(0, workspace.peaks[device] - program_->capacities[device]);
  }
  return overflow;
}

Evaluation Simulator::evaluate(const Placement& placement, const ReadyOrder& order,
                               Workspace& workspace, std::span<Bytes> peaks) const {
  // Where memory is plentiful, which is mostly so for all placements or for none, the engine notes
  // no events: a third less time.
  if (peaks.empty() && workspace.close_looks == 0) {
    const Nanoseconds step = step_time(placement, order, workspace);
    if (fits_without_release(*program_, placement, workspace)) return {step, 0};
    workspace.close_looks = kCloseLooks;
  } else if (peaks.empty()) {
    --workspace.close_looks;
  }
  Evaluation result;
  result.step = run_fastest<Wanted{.memory = true}>(*program_, placement, order, workspace);
  result.overflow = find_overflow(placement, workspace);
  std::copy_n(workspace.peaks.begin(), std::min(peaks.size(), workspace.peaks.size()),
              peaks.begin());
  return result;
}

Evaluation Simulator::evaluate_below(Nanoseconds limit, const Placement& placement,
                                     const ReadyOrder& order, Workspace& workspace) const {
  const Nanoseconds step =
      run_fastest<Wanted{.limited = true}>(*program_, placement, order, workspace, limit);
  if (step >= limit) return {step, 0};
  if (fits_without_release(*program_, placement, workspace)) return {step, 0};
  run_fastest<Wanted{.memory = true}>(*program_, placement, order, workspace);
  return {step, find_overflow(placement, workspace)};
}

Evaluation Simulator::evaluate_with_starts(const Placement& placement, const ReadyOrder& order,
                                           Workspace& workspace,
                                           std::span<Nanoseconds> starts) const {
  EMPLACE_CHECK(starts.size() == problem_->num_ops());
  Evaluation result;
  result.step = run_with_times(placement, order, workspace);
  result.overflow = find_overflow(placement, workspace);
  for (OpId op = 0; op < problem_->num_ops(); ++op) starts[op] = workspace.start_of(*program_, op);
  return result;
}

std::vector<HotSpot> Simulator::hot_spots(const Placement& placement, const ReadyOrder& order,
                                          Workspace& workspace, std::span<Bytes> peaks) const {
  run_with_times(placement, order, workspace);
  if (!peaks.empty()) {
    find_overflow(placement, workspace);
    std::copy(workspace.peaks.begin(), workspace.peaks.end(), peaks.begin());
  }
  return read_hot_spots(*problem_, *program_, placement, workspace);
}

Nanoseconds Simulator::run_with_times(const Placement& placement, const ReadyOrder& order,
                                      Workspace& workspace) const {
  workspace.note_times(*program_);
  return run_fastest<Wanted{.memory = true, .timeline = true}>(*program_, placement, order,
                                                               workspace);
}

Nanoseconds Simulator::step_time(const Placement& placement, const ReadyOrder& order,
                                 Workspace& workspace) const {
  return run_fastest<Wanted{}>(*program_, placement, order, workspace);
}

Timeline Simulator::run(const Placement& placement, const Schedule& schedule) const {
  const WorkspacePtr workspace = make_workspace();
  workspace->note_times(*program_);
  const ReadyOrder order(*problem_, schedule);
  const Nanoseconds step = run_engine<true, true, Wanted{.memory = true, .timeline = true}>(
      *program_, placement, order, *workspace, 0);
  find_peaks(*program_, placement, *workspace, true);
  return TimelineReader(*problem_, *program_, placement, *workspace).read(step);
}

}  // namespace emplace

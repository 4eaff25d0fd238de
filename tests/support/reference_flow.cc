// docs/simulator.md, "Throughput": a stream of steps over time, as the page says it, with
// everything that ever happens kept, and memory summed up afterwards from intervals.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "support/reference_simulator.h"

namespace emplace::reference {
namespace {

constexpr Nanoseconds kNotYet = std::numeric_limits<Nanoseconds>::max();

struct Span {
  Nanoseconds start = kNotYet;
  Nanoseconds finish = kNotYet;
};

struct SentOnce {
  int step = 0;
  Sending sending;
  Span span;
};

class Flowing {
 public:
  Flowing(const Graph& graph, const Cluster& cluster, const Placement& placement,
          const Schedule& schedule, int in_flight, InPlace mode)
      : graph_(graph),
        cluster_(cluster),
        placement_(placement),
        schedule_(schedule),
        in_flight_(in_flight),
        mode_(mode) {
    while (measured_ < 12) measured_ += in_flight;
    wanted_ = static_cast<std::size_t>(in_flight + 2 * measured_);
  }

  Flow run() {
    settle();
    while (completions_.size() < wanted_) {
      start_what_is_free();
      now_ = agenda_.begin()->first;
      const auto happening = agenda_.begin()->second;
      agenda_.erase(agenda_.begin());
      for (const auto& [is_op, step, index] : happening) {
        if (is_op == 1) op_done(step, static_cast<OpId>(index));
        if (is_op == 0) sent_.at(index).span.finish = now_;
        if (is_op == 0) arrived(index);
      }
      settle();
    }
    return result();
  }

 private:
  struct Step {
    Nanoseconds entered = 0;
    Nanoseconds finished = kNotYet;
    std::vector<Span> ops;
    std::vector<std::set<TensorId>> tensors;  // that are missing
    std::vector<std::set<OpId>> before;       // that have not finished
    std::vector<bool> begun;
  };

  // Steps enter, and ops of no length come and go, until nothing more happens at this instant.
  void settle() {
    bool more = true;
    while (more) {
      more = false;
      const auto flying = std::count_if(steps_.begin(), steps_.end(),
                                        [](const Step& step) { return step.finished == kNotYet; });
      if (flying < in_flight_ && completions_.size() < wanted_) {
        enter();
        more = true;
      }
      for (int step = 0; step < static_cast<int>(steps_.size()); ++step) {
        if (steps_[step].finished == kNotYet) more = look_for_ready(step) || more;
      }
    }
  }

  void enter() {
    Step step;
    step.entered = now_;
    step.ops.resize(graph_.num_ops());
    step.begun.resize(graph_.num_ops(), false);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      step.tensors.emplace_back(graph_.inputs(op).begin(), graph_.inputs(op).end());
      step.before.emplace_back(graph_.after(op).begin(), graph_.after(op).end());
    }
    steps_.push_back(step);
  }

  bool look_for_ready(int number) {
    bool found = false;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      Step& step = steps_[number];
      if (step.begun[op] || !step.tensors[op].empty() || !step.before[op].empty()) continue;
      step.begun[op] = true;
      found = true;
      if (duration(graph_, cluster_, op, placement_[op]) == 0) {
        step.ops[op].start = now_;
        op_done(number, op);
      } else {
        const std::int64_t key = schedule_.fifo() ? now_ : -schedule_.priorities[op];
        ready_[placement_[op]].insert({number, key, op});
      }
    }
    return found;
  }

  void op_done(int number, OpId op) {
    steps_[number].ops[op].finish = now_;
    for (std::set<OpId>& before : steps_[number].before) before.erase(op);
    for (const TensorId tensor : graph_.outputs(op)) {
      is_on(number, tensor, placement_[op]);
      for (const Sending& sending : sendings_of(graph_, cluster_, placement_, tensor)) {
        const std::size_t index = sent_.size();
        sent_.push_back({number, sending, {}});
        if (sending.length == 0) {
          sent_[index].span = {now_, now_};
          arrived(index);
        } else if (cluster_.link(sending.from, sending.to.front())->unlimited) {
          sent_[index].span.start = now_;
          agenda_[now_ + sending.length].push_back({0, number, index});
        } else {
          queues_[sending.channel].insert({number, now_, tensor, sending.to.front(), index});
        }
      }
    }
    Step& step = steps_[number];
    const bool all = std::all_of(step.ops.begin(), step.ops.end(),
                                 [](const Span& span) { return span.finish != kNotYet; });
    if (!all) return;
    step.finished = now_;
    completions_.push_back(number);
  }

  void is_on(int number, TensorId tensor, DeviceId device) {
    for (const OpId consumer : graph_.consumers(tensor)) {
      if (placement_[consumer] == device) steps_[number].tensors[consumer].erase(tensor);
    }
  }

  void arrived(std::size_t index) {
    const SentOnce& sent = sent_[index];
    for (const DeviceId to : sent.sending.to) is_on(sent.step, sent.sending.tensor, to);
  }

  void start_what_is_free() {
    for (auto& [device, waiting] : ready_) {
      if (waiting.empty() || device_free_[device] > now_) continue;
      const auto [number, key, op] = *waiting.begin();
      waiting.erase(waiting.begin());
      steps_[number].ops[op].start = now_;
      const Nanoseconds finish = now_ + duration(graph_, cluster_, op, device);
      agenda_[finish].push_back({1, number, op});
      device_free_[device] = finish + cluster_.device(device).gap;
      agenda_[device_free_[device]].push_back({2, 0, 0});
    }
    for (auto& [channel, waiting] : queues_) {
      if (waiting.empty() || channel_free_[channel] > now_) continue;
      const std::size_t index = std::get<4>(*waiting.begin());
      waiting.erase(waiting.begin());
      const Sending& sending = sent_[index].sending;
      sent_[index].span.start = now_;
      agenda_[now_ + sending.length].push_back({0, 0, index});
      Nanoseconds hold = 0;
      for (const DeviceId to : sending.to) {
        hold = std::max(hold, cluster_.link(sending.from, to)->hold);
      }
      channel_free_[channel] = now_ + sending.length + hold;
      agenda_[channel_free_[channel]].push_back({2, 0, 0});
    }
  }

  // ---- afterwards

  struct Interval {
    Nanoseconds begin;
    Nanoseconds end;
    Bytes bytes;
  };

  Flow result() {
    Flow flow;
    std::sort(completions_.begin(), completions_.end(), [&](int a, int b) {
      return std::pair(steps_[a].finished, a) < std::pair(steps_[b].finished, b);
    });
    const Nanoseconds from = steps_[completions_[wanted_ - 1 - measured_]].finished;
    const Nanoseconds whole = steps_[completions_[wanted_ - 1]].finished - from;
    flow.period = (whole + measured_ - 1) / measured_;
    flow.period = std::max(flow.period, largest_load());
    for (std::size_t i = wanted_ - measured_; i < wanted_; ++i) {
      const Step& step = steps_[completions_[i]];
      flow.latency = std::max(flow.latency, step.finished - step.entered);
    }
    for (DeviceId device = 0; device < cluster_.num_devices(); ++device) {
      flow.peaks.push_back(peak(device));
    }
    return flow;
  }

  Nanoseconds largest_load() const {
    std::map<DeviceId, Nanoseconds> devices;
    std::map<ChannelId, Nanoseconds> channels;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const Nanoseconds length = duration(graph_, cluster_, op, placement_[op]);
      if (length > 0) devices[placement_[op]] += length + cluster_.device(placement_[op]).gap;
    }
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      for (const Sending& sending : sendings_of(graph_, cluster_, placement_, tensor)) {
        Nanoseconds hold = 0;
        for (const DeviceId to : sending.to) {
          hold = std::max(hold, cluster_.link(sending.from, to)->hold);
        }
        const bool waits = !cluster_.link(sending.from, sending.to.front())->unlimited;
        if (sending.length > 0 && waits) channels[sending.channel] += sending.length + hold;
      }
    }
    Nanoseconds largest = 0;
    for (const auto& [device, load] : devices) largest = std::max(largest, load);
    for (const auto& [channel, load] : channels) largest = std::max(largest, load);
    return largest;
  }

  Bytes peak(DeviceId device) const {
    Bytes always = 0;
    std::vector<Interval> held;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (placement_[op] != device) continue;
      always += graph_.persistent_bytes(op);
      if (!whole_step(graph_, op)) continue;
      for (const TensorId tensor : graph_.outputs(op)) always += graph_.memory_bytes(tensor);
    }
    for (int number = 0; number < static_cast<int>(steps_.size()); ++number) {
      add_held(number, device, held);
    }
    Bytes largest = 0;
    for (const Interval& at : held) {
      if (at.begin >= now_) continue;
      Bytes sum = 0;
      for (const Interval& other : held) {
        if (other.begin <= at.begin && at.begin < other.end) sum += other.bytes;
      }
      largest = std::max(largest, sum);
    }
    return always + largest;
  }

  void add_held(int number, DeviceId device, std::vector<Interval>& held) const {
    const Step& step = steps_[number];
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (placement_[op] != device || step.ops[op].start == kNotYet) continue;
      held.push_back({step.ops[op].start, step.ops[op].finish, graph_.temp_bytes(op)});
      if (graph_.is_view(op) || whole_step(graph_, op)) continue;
      for (const TensorId tensor : graph_.outputs(op)) {
        Nanoseconds end = 0;
        for (TensorId other = 0; other < graph_.num_tensors(); ++other) {
          if (root_of(graph_, other) == tensor) end = std::max(end, end_at_home(number, other));
        }
        held.push_back({step.ops[op].start, end, graph_.memory_bytes(tensor)});
      }
    }
    for (const SentOnce& sent : sent_) {
      const auto& to = sent.sending.to;
      if (sent.step != number || sent.span.start == kNotYet) continue;
      if (std::find(to.begin(), to.end(), device) == to.end()) continue;
      held.push_back({sent.span.start, last_use(number, sent.sending.tensor, device),
                      graph_.memory_bytes(sent.sending.tensor)});
    }
  }

  Nanoseconds last_use(int number, TensorId tensor, DeviceId device) const {
    const bool copy = placement_[graph_.producer(tensor)] != device;
    Nanoseconds end = 0;
    for (const OpId consumer : graph_.consumers(tensor)) {
      if (placement_[consumer] != device) continue;
      bool taken = writes_over(graph_, consumer, tensor, mode_);
      for (const TensorId input : graph_.inputs(consumer)) {
        taken = taken || (!copy && root_of(graph_, input) == root_of(graph_, tensor) &&
                          writes_over(graph_, consumer, input, mode_));
      }
      const Span& span = steps_[number].ops[consumer];
      end = std::max(end, taken ? span.start : span.finish);
    }
    return end;
  }

  Nanoseconds end_at_home(int number, TensorId tensor) const {
    const OpId producer = graph_.producer(tensor);
    Nanoseconds end = std::max(steps_[number].ops[producer].finish,
                               last_use(number, tensor, placement_[producer]));
    for (const SentOnce& sent : sent_) {
      if (sent.step == number && sent.sending.tensor == tensor) {
        end = std::max(end, sent.span.finish);
      }
    }
    return end;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const Placement& placement_;
  const Schedule& schedule_;
  int in_flight_;
  InPlace mode_;
  int measured_ = 0;
  std::size_t wanted_ = 0;
  Nanoseconds now_ = 0;
  std::vector<Step> steps_;
  std::vector<int> completions_;
  std::vector<SentOnce> sent_;
  std::map<Nanoseconds, std::vector<std::tuple<int, int, std::size_t>>> agenda_;
  std::map<DeviceId, std::set<std::tuple<int, std::int64_t, OpId>>> ready_;
  std::map<DeviceId, Nanoseconds> device_free_;
  using Waiting = std::tuple<int, Nanoseconds, TensorId, DeviceId, std::size_t>;
  std::map<ChannelId, std::set<Waiting>> queues_;
  std::map<ChannelId, Nanoseconds> channel_free_;
};

}  // namespace

Flow flow(const Graph& graph, const Cluster& cluster, const Placement& placement,
          const Schedule& schedule, int in_flight, InPlace mode) {
  return Flowing(graph, cluster, placement, schedule, in_flight, mode).run();
}

}  // namespace emplace::reference

// One event loop over all steps in flight, with the rules of a single step: an item is an op or a
// transfer of some step, and a free device or channel takes that of the oldest step, then the one
// that it would take in a single step.
//
// Oldest first is what makes the number of steps in flight matter little beyond what the period
// needs: what a stream waits for is finished before anything new is begun, and no device that is
// short of time is kept from it for ever (longest-in-system is stable in every network: Andrews et
// al., "Universal-stability results and performance bounds for greedy contention-resolution
// protocols", JACM 2001).
//
// Memory counts at the end of each instant, when all that ends has been given back and all that
// begins has been taken. O(log items) for an op or transfer, and O(ops) for a step.
#include "sim/stream_run.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace emplace {
namespace {

// Steps that the period is measured over, and as many before them, at least.
constexpr int kLeastMeasured = 12;
// Further steps in flight that are tried although those before brought nothing.
constexpr int kPatience = 4;
constexpr Nanoseconds kThousandths = 1000;

// A multiple of the steps in flight, since what repeats itself mostly does so after as many.
int measured_steps(int in_flight) {
  return in_flight * ((kLeastMeasured + in_flight - 1) / in_flight);
}

class StreamLoop {
 public:
  StreamLoop(const Problem& problem, const StreamPlan& plan, const ReadyOrder& order, int in_flight,
             int recorded)
      : problem_(problem),
        plan_(plan),
        order_(order),
        measured_(measured_steps(in_flight)),
        last_(static_cast<std::size_t>(in_flight) + 2 * static_cast<std::size_t>(measured_)),
        recorded_(recorded),
        slots_(static_cast<std::size_t>(in_flight)),
        ready_(plan.gaps.size()),
        waiting_(plan.num_channels),
        busy_(plan.gaps.size() + plan.num_channels, false),
        held_(plan.resident),
        peaks_(plan.resident) {
    result_.in_flight = in_flight;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) free_slots_.push_back(slot);
  }

  StreamRun run() {
    if (plan_.device.empty()) return finished();
    follow_up();
    while (!done()) {
      start_what_is_free();
      note_peaks();
      EMPLACE_CHECK(!events_.empty());
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      follow_up();
    }
    return finished();
  }

 private:
  // A step in flight.
  struct Step {
    std::uint32_t number = 0;
    Nanoseconds entered = 0;
    std::uint32_t unfinished = 0;      // ops
    std::vector<std::uint32_t> waits;  // by op
    std::vector<std::uint32_t> uses;   // by block
    std::vector<Nanoseconds> queued;   // by sending, where the step is recorded
  };
  struct Event {
    enum class Kind : std::uint8_t { kOp, kSending, kFree };
    Nanoseconds time;
    Kind kind;
    std::uint32_t index;  // op, sending, or what is free
    std::uint32_t slot;

    bool operator<(const Event& other) const { return time > other.time; }
  };
  struct Ready {
    std::uint32_t step;
    std::int64_t key;  // when it became ready, or its rank
    OpId op;
    std::uint32_t slot;

    bool operator<(const Ready& other) const {
      return std::tie(step, key, op) > std::tie(other.step, other.key, other.op);
    }
  };
  struct Waiting {
    std::uint32_t step;
    Nanoseconds queued;
    TensorId tensor;
    DeviceId lowest_to;
    std::uint32_t sending;
    std::uint32_t slot;

    bool operator<(const Waiting& other) const {
      return std::tie(step, queued, tensor, lowest_to) >
             std::tie(other.step, other.queued, other.tensor, other.lowest_to);
    }
  };

  struct Finish {
    Nanoseconds time;
    std::uint32_t step;
    Nanoseconds latency;

    bool operator<(const Finish& other) const {
      return std::tie(time, step) < std::tie(other.time, other.step);
    }
  };

  bool done() const { return finishes_.size() >= last_; }

  // Everything that follows at this instant: ops of no length, and steps that enter.
  void follow_up() {
    while (!instant_.empty() || (!free_slots_.empty() && !done())) {
      if (instant_.empty()) {
        enter();
        continue;
      }
      const auto [op, slot] = instant_.back();
      instant_.pop_back();
      begin_op(op, slot);
      finish_op(op, slot);
    }
  }

  void enter() {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    Step& step = slots_[slot];
    step.number = entered_++;
    step.entered = now_;
    if (recorded_ > 0 && step.number <= static_cast<std::uint32_t>(recorded_)) {
      result_.entered.push_back(now_);
    }
    step.unfinished = static_cast<std::uint32_t>(plan_.device.size());
    step.waits = plan_.waits;
    step.uses.resize(plan_.blocks.size());
    for (std::size_t i = 0; i < plan_.blocks.size(); ++i) step.uses[i] = plan_.blocks[i].uses;
    if (is_recorded(slot)) {
      result_.steps.emplace_back().ops.resize(plan_.device.size());
      step.queued.assign(plan_.sendings.size(), 0);
    }
    for (OpId op = 0; op < plan_.device.size(); ++op) {
      if (step.waits[op] == 0) make_ready(op, slot);
    }
  }

  bool is_recorded(std::uint32_t slot) const {
    return slots_[slot].number < static_cast<std::uint32_t>(recorded_);
  }
  Timeline& record(std::uint32_t slot) { return result_.steps[slots_[slot].number]; }

  void make_ready(OpId op, std::uint32_t slot) {
    if (plan_.duration[op] == 0) {
      instant_.emplace_back(op, slot);
      return;
    }
    const std::int64_t key = order_.fifo() ? now_ : std::int64_t{order_.rank_of_op()[op]};
    ready_[plan_.device[op]].push({slots_[slot].number, key, op, slot});
    touched_.push_back(plan_.device[op]);
  }

  void satisfy(std::uint32_t op, std::uint32_t slot) {
    if (--slots_[slot].waits[op] == 0) make_ready(static_cast<OpId>(op), slot);
  }

  void take(std::uint32_t block) { held_[plan_.blocks[block].device] += plan_.blocks[block].bytes; }
  void end_use(std::uint32_t block, std::uint32_t slot) {
    if (--slots_[slot].uses[block] == 0) {
      held_[plan_.blocks[block].device] -= plan_.blocks[block].bytes;
    }
  }

  void begin_op(OpId op, std::uint32_t slot) {
    held_[plan_.device[op]] += plan_.temp[op];
    for (const std::uint32_t block : plan_.made[op]) take(block);
    if (is_recorded(slot)) record(slot).ops[op] = {now_, now_ + plan_.duration[op]};
  }

  void finish_op(OpId op, std::uint32_t slot) {
    held_[plan_.device[op]] -= plan_.temp[op];
    for (const std::uint32_t sending : plan_.sendings_of_op[op]) queue(sending, slot);
    for (const std::uint32_t block : plan_.used[op]) end_use(block, slot);
    for (const std::uint32_t later : plan_.followers[op]) satisfy(later, slot);
    Step& step = slots_[slot];
    if (--step.unfinished > 0) return;
    finishes_.push_back({now_, step.number, now_ - step.entered});
    free_slots_.push_back(slot);
  }

  void queue(std::uint32_t index, std::uint32_t slot) {
    const StreamPlan::Sending& sending = plan_.sendings[index];
    if (is_recorded(slot)) slots_[slot].queued[index] = now_;
    if (sending.length == 0) {
      begin_sending(index, slot);
      finish_sending(index, slot);
      return;
    }
    if (sending.unlimited) {
      begin_sending(index, slot);
      events_.push({now_ + sending.length, Event::Kind::kSending, index, slot});
      return;
    }
    waiting_[sending.channel].push(
        {slots_[slot].number, now_, sending.tensor, sending.lowest_to, index, slot});
    touched_.push_back(static_cast<std::uint32_t>(ready_.size()) + sending.channel);
  }

  void begin_sending(std::uint32_t index, std::uint32_t slot) {
    for (const std::uint32_t copy : plan_.copies[index]) take(copy);
    if (!is_recorded(slot)) return;
    const StreamPlan::Sending& sending = plan_.sendings[index];
    for (const DeviceId to : plan_.destinations[index]) {
      record(slot).transfers.push_back(
          {.tensor = sending.tensor,
           .from = sending.from,
           .to = to,
           .channel = sending.length > 0 ? sending.channel : kNoChannel,
           .queued = slots_[slot].queued[index],
           .start = now_,
           .finish = now_ + sending.length,
           .shared = to != sending.lowest_to});
    }
  }

  void finish_sending(std::uint32_t index, std::uint32_t slot) {
    if (plan_.sendings[index].block != StreamPlan::kNone)
      end_use(plan_.sendings[index].block, slot);
    for (const std::uint32_t op : plan_.receivers[index]) satisfy(op, slot);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kOp:
        finish_op(static_cast<OpId>(event.index), event.slot);
        break;
      case Event::Kind::kSending:
        finish_sending(event.index, event.slot);
        break;
      case Event::Kind::kFree:
        busy_[event.index] = false;
        touched_.push_back(event.index);
        break;
    }
  }

  // The devices, then the channels.
  void start_what_is_free() {
    for (const std::uint32_t which : touched_) {
      if (busy_[which]) continue;
      if (which < ready_.size()) {
        start_op(which);
      } else {
        start_sending(which);
      }
    }
    touched_.clear();
  }

  void start_op(std::uint32_t device) {
    auto& queue = ready_[device];
    if (queue.empty()) return;
    const Ready item = queue.top();
    queue.pop();
    begin_op(item.op, item.slot);
    const Nanoseconds finish = now_ + plan_.duration[item.op];
    occupy(device, {finish, Event::Kind::kOp, item.op, item.slot}, plan_.gaps[device]);
  }

  void start_sending(std::uint32_t which) {
    auto& queue = waiting_[which - ready_.size()];
    if (queue.empty()) return;
    const Waiting item = queue.top();
    queue.pop();
    begin_sending(item.sending, item.slot);
    const StreamPlan::Sending& sending = plan_.sendings[item.sending];
    occupy(which, {now_ + sending.length, Event::Kind::kSending, item.sending, item.slot},
           sending.hold);
  }

  void occupy(std::uint32_t which, const Event& end, Nanoseconds longer) {
    busy_[which] = true;
    events_.push(end);
    events_.push({end.time + longer, Event::Kind::kFree, which, 0});
  }

  void note_peaks() {
    for (std::size_t device = 0; device < held_.size(); ++device) {
      peaks_[device] = std::max(peaks_[device], held_[device]);
    }
  }

  // Steps that are still in flight are not shown in part.
  void drop_unfinished() {
    for (const Step& step : slots_) {
      if (step.unfinished == 0 || step.number >= result_.steps.size()) continue;
      result_.steps.resize(step.number);
      result_.entered.resize(std::size_t{step.number} + 1);
    }
    // The next one would have entered now.
    if (recorded_ > 0 && result_.entered.size() == result_.steps.size()) {
      result_.entered.push_back(now_);
    }
  }

  StreamRun finished() {
    drop_unfinished();
    for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
      const Bytes capacity = problem_.cluster().device(device).memory;
      result_.overflow += std::max<Bytes>(0, peaks_[device] - capacity);
    }
    result_.peaks = std::move(peaks_);
    if (finishes_.empty()) return std::move(result_);
    std::sort(finishes_.begin(), finishes_.end());  // at one instant, the older one first
    const std::size_t first = last_ - static_cast<std::size_t>(measured_);
    const Nanoseconds whole = finishes_[last_ - 1].time - finishes_[first - 1].time;
    result_.period = std::max(plan_.largest_load, (whole + measured_ - 1) / measured_);
    for (std::size_t i = first; i < last_; ++i) {
      result_.latency = std::max(result_.latency, finishes_[i].latency);
    }
    return std::move(result_);
  }

  const Problem& problem_;
  const StreamPlan& plan_;
  const ReadyOrder& order_;
  int measured_;
  std::size_t last_;  // steps that finish before it ends
  int recorded_;
  Nanoseconds now_ = 0;
  std::uint32_t entered_ = 0;
  std::vector<Step> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::pair<OpId, std::uint32_t>> instant_;
  std::priority_queue<Event> events_;
  std::vector<std::priority_queue<Ready>> ready_;      // by device
  std::vector<std::priority_queue<Waiting>> waiting_;  // by channel
  std::vector<bool> busy_;                             // devices, then channels
  std::vector<std::uint32_t> touched_;                 // may have something to start
  std::vector<Bytes> held_;
  std::vector<Bytes> peaks_;
  std::vector<Finish> finishes_;
  StreamRun result_;
};

bool about_as_short(Nanoseconds period, Nanoseconds best) {
  return period <= best + best / kThousandths;
}

}  // namespace

StreamSimulator::StreamSimulator(const Problem& problem, const Placement& placement,
                                 const ReadyOrder& order)
    : problem_(problem), order_(order), plan_(problem, placement) {
  constexpr Nanoseconds kMostSteps = 4 * (kMostInFlight + kLeastMeasured);
  if (problem.horizon() > std::numeric_limits<Nanoseconds>::max() / kMostSteps) {
    fail(ErrorKind::kUnsupported,
         "graph '{}': a stream of steps that could each last {} ns is more than can be simulated",
         problem.graph().name(), problem.horizon());
  }
}

StreamRun StreamSimulator::run(int in_flight, int recorded) const {
  EMPLACE_CHECK(in_flight >= 1 && in_flight <= kMostInFlight);
  return StreamLoop(problem_, plan_, order_, in_flight, recorded).run();
}

StreamRun choose_in_flight(const StreamSimulator& stream) {
  std::vector<StreamRun> tried{stream.run(1)};
  std::size_t best = 0;
  std::size_t gained = 0;  // the last that was worth its memory
  bool memory_limited = false;
  while (tried.front().fits() && tried.size() < kMostInFlight) {
    if (about_as_short(tried[best].period, stream.largest_load())) break;
    if (tried.size() - 1 - gained >= kPatience) break;
    StreamRun next = stream.run(static_cast<int>(tried.size()) + 1);
    if (!next.fits()) {
      memory_limited = true;
      break;
    }
    tried.push_back(std::move(next));
    const std::size_t last = tried.size() - 1;
    if (!about_as_short(tried[gained].period, tried[last].period)) gained = last;
    if (tried[last].period < tried[best].period) best = last;
  }
  const auto chosen = std::find_if(tried.begin(), tried.end(), [&](const StreamRun& run) {
    return about_as_short(run.period, tried[best].period);
  });
  chosen->memory_limited = memory_limited;
  return std::move(*chosen);
}

}  // namespace emplace

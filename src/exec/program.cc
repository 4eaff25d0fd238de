#include "exec/program.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/error.h"

#include "exec/clock.h"
#include "exec/tf32.h"

namespace emplace::exec {
namespace {

// In place of a number of what is under way.
constexpr std::int64_t kNoneRuns = -1;
constexpr std::int64_t kAbandoned = -2;

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace

bool StepProgram::fixed(CopyId copy) const {
  const TensorCopy& of = plan_.copies[copy];
  if (of.lasting || (ranks_ && ranks_->arrives(copy))) return true;
  return on_gpu(of.device) && plan_.ops[graph_->producer(of.tensor)].device != of.device;
}

void StepProgram::join(Ranks& ranks, StepProgram* program, const std::optional<Error>& mine) {
  try {
    ranks.share_error(mine);
    program->ranks_->join(program->failure_, program->slow_types_);
  } catch (const RankLost& lost) {
    fail(ErrorKind::kSystem, "{}", lost.text);
  }
}

StepProgram::~StepProgram() {
  ranks_.reset();
  gpus_.reset();  // has threads that use the rest
  // Where they were allocated, so that devices have their memory back before the next program.
  values_.clear();
  kept_.clear();
}

std::vector<MemoryRecord> StepProgram::memory() const {
  if (!memory_.empty()) return memory_;
  std::vector<MemoryRecord> records(machine_.num_devices());
  for (const DeviceId device : devices_) {
    records[device] = on_gpu(device) ? gpus_->memory(device) : machine_.memory().record(device);
  }
  return records;
}

void StepProgram::reset() {
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    missing_[op].store(plan_.ops[op].missing, std::memory_order_relaxed);
    keeps_for_[op].store(plan_.ops[op].keeps_for, std::memory_order_relaxed);
  }
  for (CopyId copy = 0; copy < plan_.copies.size(); ++copy) {
    uses_[copy].store(plan_.copies[copy].uses, std::memory_order_relaxed);
    if (!fixed(copy)) values_[copy] = Tensor();
  }
  std::fill(op_times_.begin(), op_times_.end(), Interval{});
  std::fill(transfer_times_.begin(), transfer_times_.end(), Interval{});
  for (ReadyQueue& queue : ready_) queue.clear();
  next_place_ = 0;
  num_overwritten_ = 0;
  at_start_ = 0;
  started_ = 0;
  if (watched_ != nullptr) watched_->assign(graph_->num_tensors(), {});
}

StepRecord StepProgram::step() {
  if (stopped()) return record_of(collect());  // on all ranks, as they agree at the end of a step
  if (machine_.cancelled()) stop({Failure::Kind::kCancelled, "the step was cancelled"});
  if (stopped() && !ranks_) return record_of(collect());
  std::optional<Tf32> tf32;
  if (gpus_) tf32.emplace(options_.numbers == Numbers::kTf32);
  reset();
  if (ranks_) go_ = ranks_->begin(failure_).value_or(0);
  const bool forever = deadline_ == 0 || ranks_ || gpus_;
  const Nanoseconds end = forever ? kNever : now() + deadline_;
  if (!stopped()) {
    for (const DeviceId device : devices_) {
      running_[device].number = kNoneRuns;
      // An op that is abandoned needs the program for as long as it runs.
      machine_.device(device).post(
          [this, device, self = weak_from_this().lock()] { run_device(device); });
    }
    wait_for_devices(end);
  }
  wait_for_transfers(end);
  if (!abandoned_.empty()) drop_values();
  if (gpus_) gpus_->end_step();
  ++num_steps_;
  limit_gpus();
  if (!ranks_) return record_of(collect());
  memory_.clear();
  StepParts parts = ranks_->end(collect());
  memory_ = parts.memory;
  return record_of(std::move(parts));
}

// Devices look between two ops, but may all wait for a link.
void StepProgram::wait_for_devices(Nanoseconds end) {
  constexpr Nanoseconds kBetweenLooks = 50'000'000;
  for (const DeviceId device : devices_) {
    DeviceThread& thread = machine_.device(device);
    while (!thread.wait_for(std::clamp<Nanoseconds>(end - now(), 0, kBetweenLooks))) {
      if (is_late(end)) return give_up_on_devices();
    }
  }
}

// What no device waited for, and after a failure whatever is still on its way.
void StepProgram::wait_for_transfers(Nanoseconds end) {
  while (carrying_.load(std::memory_order_acquire) > 0) {
    is_late(end);
    std::this_thread::yield();
  }
}

// Stops the step if it is, or if it is cancelled.
bool StepProgram::is_late(Nanoseconds end) {
  if (machine_.cancelled() && !stopped()) {
    stop({Failure::Kind::kCancelled, "the step was cancelled"});
  }
  const bool late = now() >= end;
  if (late && !stopped()) stop({Failure::Kind::kHung, say_what_hangs()});
  return late;
}

// The step has been stopped. Devices between two ops end by themselves.
void StepProgram::give_up_on_devices() {
  constexpr Nanoseconds kPatience = 500'000'000;
  constexpr Nanoseconds kBetweenLooks = 10'000'000;
  for (const DeviceId device : devices_) {
    DeviceThread& thread = machine_.device(device);
    if (thread.wait_for(kPatience)) continue;
    if (weak_from_this().expired()) {  // nobody would keep the program for the op
      thread.wait();
      continue;
    }
    do {
      std::int64_t op = running_[device].number;
      if (op >= 0 && running_[device].number.compare_exchange_strong(op, kAbandoned)) {
        thread.replace();
        abandoned_.push_back(static_cast<OpId>(op));
        break;
      }
    } while (!thread.wait_for(kBetweenLooks));
  }
}

// All but what ops that were left alone look at: their memory is for the next program.
void StepProgram::drop_values() {
  values_.assign(values_.size(), {});
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    const bool used = std::any_of(abandoned_.begin(), abandoned_.end(), [&](OpId left) {
      return left == op || plan_.ops[left].keeper == op;
    });
    if (!used) kept_[op].clear();
  }
}

// What has been under way for longest.
std::string StepProgram::say_what_hangs() const {
  const std::string time = format_time(deadline_);
  std::string what = fmt::format("the step has not ended after {}", time);
  Nanoseconds first = kNever;
  for (const DeviceId device : devices_) {
    const std::int64_t number = running_[device].number;
    if (number < 0 || running_[device].since >= first) continue;
    first = running_[device].since;
    const auto op = static_cast<OpId>(number);
    what = fmt::format("op '{}' ({}) on device '{}': still runs {} after the step began",
                       graph_->op_name(op), graph_->type(op),
                       machine_.cluster().device(device).name, time);
  }
  for (const UnderWay& carried : carried_) {
    const std::int64_t number = carried.number;
    if (number < 0 || carried.since >= first) continue;
    first = carried.since;
    const Transfer& sent = transfers_[static_cast<std::size_t>(number)];
    const OpId op = graph_->producer(sent.tensor);
    what = fmt::format(
        "the result of op '{}' ({}) on its way to device '{}': is not there {} after the step "
        "began",
        graph_->op_name(op), graph_->type(op), machine_.cluster().device(sent.to).name, time);
  }
  return what;
}

// Runs the kernel so that it can be left alone. Whoever is told so touches nothing any more.
template <class Kernel>
void StepProgram::attended(OpId op, const Kernel& kernel) {
  UnderWay& mine = running_[plan_.ops[op].device];
  std::atomic<std::int64_t>& running = mine.number;
  mine.since.store(op_times_[op].start, std::memory_order_relaxed);
  running.store(op, std::memory_order_release);
  try {
    kernel();
  } catch (...) {
    if (running.exchange(kNoneRuns) == kAbandoned) throw Abandoned{};
    throw;
  }
  if (running.exchange(kNoneRuns) == kAbandoned) throw Abandoned{};
}

StepParts StepProgram::collect() const {
  StepParts parts;
  {
    const std::lock_guard lock(failure_mutex_);
    parts.failure = failure_;
  }
  if (parts.failure) return parts;
  parts.started = started_;
  parts.ended = *std::max_element(ended_.begin(), ended_.end());
  parts.ops = op_times_;
  parts.transfers = transfer_times_;
  parts.temporary = temporary_;
  for (const CopyId copy : plan_.losses) {
    const bool known = values_[copy].defined() && values_[copy].numel() == 1;
    parts.losses.emplace_back();
    if (known) parts.losses.back() = values_[copy].to(torch::kDouble).item<double>();
  }
  if (ranks_) parts.memory = memory();
  return parts;
}

StepRecord StepProgram::record_of(StepParts parts) {
  StepRecord record;
  record.failure = parts.failure;
  if (parts.failure) return record;
  record.step = parts.ended - parts.started;
  record.ops = std::move(parts.ops);
  record.transfers = std::move(parts.transfers);
  record.temporary = std::move(parts.temporary);
  for (auto* times : {&record.ops, &record.transfers}) {
    for (Interval& time : *times) {
      if (time.end != 0) time = {time.start - parts.started, time.end - parts.started};
    }
  }
  for (const auto& loss : parts.losses) {
    if (loss) record.loss = record.loss.value_or(0) + *loss;
  }
  return record;
}

// A GPU has more than the cluster says; what a smaller one could not have held is a failure.
void StepProgram::limit_gpus() {
  if (!gpus_ || stopped()) return;
  for (std::size_t i = 0; i < machine_.num_devices(); ++i) {
    const auto device = static_cast<DeviceId>(i);
    if (!on_gpu(device)) continue;
    const Bytes peak = gpus_->memory(device).peak;
    const Bytes limit = machine_.memory_limit(i);
    if (peak <= limit) continue;
    stop({Failure::Kind::kMemory,
          fmt::format("device '{}': memory runs out: the step holds up to {}, expected at most {}",
                      machine_.cluster().device(device).name, format_bytes(peak),
                      format_bytes(limit))});
  }
}

// All devices begin together, those of other ranks by the same clock.
void StepProgram::begin(DeviceId device) {
  const auto all = static_cast<int>(devices_.size());
  if (at_start_.fetch_add(1) + 1 == all) {
    if (go_ != 0) wait_until(go_);
    started_ = go_ != 0 ? go_ : now();
    start_.notify();
  } else {
    start_.wait(machine_.patience(), [&] { return started_.load() != 0; });
  }
  for (const TransferId transfer : plan_.first_sends[device]) send(transfer);
  if (on_gpu(device)) return;
  for (const OpId op : plan_.first_ops[device]) make_ready(op);
}

void StepProgram::run_device(DeviceId device) {
  begin(device);
  if (on_gpu(device)) {
    gpus_->run(device);
    ended_[device] = now();
    return;
  }
  const std::int32_t count = plan_.num_timed[device];
  for (std::int32_t done = 0; done < count; ++done) {
    const OpId op = next_op(device, done);
    if (op == kNoOp) break;
    guarded(op, [&] {
      op_times_[op].start = now();
      execute(op, {});
      op_times_[op].end = now();
      complete(op);
    });
    if (machine_.cancelled()) {
      stop({Failure::Kind::kCancelled, "the step was cancelled"});
    }
  }
  ended_[device] = now();
}

// Waits for one; kNoOp when the step is to end.
OpId StepProgram::next_op(DeviceId device, std::int32_t done) {
  ReadyQueue& queue = ready_[device];
  Signal& signal = signals_[device];
  if (options_.order.sequence.empty()) {
    signal.wait(machine_.patience(), [&] { return stopped() || !queue.empty(); });
    return stopped() ? kNoOp : queue.pop();
  }
  const OpId op = options_.order.sequence[device][static_cast<std::size_t>(done)];
  signal.wait(machine_.patience(),
              [&] { return stopped() || missing_[op].load(std::memory_order_acquire) == 0; });
  return stopped() ? kNoOp : op;
}

void StepProgram::make_ready(OpId op) {
  if (graph_->is_view(op) && !on_gpu(plan_.ops[op].device)) {
    guarded(op, [&] {
      const MemoryAccounts::For account(plan_.ops[op].device);
      execute(op, {});
      complete(op);
    });
    return;
  }
  const DeviceId device = plan_.ops[op].device;
  if (options_.order.sequence.empty() && !on_gpu(device)) {
    const auto& rank = options_.order.rank;
    ready_[device].push(rank.empty() ? next_place_.fetch_add(1) : rank[op], op);
  }
  signals_[device].notify();
}

void StepProgram::execute(OpId op, const Clock& clock) {
  const PlannedOp& planned = plan_.ops[op];
  Tensors inputs;
  inputs.reserve(planned.inputs.size());
  for (const CopyId copy : planned.inputs) inputs.push_back(values_[copy]);
  Tensors outputs(planned.outputs.size());
  OpStep call{.inputs = inputs, .outputs = outputs, .step = num_steps_, .clock = clock};
  if (planned.keeps_for > 0) call.keep = &kept_[op];
  if (planned.keeper != kNoOp) call.kept = &kept_[planned.keeper];
  if (overwrites_[op] && overwrite_input(op, inputs, outputs)) {
    num_overwritten_.fetch_add(1, std::memory_order_relaxed);
    set_temporary(op, 0);
  } else if (on_gpu(planned.device) || graph_->is_view(op)) {
    compiled_[op].run(call);  // a view perhaps by another device's thread, beside an op here
  } else {
    const Bytes before = machine_.memory().begin_span(planned.device);
    attended(op, [&] { compiled_[op].run(call); });
    set_temporary(op, machine_.memory().peak_of_span(planned.device) - before);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const CopyId copy = planned.outputs[i];
    if (watched_ != nullptr) (*watched_)[plan_.copies[copy].tensor] = outputs[i];
    if (plan_.copies[copy].uses > 0) values_[copy] = std::move(outputs[i]);
  }
  if (planned.keeper != kNoOp && keeps_for_[planned.keeper].fetch_sub(1) == 1) {
    kept_[planned.keeper].clear();
  }
  inputs.clear();
  for (const CopyId copy : planned.releases) release(copy);
}

// Where nobody else will look at an input, the result takes its place: gradients that are summed up
// over many time steps are read and written once less.
bool StepProgram::overwrite_input(OpId op, Tensors& inputs, Tensors& outputs) {
  const PlannedOp& planned = plan_.ops[op];
  if (planned.keeps_for > 0 || planned.keeper != kNoOp) return false;
  constexpr std::size_t kHolders = 2;  // values_ and inputs
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const CopyId copy = planned.inputs[i];
    const Tensor& input = inputs[i];
    const bool last = uses_[copy].load(std::memory_order_acquire) == 1 && !fixed(copy);
    if (!last || input.use_count() != kHolders || input.storage().use_count() != 1) continue;
    if (!input.is_contiguous()) continue;
    const auto kernel = [&] { overwrites_[op](inputs, i); };
    if (on_gpu(planned.device) || graph_->is_view(op)) {
      kernel();
    } else {
      attended(op, kernel);
    }
    outputs[0] = inputs[i];
    return true;
  }
  return false;
}

void StepProgram::complete(OpId op) {
  const PlannedOp& planned = plan_.ops[op];
  for (const CopyId copy : planned.outputs) {
    for (const TransferId transfer : plan_.copies[copy].sends) send(transfer);
  }
  for (const CopyId copy : planned.outputs) arrived(copy);
  preceded(op);
  if (ranks_) ranks_->finished(op);
}

void StepProgram::preceded(OpId op) {
  for (const OpId follower : plan_.ops[op].followers) {
    if (!here(plan_.ops[follower].device)) continue;
    if (missing_[follower].fetch_sub(1, std::memory_order_acq_rel) == 1) make_ready(follower);
  }
}

void StepProgram::arrived(CopyId copy) {
  for (const OpId reader : plan_.copies[copy].readers) {
    if (missing_[reader].fetch_sub(1, std::memory_order_acq_rel) == 1) make_ready(reader);
  }
}

bool StepProgram::wait_for(OpId op) {
  signals_[plan_.ops[op].device].wait(machine_.patience(), [&] {
    return stopped() || missing_[op].load(std::memory_order_acquire) == 0;
  });
  return !stopped();
}

void StepProgram::followed(OpId op) {
  for (const OpId follower : plan_.ops[op].followers) {
    const DeviceId device = plan_.ops[follower].device;
    if (device == plan_.ops[op].device || !here(device)) continue;
    if (missing_[follower].fetch_sub(1, std::memory_order_acq_rel) == 1) make_ready(follower);
  }
  if (ranks_) ranks_->finished(op);
}

void StepProgram::set_time(OpId op, const Interval& time) {
  const Nanoseconds start = started_;
  op_times_[op] = {start + time.start, start + time.end};
}

void StepProgram::set_temporary(OpId op, Bytes held) {
  temporary_[op] = std::max<Bytes>(0, held - written_[op]);
}

void StepProgram::release(CopyId copy) {
  const bool last = uses_[copy].fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last && !fixed(copy)) values_[copy] = Tensor();
}

void StepProgram::send(TransferId transfer) {
  carrying_.fetch_add(1, std::memory_order_relaxed);
  machine_.channel(plan_.transfers[transfer].channel).post([this, transfer, sent = now()] {
    if (!stopped()) carry_over(transfer, sent);
    carrying_.fetch_sub(1, std::memory_order_release);
  });
}

// A throttled link is as quick as it says, however late the thread that is the link comes to it:
// transfers begin when they were sent, or when the one before had passed.
void StepProgram::carry_over(TransferId transfer, Nanoseconds sent) {
  const PlannedTransfer& planned = plan_.transfers[transfer];
  const Transfer& what = transfers_[transfer];
  const auto was_stopped = [this] { return stopped(); };
  const auto carry_it = [&] {
    Interval& time = transfer_times_[transfer];
    const Link& link = *machine_.cluster().link(what.from, what.to);
    Nanoseconds& passed = passed_[planned.channel];
    time.start = link.throttled ? std::max(sent, passed) : now();
    if (!here(what.to)) {
      ranks_->carry(transfer, time);
      release(planned.from);
    } else if (on_gpu(what.from) || on_gpu(what.to)) {
      const MemoryAccounts::For account(what.to);
      if (link.throttled) {  // it is sent when it has been launched, which is earlier
        gpus_->wait_for_result(transfer);
        if (on_gpu(what.from)) time.start = std::max(time.start, now());
      }
      const auto bytes = static_cast<Bytes>(values_[planned.from].nbytes());
      gpus_->carry(transfer, [&] {
        if (link.throttled) wait_until(time.start + transfer_time(link, bytes), was_stopped);
        arrived(planned.to);
      });
      time.end = now();
      release(planned.from);
    } else {
      values_[planned.to] = carry(values_[planned.from], what.to, link, time.start, was_stopped);
      time.end = now();
      release(planned.from);
      arrived(planned.to);
    }
    passed = time.end + link.hold;
    if (link.throttled && link.hold > 0) wait_until(passed, was_stopped);
  };
  UnderWay& at = carried_[planned.channel];
  at.since.store(now(), std::memory_order_relaxed);
  at.number.store(transfer, std::memory_order_release);
  guarded(graph_->producer(what.tensor), carry_it, &what);
  at.number.store(kNoneRuns, std::memory_order_release);
}

void StepProgram::guard_transfer(TransferId transfer, const std::function<void()>& body) {
  const Transfer& what = transfers_[transfer];
  guarded(graph_->producer(what.tensor), body, &what);
}

template <class Body>
void StepProgram::guarded(OpId op, const Body& body, const Transfer* sent) {
  const auto failed = [&](Failure::Kind kind, const std::string& why) {
    const DeviceId device = sent == nullptr ? plan_.ops[op].device : sent->to;
    stop({kind, fmt::format("{}op '{}' ({}) {} device '{}': {}",
                            sent == nullptr ? "" : "the result of ", graph_->op_name(op),
                            graph_->type(op), sent == nullptr ? "on" : "on its way to",
                            machine_.cluster().device(device).name, why)});
  };
  try {
    body();
  } catch (const OutOfMemory& memory) {
    failed(Failure::Kind::kMemory,
           fmt::format("memory runs out: {} more than the {} of {} that are held",
                       format_bytes(memory.wanted), format_bytes(memory.held),
                       format_bytes(memory.limit)));
  } catch (const c10::OutOfMemoryError& error) {
    failed(Failure::Kind::kMemory, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    failed(Failure::Kind::kMemory, "the machine's memory runs out");
  } catch (const c10::Error& error) {
    failed(Failure::Kind::kOp, error.what_without_backtrace());
  } catch (const std::exception& error) {
    failed(Failure::Kind::kOp, error.what());
  }
}

void StepProgram::stop(Failure failure) {
  if (give_up(failure) && ranks_) ranks_->failed(failure);
}

bool StepProgram::give_up(Failure failure) {
  bool first = false;
  {
    const std::lock_guard lock(failure_mutex_);
    first = !failure_;
    if (first) failure_ = std::move(failure);
  }
  stopped_ = true;
  for (Signal& signal : signals_) signal.notify();
  return first;
}

}  // namespace emplace::exec

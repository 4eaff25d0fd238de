// One graph under one placement, executed step by step.
//
// Every op counts what it still waits for. Whoever brings the last of it, a device that finished an
// op or a channel that carried a tensor, puts the op into its device's queue, where the device
// takes the ops in the simulator's order; views take no time and are done at once. A tensor is
// freed when the last op or transfer that reads it is through. A failure stops all threads between
// two ops. What is on GPUs is launched in a fixed order (exec/gpu_parts.h). Where there are other
// ranks, only this one's devices are executed (exec/rank_parts.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/compiled_op.h"
#include "exec/gpu_parts.h"
#include "exec/machine.h"
#include "exec/overwrite.h"
#include "exec/rank_parts.h"
#include "exec/ready_queue.h"
#include "exec/runtime.h"
#include "exec/sources.h"
#include "exec/step_plan.h"

namespace emplace::exec {

// How an op becomes something to run; tests bring ops of known length.
using OpCompiler = std::function<CompiledOp(const Graph&, OpId, const OpTarget&)>;

class StepProgram final : public Program,
                          private StepHost,
                          public std::enable_shared_from_this<StepProgram> {
 public:
  StepProgram(Machine& machine, std::shared_ptr<const Graph> graph, const Placement& placement,
              const ProgramOptions& options, const SourceValue& sources,
              const OpCompiler& compiler = compile_op, Ranks* ranks = nullptr);
  ~StepProgram() override;
  // With other ranks, before the first step: all have loaded their parts, or all throw the Error of
  // one. `mine`: why this rank has none.
  static void join(Ranks& ranks, StepProgram* program, const std::optional<Error>& mine);

  StepRecord step() override;
  const std::vector<Transfer>& transfers() const override { return transfers_; }
  std::vector<MemoryRecord> memory() const override;
  std::vector<std::string> slow_types() const override { return slow_types_; }
  void set_deadline(Nanoseconds time) override { deadline_ = time; }

  // Contents of a source where it is placed; an update changes them.
  Tensor source(TensorId tensor) const;
  // Every tensor that ops make is also kept here, by tensor, until the next step.
  void watch(std::vector<Tensor>* results) { watched_ = results; }
  // How many ops of the last step wrote over an input. Of parts on GPUs that are launched as
  // graphs: while they were recorded.
  std::int64_t num_overwritten() const { return num_overwritten_; }

 private:
  const Graph& graph() const override { return *graph_; }
  const StepPlan& plan() const override { return plan_; }
  torch::ScalarType type_of(TensorId tensor) const override {
    return scalar_type(graph_->dtype(tensor), target_);
  }
  std::int64_t step_number() const override { return num_steps_; }
  std::vector<Tensor>& values() override { return values_; }
  void execute(OpId op, const Clock& clock) override;
  bool wait_for(OpId op) override;
  void send(TransferId transfer) override;
  void arrived(CopyId copy) override;
  void followed(OpId op) override;
  void preceded(OpId op) override;
  void set_time(OpId op, const Interval& time) override;
  void set_temporary(OpId op, Bytes held) override;
  void guard(OpId op, const std::function<void()>& body) override { guarded(op, body); }
  void guard_transfer(TransferId transfer, const std::function<void()>& body) override;
  bool give_up(Failure failure) override;

  bool stopped() const override { return stopped_.load(std::memory_order_relaxed); }

  void find_gpus();
  // What a device or a channel is at now.
  struct UnderWay {
    std::atomic<std::int64_t> number{-1};  // or what none has
    std::atomic<Nanoseconds> since{0};
  };

  bool here(DeviceId device) const { return !ranks_ || ranks_->here(device); }
  bool on_gpu(DeviceId device) const { return gpus_ && gpus_->has(device); }
  // Memory of a copy that stays where it is.
  bool fixed(CopyId copy) const;
  void compile_ops(const OpCompiler& compiler);
  void load_sources(const SourceValue& sources);
  void load_source(OpId op, const SourceValue& sources);
  void reset();
  void run_device(DeviceId device);
  void wait_for_devices(Nanoseconds end);
  void wait_for_transfers(Nanoseconds end);
  bool is_late(Nanoseconds end);
  void give_up_on_devices();
  void drop_values();
  std::string say_what_hangs() const;
  template <class Kernel>
  void attended(OpId op, const Kernel& kernel);
  void begin(DeviceId device);
  OpId next_op(DeviceId device, std::int32_t done);
  void make_ready(OpId op);
  void complete(OpId op);
  void release(CopyId copy);
  bool overwrite_input(OpId op, Tensors& inputs, Tensors& outputs);
  void limit_gpus();
  void carry_over(TransferId transfer, Nanoseconds sent);
  // `sent`: what is done is to send the op's result.
  template <class Body>
  void guarded(OpId op, const Body& body, const Transfer* sent = nullptr);
  void stop(Failure failure);
  StepParts collect() const;
  StepRecord record_of(StepParts parts);

  Machine& machine_;
  std::shared_ptr<const Graph> graph_;
  ProgramOptions options_;
  OpTarget target_;
  StepPlan plan_;
  std::vector<Transfer> transfers_;
  std::int64_t number_;                // among those of all ranks
  std::vector<DeviceId> devices_;      // that are here
  std::unique_ptr<GpuParts> gpus_;     // nullptr: there are none
  std::vector<CompiledOp> compiled_;   // by op
  std::vector<Overwrite> overwrites_;  // by op; empty where it has none
  std::vector<std::string> slow_types_;

  std::vector<Tensor> values_;  // by copy
  std::vector<Tensors> kept_;   // by forward op
  std::vector<std::atomic<std::int32_t>> missing_;
  std::vector<std::atomic<std::int32_t>> uses_;
  std::vector<std::atomic<std::int32_t>> keeps_for_;
  std::vector<ReadyQueue> ready_;  // by device
  std::vector<Signal> signals_;    // by device
  std::vector<UnderWay> running_;  // by device: the op whose kernel runs there
  std::vector<UnderWay> carried_;  // by channel: the transfer that it carries
  Nanoseconds deadline_ = 0;
  std::vector<OpId> abandoned_;  // that were still running when the step was given up
  std::atomic<std::int64_t> next_place_{0};
  std::atomic<int> at_start_{0};
  Nanoseconds go_ = 0;  // when the step is to start; 0: at once
  std::atomic<Nanoseconds> started_{0};
  Signal start_;
  std::vector<Nanoseconds> passed_;  // by channel: when it was free again after the last transfer
  std::atomic<int> carrying_{0};
  std::atomic<bool> stopped_{false};
  mutable std::mutex failure_mutex_;
  std::optional<Failure> failure_;
  std::vector<Interval> op_times_;
  std::vector<Bytes> temporary_;  // by op
  std::vector<Bytes> written_;    // by op: the size of its results
  std::vector<Interval> transfer_times_;
  std::vector<Nanoseconds> ended_;    // by device
  std::vector<MemoryRecord> memory_;  // by device, of all ranks
  std::atomic<std::int64_t> num_overwritten_{0};
  std::int64_t num_steps_ = 0;
  std::vector<Tensor>* watched_ = nullptr;
  // nullptr: all devices are here. The last, as others call it.
  std::unique_ptr<RankParts> ranks_;
};

}  // namespace emplace::exec

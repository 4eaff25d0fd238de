// exec/gpu_parts.h with CUDA.
//
// A GPU's ops are launched by its thread into one stream, in a fixed order, so that only what comes
// from other devices has to be waited for. The first step launches them one by one, which makes
// libraries ready; the second records each segment as a CUDA graph, and from then on segments are
// launched as a whole. Inside of a graph, an event says that a tensor is ready to be sent, so that
// sending needs no cut. Every channel has a stream of its own: it waits for that event, copies, and
// notes an event for the receiver. Tensors that arrive have fixed places, and those that are sent
// are not overwritten within a step.
#include "exec/gpu_parts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/cuda/CUDAGraph.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "exec/channel.h"
#include "exec/clock.h"
#include "exec/compiled_op.h"
#include "exec/random.h"
#include "exec/segments.h"

namespace emplace::exec {
namespace {

class CudaEvent {
 public:
  explicit CudaEvent(unsigned flags = cudaEventDisableTiming) {
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};
using EventPtr = std::unique_ptr<CudaEvent>;

// Replaying through libtorch would also set the seeds of its random numbers, which nothing here
// uses.
class StepGraph : public at::cuda::CUDAGraph {
 public:
  void launch(cudaStream_t stream) { C10_CUDA_CHECK(cudaGraphLaunch(graph_exec_, stream)); }
};

// Ends also where something fails, or the stream could not be used again.
class Capture {
 public:
  Capture(StepGraph& graph, at::cuda::MempoolId_t pool) : graph_(graph) {
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  }
  ~Capture() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
      graph_.capture_end();
      return;
    }
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {
      // The first failure is the one that is said.
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  StepGraph& graph_;
  int exceptions_ = std::uncaught_exceptions();
};

struct PlannedSegment {
  Segment segment;
  std::unique_ptr<StepGraph> graph;  // nullptr: not recorded, or nothing but views
};

// Libraries keep memory for every stream that they have worked in, so all programs share one.
c10::cuda::CUDAStream compute_stream(int cuda) {
  static std::mutex mutex;
  static std::map<int, c10::cuda::CUDAStream> streams;
  const std::lock_guard lock(mutex);
  const auto found = streams.find(cuda);
  if (found != streams.end()) return found->second;
  const auto index = static_cast<c10::DeviceIndex>(cuda);
  const auto made = c10::cuda::getStreamFromPool(/*isHighPriority=*/true, index);
  return streams.emplace(cuda, made).first->second;
}

// What cuBLAS and the like have held on to since their first use, by any program.
std::atomic<Bytes>& library_bytes(int cuda) {
  static std::mutex mutex;
  static std::map<int, std::atomic<Bytes>> bytes;
  const std::lock_guard lock(mutex);
  return bytes[cuda];
}

struct GpuPart {
  int cuda = -1;
  std::optional<c10::cuda::CUDAStream> stream;
  std::vector<PlannedSegment> segments;
  Clock clock;
  at::cuda::MempoolId_t pool = {0, 0};
  std::map<CopyId, Tensor> held;     // what is sent or looked at after the step, as recorded
  std::unique_ptr<Channel> watcher;  // waits for ops that others come after
  std::atomic<int> watched{0};
  Bytes of_others = 0;  // allocated before the first step, but not by this program's tensors
};

class CudaParts final : public GpuParts {
 public:
  CudaParts(StepHost& host, const std::vector<int>& cuda_of_device, const ProgramOptions& options)
      : host_(host), options_(options), parts_(cuda_of_device.size()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (cuda_of_device[i] < 0) continue;
      parts_[i] = std::make_unique<GpuPart>();
      GpuPart& part = *parts_[i];
      part.cuda = cuda_of_device[i];
      const auto index = static_cast<c10::DeviceIndex>(part.cuda);
      // With the first tensor, libtorch gets ready to use the GPU.
      torch::zeros({1}, torch::Device(torch::kCUDA, index));
      part.stream = compute_stream(part.cuda);
      c10::cuda::CUDACachingAllocator::resetPeakStats(index);
    }
  }

  ~CudaParts() override {
    for (auto& part : parts_) {
      if (!part) continue;
      part->watcher.reset();
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(part->cuda));
      cudaDeviceSynchronize();
    }
  }

  bool has(DeviceId device) const override { return parts_[device] != nullptr; }

  torch::Device torch_device(DeviceId device) const override {
    return {torch::kCUDA, static_cast<c10::DeviceIndex>(parts_[device]->cuda)};
  }

  void prepare() override;
  void run(DeviceId device) override;
  void end_step() override;
  void wait_for_result(TransferId transfer) override;
  void carry(TransferId transfer, const std::function<void()>& arrived) override;

  MemoryRecord memory(DeviceId device) const override {
    const auto index = static_cast<c10::DeviceIndex>(parts_[device]->cuda);
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index);
    const Bytes peak = stats.allocated_bytes[0].peak - library_bytes(parts_[device]->cuda);
    const Bytes reserved = stats.reserved_bytes[0].peak;
    return {.peak = peak, .cached = std::max<Bytes>(0, reserved - peak)};
  }

 private:
  void launch_each(GpuPart& part);
  void launch_timed(GpuPart& part);
  void launch_weighed(GpuPart& part);
  static Bytes allocated(const GpuPart& part);
  Bytes held_by_tensors(DeviceId device);
  void record(GpuPart& part);
  void hold(GpuPart& part, OpId op);
  void launch_graphs(GpuPart& part);
  bool wait_for_others(GpuPart& part, const Segment& segment);
  void after_launch(GpuPart& part, const Segment& segment);
  bool execute(GpuPart& part, OpId op);
  void mark_sends(GpuPart& part, OpId op, unsigned flags);
  void follow(GpuPart& part, OpId op);
  CudaEvent& event(std::map<std::uint32_t, EventPtr>& events, std::uint32_t key);
  c10::cuda::CUDAStream copy_stream(ChannelId channel, int cuda);

  StepHost& host_;
  ProgramOptions options_;
  std::vector<std::unique_ptr<GpuPart>> parts_;  // by device
  std::mutex mutex_;
  std::map<std::uint32_t, EventPtr> made_;     // by op: its results are there
  std::map<std::uint32_t, EventPtr> arrived_;  // by transfer
  std::map<std::pair<ChannelId, int>, c10::cuda::CUDAStream> copy_streams_;
};

void CudaParts::prepare() {
  const StepPlan& plan = host_.plan();
  for (TransferId i = 0; i < plan.transfers.size(); ++i) {
    const CopyId copy = plan.transfers[i].to;
    const DeviceId device = plan.copies[copy].device;
    if (!has(device)) continue;
    const c10::cuda::CUDAGuard guard(torch_device(device));
    const TensorId tensor = plan.copies[copy].tensor;
    const auto shape = host_.graph().shape(tensor);
    host_.values()[copy] =
        torch::zeros(Integers(shape.begin(), shape.end()),
                     torch::TensorOptions(host_.type_of(tensor)).device(torch_device(device)));
    event(arrived_, i);
  }
  for (DeviceId device = 0; device < parts_.size(); ++device) {
    if (!has(device)) continue;
    const c10::cuda::CUDAGuard guard(torch_device(device));
    GpuPart& part = *parts_[device];
    for (Segment& segment : cut_segments(host_.graph(), plan, device, options_.order)) {
      for (const OpId op : segment.ops) event(made_, op);
      part.segments.push_back({std::move(segment), nullptr});
    }
    const auto there = torch::TensorOptions(torch_device(device));
    part.clock = {.number = torch::zeros({}, there.dtype(torch::kFloat)),
                  .key = torch::zeros({2}, there.dtype(torch::kInt))};
    part.pool = at::cuda::graph_pool_handle();
    part.watcher = std::make_unique<Channel>(std::vector<int>{}, Patience::kSleep);
    C10_CUDA_CHECK(cudaDeviceSynchronize());
  }
}

CudaEvent& CudaParts::event(std::map<std::uint32_t, EventPtr>& events, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  EventPtr& found = events[key];
  if (!found) found = std::make_unique<CudaEvent>();
  return *found;
}

c10::cuda::CUDAStream CudaParts::copy_stream(ChannelId channel, int cuda) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(channel, cuda);
  const auto found = copy_streams_.find(key);
  if (found != copy_streams_.end()) return found->second;
  const auto made = c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(cuda));
  return copy_streams_.emplace(key, made).first->second;
}

void CudaParts::run(DeviceId device) {
  GpuPart& part = *parts_[device];
  const c10::cuda::CUDAStreamGuard guard(*part.stream);
  // What fails outside of an op is said of the first.
  const std::vector<OpId>& first = part.segments.front().segment.ops;
  const OpId any = first.empty() ? OpId{0} : first.front();
  host_.guard(any, [&] {
    set_clock(part.clock, host_.step_number());
    const bool first_step = host_.step_number() == 0;
    if (first_step) part.of_others = allocated(part) - held_by_tensors(device);
    if (options_.gpu_launch == GpuLaunch::kTimed && !first_step) {
      host_.step_number() == 1 ? launch_weighed(part) : launch_timed(part);
    } else if (options_.gpu_launch == GpuLaunch::kEach || first_step) {
      launch_each(part);
    } else {
      if (host_.step_number() == 1) record(part);
      if (!host_.stopped()) launch_graphs(part);
    }
    C10_CUDA_CHECK(cudaStreamSynchronize(part.stream->stream()));
    while (part.watched > 0) std::this_thread::yield();
  });
}

// Libraries take what they need with the first step.
void CudaParts::end_step() {
  if (host_.step_number() != 0 || host_.stopped()) return;
  for (DeviceId device = 0; device < parts_.size(); ++device) {
    if (!has(device)) continue;
    const GpuPart& part = *parts_[device];
    const Bytes of_others = allocated(part) - held_by_tensors(device);
    library_bytes(part.cuda) += std::max<Bytes>(0, of_others - part.of_others);
  }
}

// In blocks, as they are allocated.
Bytes CudaParts::held_by_tensors(DeviceId device) {
  constexpr Bytes kBlock = 512;
  std::map<const void*, Bytes> bytes;
  const StepPlan& plan = host_.plan();
  for (CopyId copy = 0; copy < plan.copies.size(); ++copy) {
    if (plan.copies[copy].device != device || !host_.values()[copy].defined()) continue;
    const auto& storage = host_.values()[copy].storage();
    bytes[storage.unsafeGetStorageImpl()] = static_cast<Bytes>(storage.nbytes());
  }
  Bytes sum = 0;
  for (const auto& [block, size] : bytes) sum += (size + kBlock - 1) / kBlock * kBlock;
  return sum;
}

Bytes CudaParts::allocated(const GpuPart& part) {
  const auto index = static_cast<c10::DeviceIndex>(part.cuda);
  return c10::cuda::CUDACachingAllocator::getDeviceStats(index).allocated_bytes[0].current;
}

// Each op with the memory that it needs on the way.
void CudaParts::launch_weighed(GpuPart& part) {
  const auto index = static_cast<c10::DeviceIndex>(part.cuda);
  for (const PlannedSegment& planned : part.segments) {
    if (!wait_for_others(part, planned.segment)) return;
    for (const OpId op : planned.segment.ops) {
      c10::cuda::CUDACachingAllocator::resetPeakStats(index);
      const Bytes before = allocated(part);
      if (!execute(part, op)) return;
      const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index);
      host_.set_temporary(op, stats.allocated_bytes[0].peak - before);
      mark_sends(part, op, cudaEventRecordDefault);
    }
    after_launch(part, planned.segment);
  }
}

bool CudaParts::execute(GpuPart& part, OpId op) {
  host_.guard(op, [&] { host_.execute(op, part.clock); });
  return !host_.stopped();
}

void CudaParts::mark_sends(GpuPart& part, OpId op, unsigned flags) {
  bool sent = false;
  for (const CopyId copy : host_.plan().ops[op].outputs) {
    sent = sent || !host_.plan().copies[copy].sends.empty();
  }
  const PlannedOp& planned = host_.plan().ops[op];
  for (const OpId follower : planned.followers) {
    sent = sent || host_.plan().ops[follower].device != planned.device;
  }
  if (!sent) return;
  C10_CUDA_CHECK(cudaEventRecordWithFlags(event(made_, op).get(), part.stream->stream(), flags));
}

// What arrives is in the copy stream's order; the compute stream waits for it there.
bool CudaParts::wait_for_others(GpuPart& part, const Segment& segment) {
  for (const OpId op : segment.waits) {
    if (!host_.wait_for(op)) return false;
  }
  for (const TransferId transfer : segment.arrivals) {
    C10_CUDA_CHECK(cudaStreamWaitEvent(part.stream->stream(), event(arrived_, transfer).get(), 0));
  }
  return true;
}

void CudaParts::after_launch(GpuPart& part, const Segment& segment) {
  for (const TransferId transfer : segment.sends) host_.send(transfer);
  for (const OpId op : segment.followed) follow(part, op);
}

// Ops elsewhere may come after it when it has been executed, not when it has been launched.
void CudaParts::follow(GpuPart& part, OpId op) {
  ++part.watched;
  part.watcher->post([this, &part, op] {
    host_.guard(op, [&] { C10_CUDA_CHECK(cudaEventSynchronize(event(made_, op).get())); });
    host_.followed(op);
    --part.watched;
  });
}

void CudaParts::launch_each(GpuPart& part) {
  for (const PlannedSegment& planned : part.segments) {
    if (!wait_for_others(part, planned.segment)) return;
    for (const OpId op : planned.segment.ops) {
      if (!execute(part, op)) return;
      mark_sends(part, op, cudaEventRecordDefault);
    }
    after_launch(part, planned.segment);
  }
}

// Events lie between ops, some ops at a time behind a kernel that only waits, so that the host is
// ahead of the GPU. What the events themselves take is measured beside, and subtracted.
void CudaParts::launch_timed(GpuPart& part) {
  constexpr std::size_t kAtOnce = 48;
  constexpr std::int64_t kCycles = 4'000'000;  // some milliseconds
  std::vector<OpId> timed;
  std::vector<EventPtr> events;
  const cudaStream_t stream = part.stream->stream();
  const auto mark = [&] {
    events.push_back(std::make_unique<CudaEvent>(cudaEventDefault));
    C10_CUDA_CHECK(cudaEventRecord(events.back()->get(), stream));
  };
  const auto between = [&](std::size_t i) {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events[i]->get(), events[i + 1]->get()));
    return static_cast<double>(milliseconds) * 1e6;
  };
  const auto begin = [&] {
    events.clear();
    timed.clear();
    at::cuda::sleep(kCycles);
    mark();
    mark();
  };
  double at = 0;
  const auto end = [&] {
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    const double empty = between(0);
    for (std::size_t i = 0; i < timed.size(); ++i) {
      const double length = std::max(1.0, between(i + 1) - empty);
      host_.set_time(timed[i],
                     {static_cast<Nanoseconds>(at), static_cast<Nanoseconds>(at + length)});
      at += length;
    }
  };
  begin();
  for (const PlannedSegment& planned : part.segments) {
    if (!wait_for_others(part, planned.segment)) return;
    for (const OpId op : planned.segment.ops) {
      if (!execute(part, op)) return;
      mark_sends(part, op, cudaEventRecordDefault);
      if (host_.graph().is_view(op)) continue;
      timed.push_back(op);
      mark();
      if (timed.size() < kAtOnce) continue;
      end();
      begin();
    }
    after_launch(part, planned.segment);
  }
  end();
}

void CudaParts::record(GpuPart& part) {
  C10_CUDA_CHECK(cudaStreamSynchronize(part.stream->stream()));
  // Nothing can be given back while a graph is recorded, and graphs have memory of their own.
  c10::cuda::CUDACachingAllocator::emptyCache();
  for (PlannedSegment& planned : part.segments) {
    const auto& ops = planned.segment.ops;
    const bool real =
        std::any_of(ops.begin(), ops.end(), [&](OpId op) { return !host_.graph().is_view(op); });
    if (!real) {
      for (const OpId op : ops) {
        if (!execute(part, op)) return;
        hold(part, op);
      }
      continue;
    }
    planned.graph = std::make_unique<StepGraph>();
    const Capture capture(*planned.graph, part.pool);
    for (const OpId op : ops) {
      if (!execute(part, op)) return;
      mark_sends(part, op, cudaEventRecordExternal);
      hold(part, op);
    }
  }
}

// What is sent or looked at after the step stays as it was recorded.
void CudaParts::hold(GpuPart& part, OpId op) {
  const auto& losses = host_.plan().losses;
  for (const CopyId copy : host_.plan().ops[op].outputs) {
    const bool looked_at = std::find(losses.begin(), losses.end(), copy) != losses.end();
    const bool sent = !host_.plan().copies[copy].sends.empty();
    if (sent || looked_at) part.held[copy] = host_.values()[copy];
  }
}

void CudaParts::launch_graphs(GpuPart& part) {
  for (const auto& [copy, tensor] : part.held) host_.values()[copy] = tensor;
  for (PlannedSegment& planned : part.segments) {
    if (!wait_for_others(part, planned.segment)) return;
    if (planned.graph) {
      planned.graph->launch(part.stream->stream());
    } else {
      for (const OpId op : planned.segment.ops) mark_sends(part, op, cudaEventRecordDefault);
    }
    after_launch(part, planned.segment);
  }
}

void CudaParts::wait_for_result(TransferId transfer) {
  const StepPlan& plan = host_.plan();
  const TensorCopy& copy = plan.copies[plan.transfers[transfer].from];
  const OpId producer = host_.graph().producer(copy.tensor);
  if (!has(copy.device) || host_.graph().is_source(producer)) return;
  C10_CUDA_CHECK(cudaEventSynchronize(event(made_, producer).get()));
}

void CudaParts::carry(TransferId transfer, const std::function<void()>& arrived) {
  const StepPlan& plan = host_.plan();
  const PlannedTransfer& planned = plan.transfers[transfer];
  const DeviceId from = plan.copies[planned.from].device;
  const DeviceId to = plan.copies[planned.to].device;
  const int cuda = has(to) ? parts_[to]->cuda : parts_[from]->cuda;
  const c10::cuda::CUDAStream stream = copy_stream(planned.channel, cuda);
  const c10::cuda::CUDAStreamGuard guard(stream);
  const OpId producer = host_.graph().producer(plan.copies[planned.to].tensor);
  if (has(from) && !host_.graph().is_source(producer)) {
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event(made_, producer).get(), 0));
  }
  const Tensor source = host_.values()[planned.from].contiguous();
  Tensor& copy = host_.values()[planned.to];
  if (!has(to)) copy = torch::empty(source.sizes(), source.options().device(torch::kCPU));
  C10_CUDA_CHECK(cudaMemcpyAsync(copy.data_ptr(), source.data_ptr(),
                                 static_cast<std::size_t>(source.nbytes()), cudaMemcpyDefault,
                                 stream.stream()));
  if (has(to)) {
    C10_CUDA_CHECK(cudaEventRecord(event(arrived_, transfer).get(), stream.stream()));
    arrived();
    C10_CUDA_CHECK(cudaStreamSynchronize(stream.stream()));
    return;
  }
  C10_CUDA_CHECK(cudaStreamSynchronize(stream.stream()));
  arrived();
}

}  // namespace

std::unique_ptr<GpuParts> make_gpu_parts(StepHost& host, const std::vector<int>& cuda_of_device,
                                         const ProgramOptions& options) {
  return std::make_unique<CudaParts>(host, cuda_of_device, options);
}

}  // namespace emplace::exec

// The other side of exec/runtime.h, in the library that links libtorch.
#include <algorithm>
#include <future>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/error.h"

#include "exec/clock.h"
#include "exec/gpu_parts.h"
#include "exec/machine.h"
#include "exec/program.h"
#include "exec/ranks.h"
#include "exec/runtime.h"
#include "exec/sources.h"

namespace emplace::exec {
namespace {

// An op that is left alone when a step is given up keeps the program for itself.
class SharedProgram final : public Program {
 public:
  explicit SharedProgram(std::shared_ptr<StepProgram> program) : program_(std::move(program)) {}

  StepRecord step() override { return program_->step(); }
  const std::vector<Transfer>& transfers() const override { return program_->transfers(); }
  std::vector<MemoryRecord> memory() const override { return program_->memory(); }
  std::vector<std::string> slow_types() const override { return program_->slow_types(); }
  void set_deadline(Nanoseconds time) override { program_->set_deadline(time); }

 private:
  std::shared_ptr<StepProgram> program_;
};

class LocalRuntime final : public Runtime {
 public:
  LocalRuntime(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options) {
    if (options.peers == nullptr) {
      machine_ = std::make_unique<Machine>(std::move(cluster), options);
      warnings_ = machine_->warnings();
    } else {
      start_on_ranks(std::move(cluster), options);
    }
  }

  std::unique_ptr<Program> load(std::shared_ptr<const Graph> graph, const Placement& placement,
                                const ProgramOptions& options) override {
    std::shared_ptr<StepProgram> program;
    std::optional<Error> error;
    try {
      program = std::make_shared<StepProgram>(
          *machine_, std::move(graph), placement, options,
          training_sources(options.seed, {.seed = options.seed}), compile_op, ranks_.get());
    } catch (const Error& thrown) {
      if (!ranks_) throw;
      error = thrown;
    }
    if (ranks_) StepProgram::join(*ranks_, program.get(), error);
    return std::make_unique<SharedProgram>(std::move(program));
  }

  Nanoseconds send(DeviceId from, DeviceId to, Bytes bytes) override {
    EMPLACE_CHECK(!ranks_);
    const Link* link = machine_->cluster().link(from, to);
    if (link == nullptr) return 0;
    const auto floats = std::max<std::int64_t>(1, bytes / static_cast<Bytes>(sizeof(float)));
    const torch::Tensor tensor = torch::ones({floats});
    flush_caches();
    std::promise<Nanoseconds> took;
    machine_->channel(link->channel).post([&] {
      try {
        const Nanoseconds start = now();
        carry(tensor, to, *link, start, [this] { return machine_->cancelled(); });
        took.set_value(now() - start);
      } catch (const OutOfMemory&) {
        took.set_value(0);
      } catch (...) {
        took.set_exception(std::current_exception());
      }
    });
    return took.get_future().get();
  }

  std::vector<std::string> warnings() const override { return warnings_; }

 private:
  // A rank that cannot start is one for all.
  void start_on_ranks(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options) {
    try {
      ranks_ = std::make_unique<Ranks>(*options.peers, cluster);
      const std::vector<DevicePlace> places = ranks_->places();
      std::optional<Error> error;
      try {
        machine_ = std::make_unique<Machine>(std::move(cluster), options, places);
      } catch (const Error& thrown) {
        error = thrown;
      }
      ranks_->share_error(error);
      warnings_ = ranks_->gather_lines(machine_->warnings());
    } catch (const RankLost& lost) {
      fail(ErrorKind::kSystem, "{}", lost.text);
    }
  }

  // A tensor that is sent has just been written, but rarely right before: other ops' came between.
  void flush_caches() {
    constexpr std::int64_t kFloats = std::int64_t{64} << 20 >> 2;
    if (!flush_.defined()) flush_ = torch::zeros({kFloats});
    flush_.add_(1);
  }

  std::unique_ptr<Ranks> ranks_;  // nullptr: all devices are here
  std::unique_ptr<Machine> machine_;
  std::vector<std::string> warnings_;
  torch::Tensor flush_;
};

class TorchBackend final : public Backend {
 public:
  std::unique_ptr<Runtime> start(std::shared_ptr<const Cluster> cluster,
                                 const RuntimeOptions& options) const override {
    return std::make_unique<LocalRuntime>(std::move(cluster), options);
  }
  std::vector<LocalGpu> gpus() const override { return cuda_gpus(); }
};

}  // namespace
}  // namespace emplace::exec

extern "C" const emplace::exec::Backend* emplace_exec_backend();
extern "C" const emplace::exec::Backend* emplace_exec_backend() {
  static const emplace::exec::TorchBackend backend;
  return &backend;
}

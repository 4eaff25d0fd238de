// The other side of exec/runtime.h, in the library that links libtorch.
#include <memory>

#include "exec/clock.h"
#include "exec/gpu_parts.h"
#include "exec/machine.h"
#include "exec/program.h"
#include "exec/runtime.h"
#include "exec/sources.h"

namespace emplace::exec {
namespace {

class LocalRuntime final : public Runtime {
 public:
  LocalRuntime(std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options)
      : machine_(std::move(cluster), options) {}

  std::unique_ptr<Program> load(std::shared_ptr<const Graph> graph, const Placement& placement,
                                const ProgramOptions& options) override {
    return std::make_unique<StepProgram>(machine_, std::move(graph), placement, options,
                                         training_sources(options.seed, {.seed = options.seed}));
  }

  Nanoseconds send(DeviceId from, DeviceId to, Bytes bytes) override {
    const Link* link = machine_.cluster().link(from, to);
    if (link == nullptr) return 0;
    const auto floats = std::max<std::int64_t>(1, bytes / static_cast<Bytes>(sizeof(float)));
    torch::Tensor tensor;
    machine_.device(from).post([&] { tensor = torch::ones({floats}); });
    machine_.device(from).wait();
    flush_caches();
    std::atomic<Nanoseconds> took{-1};
    Signal done;
    machine_.channel(link->channel).post([&] {
      const Nanoseconds start = now();
      carry(tensor, to, *link);
      took = now() - start;
      done.notify();
    });
    done.wait(Patience::kSleep, [&] { return took.load() >= 0; });
    return took;
  }

  std::vector<std::string> warnings() const override { return machine_.warnings(); }

 private:
  // A tensor that is sent has just been written, but rarely right before: other ops' came between.
  void flush_caches() {
    constexpr std::int64_t kFloats = std::int64_t{64} << 20 >> 2;
    if (!flush_.defined()) flush_ = torch::zeros({kFloats});
    flush_.add_(1);
  }

  Machine machine_;
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

// The other side of exec/runtime.h, in the library that links libtorch.
#include <algorithm>
#include <future>
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
    const torch::Tensor tensor = torch::ones({floats});
    flush_caches();
    std::promise<Nanoseconds> took;
    machine_.channel(link->channel).post([&] {
      try {
        const Nanoseconds start = now();
        carry(tensor, to, *link);
        took.set_value(now() - start);
      } catch (const OutOfMemory&) {
        took.set_value(0);
      } catch (...) {
        took.set_exception(std::current_exception());
      }
    });
    return took.get_future().get();
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

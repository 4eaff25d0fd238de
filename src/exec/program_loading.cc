// How a program gets onto its devices: what is there to do, kernels for it, and parameters.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"

#include "exec/program.h"
#include "exec/segments.h"

namespace emplace::exec {
namespace {

OpTarget target_of(const Graph& graph, const ProgramOptions& options) {
  OpTarget target{.seed = options.seed};
  target.real = options.numbers == Numbers::kFloat64 ? torch::kDouble : torch::kFloat;
  target.narrow = options.numbers == Numbers::kOwn ? torch::kBFloat16 : target.real;
  for (OpId op = 0; op < graph.num_ops() && !target.training; ++op) {
    target.training = graph.phase(op) == Phase::kBackward;
  }
  return target;
}

void require_shapes(const Graph& graph) {
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    if (graph.has_shape(tensor)) continue;
    fail_input(
        "op '{}': its result is known by its bytes alone, so it can only be simulated; expected a "
        "shape and a dtype",
        graph.op_name(graph.producer(tensor)));
  }
}

}  // namespace

StepProgram::StepProgram(Machine& machine, std::shared_ptr<const Graph> graph,
                         const Placement& placement, const ProgramOptions& options,
                         const SourceValue& sources, const OpCompiler& compiler, Ranks* ranks)
    : machine_(machine),
      graph_(std::move(graph)),
      options_(options),
      target_(target_of(*graph_, options)),
      number_(ranks == nullptr ? 0 : ranks->next_program()),
      kept_(graph_->num_ops()),
      missing_(graph_->num_ops()),
      keeps_for_(graph_->num_ops()),
      ready_(machine.num_devices()),
      signals_(machine.num_devices()),
      running_(machine.num_devices()),
      carried_(machine.cluster().num_channels()),
      passed_(machine.cluster().num_channels(), 0),
      op_times_(graph_->num_ops()),
      temporary_(graph_->num_ops(), 0),
      written_(graph_->num_ops(), 0),
      ended_(machine.num_devices(), 0) {
  require_shapes(*graph_);
  plan_ = plan_step(*graph_, machine.cluster(), placement,
                    [&](OpId op) { return keeper_of(*graph_, op); });
  values_.resize(plan_.copies.size());
  uses_ = std::vector<std::atomic<std::int32_t>>(plan_.copies.size());
  if (ranks != nullptr) {
    StepHost& host = *this;
    ranks_ = std::make_unique<RankParts>(host, machine, *ranks, number_);
  }
  for (DeviceId id = 0; id < machine.num_devices(); ++id) {
    if (here(id)) devices_.push_back(id);
  }
  find_gpus();
  compile_ops(compiler);
  for (const PlannedTransfer& transfer : plan_.transfers) {
    const TensorCopy& to = plan_.copies[transfer.to];
    const auto size = static_cast<Bytes>(c10::elementSize(type_of(to.tensor)));
    transfers_.push_back({to.tensor, plan_.copies[transfer.from].device, to.device,
                          size * count_elements(graph_->shape(to.tensor))});
  }
  transfer_times_.resize(plan_.transfers.size());
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    for (const TensorId tensor : graph_->outputs(op)) {
      if (!graph_->is_view(op)) written_[op] += graph_->memory_bytes(tensor);
    }
  }
  load_sources(sources);
  if (ranks_ && !stopped()) ranks_->prepare();
  // What loading needed on the way does not count.
  machine_.memory().begin();
  if (gpus_) guard(OpId{0}, [&] { gpus_->prepare(); });
}

void StepProgram::find_gpus() {
  const std::vector<int>& cuda = machine_.cuda_of_device();
  if (std::all_of(cuda.begin(), cuda.end(), [](int index) { return index < 0; })) return;
  gpus_ = make_gpu_parts(*this, cuda, options_);
  for (const DeviceId device : devices_) {
    if (on_gpu(device)) wait_for_others_alone(*graph_, device, plan_);
  }
}

void StepProgram::compile_ops(const OpCompiler& compiler) {
  compiled_.resize(graph_->num_ops());
  overwrites_.resize(graph_->num_ops());
  std::set<std::string> slow;
  for (OpId op = 0; op < graph_->num_ops(); ++op) {
    const DeviceId device = plan_.ops[op].device;
    if (graph_->is_source(op) || !here(device)) continue;
    OpTarget target = target_;
    if (on_gpu(device)) target.device = gpus_->torch_device(device);
    compiled_[op] = compiler(*graph_, op, target);
    if (!compiled_[op].native) slow.emplace(graph_->type(op));
    overwrites_[op] = overwrite_kernel(*graph_, op, options_.in_place);
  }
  slow_types_.assign(slow.begin(), slow.end());
}

// Each device for itself: memory is near the core that writes it first.
void StepProgram::load_sources(const SourceValue& sources) {
  std::vector<std::exception_ptr> errors(machine_.num_devices());
  for (const DeviceId device : devices_) {
    machine_.device(device).post([&, device] {
      for (OpId op = 0; op < graph_->num_ops() && !stopped(); ++op) {
        if (!graph_->is_source(op) || plan_.ops[op].device != device) continue;
        try {
          load_source(op, sources);
        } catch (const OutOfMemory&) {
          guard(op, [] { throw; });  // is what the first step says
        } catch (const c10::OutOfMemoryError&) {
          guard(op, [] { throw; });
        } catch (...) {
          errors[device] = std::current_exception();
          return;
        }
      }
    });
  }
  for (const DeviceId device : devices_) machine_.device(device).wait();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void StepProgram::load_source(OpId op, const SourceValue& sources) {
  const std::vector<CopyId>& outputs = plan_.ops[op].outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const torch::ScalarType type = scalar_type(graph_->dtype(graph_->outputs(op)[i]), target_);
    with_context(fmt::format("op '{}'", graph_->op_name(op)), [&] {
      try {
        const DeviceId device = plan_.ops[op].device;
        const auto where = on_gpu(device) ? gpus_->torch_device(device) : torch::kCPU;
        values_[outputs[i]] = sources(*graph_, op, i).to(where, type).contiguous();
      } catch (const c10::OutOfMemoryError&) {
        throw;
      } catch (const c10::Error& error) {
        fail(ErrorKind::kSystem, "{}", error.what_without_backtrace());
      }
    });
  }
}

Tensor StepProgram::source(TensorId tensor) const {
  const OpId op = graph_->producer(tensor);
  EMPLACE_CHECK(graph_->is_source(op));
  for (const CopyId copy : plan_.ops[op].outputs) {
    if (plan_.copies[copy].tensor == tensor) return values_[copy];
  }
  return {};
}

}  // namespace emplace::exec

#include "interpreter/interpreter.h"

#include <exception>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

class Interpreter {
 public:
  Interpreter(const Graph& graph, const SourceValue& sources, const InterpretOptions& options)
      : graph_(graph),
        sources_(sources),
        options_(options),
        values_(graph.num_tensors()),
        kept_(graph.num_ops()) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      options_.target.training |= graph.phase(op) == Phase::kBackward;
    }
  }

  Tensors run() && {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      const bool update = graph_.phase(op) == Phase::kUpdate;
      if (graph_.is_source(op)) {
        take(op);
      } else if (!update) {
        // What gradients compute is not differentiated again.
        const torch::AutoGradMode enabled(graph_.phase(op) == Phase::kForward);
        run_op(op);
      }
    }
    for (OpId op = 0; op < graph_.num_ops() && options_.updates; ++op) {
      const torch::NoGradGuard constant;
      if (graph_.phase(op) == Phase::kUpdate && !graph_.is_source(op)) run_op(op);
    }
    return std::move(values_);
  }

 private:
  void take(OpId op) {
    with_context(fmt::format("op '{}'", graph_.op_name(op)), [&] {
      const auto outputs = graph_.outputs(op);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const torch::ScalarType type = scalar_type(graph_.dtype(outputs[i]), options_.target);
        values_[outputs[i]] = sources_(graph_, op, i).to(type);
      }
    });
  }

  void run_op(OpId op) {
    const CompiledOp compiled = compile_op(graph_, op, options_.target);
    Tensors inputs;
    for (const TensorId tensor : graph_.inputs(op)) inputs.push_back(values_[tensor]);
    const auto tensors = graph_.outputs(op);
    Tensors outputs(tensors.size());
    OpStep step{.inputs = inputs, .outputs = outputs, .step = options_.step};
    if (options_.keep) {
      const OpId keeper = keeper_of(graph_, op);
      step.keep = &kept_[op];
      if (keeper != kNoOp) step.kept = &kept_[keeper];
    }
    compiled.run(step);
    for (std::size_t i = 0; i < tensors.size(); ++i) values_[tensors[i]] = outputs[i];
  }

  const Graph& graph_;
  const SourceValue& sources_;
  InterpretOptions options_;
  Tensors values_;
  std::vector<Tensors> kept_;
};

}  // namespace

Tensors interpret(const Graph& graph, const SourceValue& sources, const InterpretOptions& options) {
  return Interpreter(graph, sources, options).run();
}

bool has_kernel(std::string_view type) {
  return kernel_table().contains(type);
}

std::vector<std::string_view> kernel_types() {
  std::vector<std::string_view> types;
  for (const auto& [type, kernel] : kernel_table()) types.emplace_back(type);
  return types;
}

}  // namespace emplace::exec

#include "interpreter/interpreter.h"

#include <algorithm>
#include <exception>

#include "base/error.h"

#include "exec/kernel.h"

namespace emplace::exec {
namespace {

torch::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return torch::kBool;
    case DType::kFloat8:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return torch::kDouble;
    case DType::kUnknown:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kString:
      fail_input("a tensor is of type '{}', expected a number", dtype_name(dtype));
    default:
      return torch::kLong;
  }
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, const SourceValue& sources)
      : graph_(graph), sources_(sources), values_(graph.num_tensors()) {
    for (OpId op = 0; op < graph.num_ops() && !training_; ++op) {
      training_ = graph.phase(op) == Phase::kBackward;
    }
  }

  Tensors run() && {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      with_context(fmt::format("op '{}': operator '{}'", graph_.op_name(op), graph_.type(op)), [&] {
        try {
          run_op(op);
        } catch (const c10::Error& error) {
          fail_input("libtorch cannot compute it: {}", error.what_without_backtrace());
        }
      });
    }
    return std::move(values_);
  }

 private:
  void run_op(OpId op) {
    const auto outputs = graph_.outputs(op);
    if (graph_.is_source(op)) {
      for (std::size_t i = 0; i < outputs.size(); ++i) keep(outputs[i], sources_(graph_, op, i));
      return;
    }
    const auto found = kernel_table().find(graph_.type(op));
    if (found == kernel_table().end()) {
      fail(ErrorKind::kUnsupported, "there is no kernel for this operator");
    }
    const Tensors results = found->second(call_of(op));
    if (results.size() < outputs.size()) {
      fail_input("has {} outputs, expected at most {}", outputs.size(), results.size());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) keep(outputs[i], results[i]);
  }

  Call call_of(OpId op) const {
    Call call{.type = std::string(graph_.type(op)),
              .attributes = graph_.attributes(op),
              .training = training_};
    for (const TensorId tensor : graph_.inputs(op)) call.inputs.push_back(values_[tensor]);
    for (const TensorId tensor : graph_.outputs(op)) {
      const auto shape = graph_.shape(tensor);
      call.outputs.push_back(
          {{shape.begin(), shape.end()}, graph_.dtype(tensor), graph_.bytes(tensor)});
    }
    if ((call.type == "DropoutGrad" || call.type == "BiasDropoutGrad") && !call.given("ratio")) {
      call.attributes.set("ratio", ratio_behind(graph_.inputs(op).back()));
    }
    return call;
  }

  // The gradient of a dropout reads its mask alone. How much was dropped is known where the mask
  // was made, perhaps behind ops that cut it or put it together.
  double ratio_behind(TensorId mask) const {
    OpId op = graph_.producer(mask);
    while (graph_.type(op) != "Dropout" && graph_.type(op) != "BiasDropout") {
      if (graph_.inputs(op).empty()) fail_input("its mask does not come from a Dropout");
      op = graph_.producer(graph_.inputs(op)[0]);
    }
    return dropout_ratio(call_of(op));
  }

  void keep(TensorId tensor, const Tensor& value) {
    const auto shape = graph_.shape(tensor);
    if (!value.defined() || !std::ranges::equal(value.sizes(), shape)) {
      fail_input("made a tensor of [{}], expected [{}]",
                 value.defined() ? fmt::format("{}", fmt::join(value.sizes(), ", ")) : "nothing",
                 fmt::join(shape, ", "));
    }
    const torch::ScalarType type = scalar_type(graph_.dtype(tensor));
    values_[tensor] = value.scalar_type() == type ? value : value.to(type);
  }

  const Graph& graph_;
  const SourceValue& sources_;
  bool training_ = false;
  Tensors values_;
};

}  // namespace

Tensors interpret(const Graph& graph, const SourceValue& sources) {
  return Interpreter(graph, sources).run();
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

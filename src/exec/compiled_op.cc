#include "exec/compiled_op.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/ranges.h>

#include "base/error.h"

#include "exec/native.h"
#include "exec/onednn.h"

namespace emplace::exec {
namespace {

// Numbers that say where and how, which kernels look at on the CPU.
std::vector<std::uint8_t> host_inputs(const Site& site) {
  static const std::set<std::string_view> kTypes{
      "Slice",       "SliceGrad", "Pad",  "PadGrad",     "CumSum", "CumSumGrad",     "CumProd",
      "CumProdGrad", "Trilu",     "Clip", "ClipGrad",    "Split",  "Tile",           "TileGrad",
      "Pow",         "Dropout",   "TopK", "BiasDropout", "Resize", "ReverseSequence"};
  const bool some = kTypes.contains(site.call.type) || site.call.type.starts_with("Reduce");
  std::vector<std::uint8_t> result(site.size(), 0);
  for (std::size_t i = 1; some && i < site.size(); ++i) {
    const bool data = site.is_floating(i) && !site.in(i).empty();
    result[i] = static_cast<std::uint8_t>(site.known(i) && !data);
  }
  return result;
}

Run run_of(const Kernel& kernel, const Site& site) {
  return [kernel, call = site.call, known = site.call.inputs,
          host = host_inputs(site)](OpStep& step) mutable {
    call.inputs.assign(step.inputs.begin(), step.inputs.end());
    for (std::size_t i = 0; i < host.size(); ++i) {
      if (host[i] != 0) call.inputs[i] = known[i];
    }
    call.stream.step = step.step;
    call.stream.clock = step.clock;
    Tensors results;
    try {
      results = kernel(call);
    } catch (...) {
      call.inputs.clear();
      throw;
    }
    call.inputs.clear();
    if (results.size() < step.outputs.size()) {
      fail_input("has {} outputs, expected at most {}", step.outputs.size(), results.size());
    }
    std::move(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(step.outputs.size()),
              step.outputs.begin());
  };
}

// Whether results may be numbers that integers of fewer bits do not hold.
bool may_overflow(std::string_view type) {
  static const std::set<std::string_view> kTypes{"Abs",
                                                 "Add",
                                                 "BitwiseNot",
                                                 "Cast",
                                                 "CastLike",
                                                 "CumProd",
                                                 "CumSum",
                                                 "Div",
                                                 "Einsum",
                                                 "Gemm",
                                                 "MatMul",
                                                 "Mul",
                                                 "Neg",
                                                 "PRelu",
                                                 "PartProd",
                                                 "PartSum",
                                                 "Pow",
                                                 "ReduceL1",
                                                 "ReduceProd",
                                                 "ReduceSum",
                                                 "ReduceSumSquare",
                                                 "Scatter",
                                                 "ScatterElements",
                                                 "ScatterND",
                                                 "Sub",
                                                 "Sum"};
  return kTypes.contains(type);
}

// What the lowest bits are as a number of that type.
Tensor wrapped(const Tensor& x, DType width) {
  switch (width) {
    case DType::kInt8:
      return x.to(torch::kChar).to(torch::kLong);
    case DType::kInt16:
      return x.to(torch::kShort).to(torch::kLong);
    case DType::kInt32:
      return x.to(torch::kInt).to(torch::kLong);
    case DType::kUInt8:
      return x.bitwise_and(std::int64_t{0xFF});
    case DType::kInt4:
      return (x + 8).bitwise_and(std::int64_t{0xF}) - 8;
    case DType::kUInt4:
      return x.bitwise_and(std::int64_t{0xF});
    case DType::kUInt16:
      return x.bitwise_and(std::int64_t{0xFFFF});
    case DType::kUInt32:
      return x.bitwise_and(std::int64_t{0xFFFFFFFF});
    default:
      return x;
  }
}

// What a graph asks for that cannot be computed, by libtorch or by our kernels, is an Error that
// names the op.
template <class Body>
decltype(auto) of_op(const std::string& where, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw error.in(where);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::kInput, fmt::format("{}: libtorch cannot compute it: {}", where,
                                               error.what_without_backtrace()));
  } catch (const std::runtime_error& error) {  // of libtorch, too
    throw Error(ErrorKind::kInput,
                fmt::format("{}: libtorch cannot compute it: {}", where, error.what()));
  } catch (const std::logic_error&) {
    // A vector that is shorter than was asked for, or would be longer than any can be.
    throw Error(ErrorKind::kInput,
                where + ": its attributes, or the shapes of its tensors, do not fit together");
  }
}

// Every result as the graph says it is: of its shape and type and, unless the op shows another
// tensor, in memory of its own.
class Finished {
 public:
  Finished(const Graph& graph, OpId op, const OpTarget& target, Run run)
      : where_(fmt::format("op '{}': operator '{}'", graph.op_name(op), graph.type(op))),
        view_(graph.is_view(op)),
        run_(std::move(run)) {
    for (const TensorId tensor : graph.outputs(op)) {
      const auto shape = graph.shape(tensor);
      outputs_.push_back({{shape.begin(), shape.end()},
                          scalar_type(graph.dtype(tensor), target),
                          may_overflow(graph.type(op)) ? graph.dtype(tensor) : DType::kInt64});
    }
  }

  void operator()(OpStep& step) const {
    of_op(where_, [&] {
      run_(step);
      for (std::size_t i = 0; i < outputs_.size(); ++i) finish(step, i);
    });
  }

 private:
  struct Output {
    Shape shape;
    torch::ScalarType type;
    DType width;  // of integers, that may be beyond it
  };

  void finish(OpStep& step, std::size_t i) const {
    Tensor& value = step.outputs[i];
    const Output& wanted = outputs_[i];
    if (!value.defined() || value.sizes() != at::IntArrayRef(wanted.shape)) {
      fail_input("made a tensor of [{}], expected [{}]",
                 value.defined() ? fmt::format("{}", fmt::join(value.sizes(), ", ")) : "nothing",
                 fmt::join(wanted.shape, ", "));
    }
    if (value.scalar_type() != wanted.type) {
      value = value.to(wanted.type);
    }
    if (wanted.type == torch::kLong) value = wrapped(value, wanted.width);
    if (view_) return;
    if (!value.is_contiguous()) {
      value = value.contiguous();
    } else if (std::any_of(step.inputs.begin(), step.inputs.end(),
                           [&](const Tensor& input) { return value.is_alias_of(input); })) {
      value = value.clone();
    }
  }

  std::string where_;
  bool view_;
  std::vector<Output> outputs_;
  Run run_;
};

// Gradients that run their forward op again, and layers that run step by step.
bool is_slow(std::string_view type) {
  static const std::set<std::string_view> kSteps{"GRU", "LSTM", "RNN", "EinsumGrad"};
  return kSteps.contains(type) || is_derived_gradient(type);
}

}  // namespace

torch::ScalarType scalar_type(DType dtype, const OpTarget& target) {
  switch (dtype) {
    case DType::kBool:
      return torch::kBool;
    case DType::kFloat16:
      return target.narrow == torch::kBFloat16 ? torch::kHalf : target.narrow;
    case DType::kFloat8:
    case DType::kBFloat16:
      return target.narrow;
    case DType::kFloat32:
    case DType::kFloat64:
      return target.real;
    case DType::kUnknown:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kString:
      fail_input("a tensor is of type '{}', expected a number", dtype_name(dtype));
    default:
      return torch::kLong;
  }
}

CompiledOp compile_op(const Graph& graph, OpId op, const OpTarget& target) {
  keep_onednn_off_tiles();
  return of_op(fmt::format("op '{}': operator '{}'", graph.op_name(op), graph.type(op)), [&] {
    const auto kernel = kernel_table().find(graph.type(op));
    if (kernel == kernel_table().end()) {
      fail(ErrorKind::kUnsupported,
           "there is no kernel for this operator; expected one of ONNX's: graphs captured "
           "elsewhere can only be simulated");
    }
    const Site site = site_of(graph, op, target);
    check_expected(site);
    check_supported(site);
    CompiledOp compiled;
    Run run;
    const auto compiler = compiler_table().find(graph.type(op));
    if (compiler != compiler_table().end()) run = compiler->second(site);
    if (!run) {
      run = run_of(kernel->second, site);
      compiled.native = !is_slow(graph.type(op));
    }
    compiled.run = Finished(graph, op, target, std::move(run));
    return compiled;
  });
}

OpId keeper_of(const Graph& graph, OpId op) {
  static const std::set<std::string_view> kKeepers{
      "BatchNormalization", "GroupNormalization", "InstanceNormalization",
      "LayerNormalization", "RMSNormalization",   "SimplifiedLayerNormalization"};
  constexpr std::string_view kSuffix = "Grad";
  std::string_view type = graph.type(op);
  if (!type.ends_with(kSuffix)) return kNoOp;
  type.remove_suffix(kSuffix.size());
  const auto inputs = graph.inputs(op);
  if (type == "MaxPool" && inputs.size() == 3) {
    const OpId forward = graph.producer(inputs[2]);
    const auto read = graph.inputs(forward);
    const bool same = graph.type(forward) == type && !read.empty() && read[0] == inputs[1];
    return same ? forward : kNoOp;
  }
  if (!kKeepers.contains(type) || inputs.size() < 3) return kNoOp;
  const auto alike = [&](OpId forward) {
    for (const char* name : {"axis", "epsilon", "groups", "num_groups"}) {
      const AttributeValue* own = graph.attributes(forward).find(name);
      const AttributeValue* other = graph.attributes(op).find(name);
      if ((own == nullptr) != (other == nullptr) || (own != nullptr && *own != *other))
        return false;
    }
    return true;
  };
  for (const OpId forward : graph.consumers(inputs[1])) {
    const auto read = graph.inputs(forward);
    if (graph.type(forward) == type && read.size() > 1 && read[0] == inputs[1] &&
        read[1] == inputs[2] && alike(forward)) {
      return forward;
    }
  }
  return kNoOp;
}

}  // namespace emplace::exec

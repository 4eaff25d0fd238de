// Casts a forward graph to another precision: one pass in topological order.
//
// Every floating tensor gets its new type when its producer is copied: sources by what reads them,
// ops by their operator and the types of their operands, which are known by then. An operand of
// another type than the op computes in is cast, once for all that read it. Linear in ops and edges.
#include "graph/precision.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/options.h"

#include "graph/copy.h"
#include "graph/graph_builder.h"
#include "graph/op_costs.h"
#include "graph/tensor_type.h"

namespace emplace {
namespace {

struct PrecisionName {
  std::string_view name;
  Precision precision;
  DType dtype;
  std::int64_t onnx;
};

constexpr PrecisionName kPrecisions[] = {{"bf16", Precision::kBFloat16, DType::kBFloat16, 16},
                                         {"fp16", Precision::kFloat16, DType::kFloat16, 10},
                                         {"fp32", Precision::kFloat32, DType::kFloat32, 1}};

// What autocast computes in 16 bits, and what in float32, in ONNX's names. Sorted.
constexpr std::string_view kNarrowTypes[] = {"Attention",
                                             "Conv",
                                             "ConvTranspose",
                                             "DeformConv",
                                             "Einsum",
                                             "FlashAttention",
                                             "FusedConv",
                                             "FusedGemm",
                                             "FusedMatMul",
                                             "FusedMatMulActivation",
                                             "GRU",
                                             "Gemm",
                                             "GroupQueryAttention",
                                             "LSTM",
                                             "MatMul",
                                             "MultiHeadAttention",
                                             "NhwcFusedConv",
                                             "PRelu",
                                             "RNN",
                                             "TransposeMatMul"};
constexpr std::string_view kWideTypes[] = {"Acos",
                                           "Asin",
                                           "BiasSoftmax",
                                           "Cosh",
                                           "CumProd",
                                           "CumSum",
                                           "Det",
                                           "EmbedLayerNormalization",
                                           "Exp",
                                           "GroupNorm",
                                           "GroupNormalization",
                                           "LRN",
                                           "LayerNormalization",
                                           "Log",
                                           "LogSoftmax",
                                           "LpNormalization",
                                           "MeanVarianceNormalization",
                                           "NegativeLogLikelihoodLoss",
                                           "Pow",
                                           "RMSNormalization",
                                           "Reciprocal",
                                           "ReduceL1",
                                           "ReduceL2",
                                           "ReduceLogSum",
                                           "ReduceLogSumExp",
                                           "ReduceProd",
                                           "ReduceSum",
                                           "ReduceSumSquare",
                                           "SimplifiedLayerNormalization",
                                           "Sinh",
                                           "SkipGroupNorm",
                                           "SkipLayerNormalization",
                                           "SkipSimplifiedLayerNormalization",
                                           "Softmax",
                                           "SoftmaxCrossEntropyLoss",
                                           "Softplus",
                                           "Tan"};
static_assert(std::is_sorted(std::begin(kNarrowTypes), std::end(kNarrowTypes)));
static_assert(std::is_sorted(std::begin(kWideTypes), std::end(kWideTypes)));

// What an op computes an operand in.
enum class Wish { kNarrow, kWide, kAny };

bool can_change(DType dtype) {
  return dtype == DType::kFloat32 || is_narrow(dtype);
}

// Normalisations that read images of any type and statistics in float32.
bool keeps_image_type(std::string_view type) {
  return type == "BatchNormalization" || type == "InstanceNormalization";
}

// Float32 is wider than both types of 16 bits, and float64 wider still.
DType wider(DType a, DType b) {
  return dtype_bits(a) >= dtype_bits(b) ? a : b;
}

class Caster {
 public:
  Caster(const Graph& forward, DType dtype, bool mixed)
      : forward_(forward),
        dtype_(dtype),
        mixed_(mixed),
        builder_(forward.name(), forward.source()),
        tensors_(forward.num_tensors()),
        types_(forward.num_tensors(), DType::kUnknown) {}

  Graph cast() && {
    for (OpId op = 0; op < forward_.num_ops(); ++op) {
      check(op);
      copy(op);
    }
    return std::move(builder_).build();
  }

 private:
  void check(OpId op) const {
    if (forward_.phase(op) != Phase::kForward) {
      fail_input(
          "op '{}' is of phase {}: the precision of a training step cannot be changed; "
          "expected a forward pass",
          forward_.op_name(op), phase_name(forward_.phase(op)));
    }
    for (const TensorId tensor : forward_.outputs(op)) {
      if (forward_.has_shape(tensor)) continue;
      fail_input(
          "op '{}': its output is known by its bytes alone; expected a shape and a dtype, "
          "which a precision could change",
          forward_.op_name(op));
    }
  }

  Wish wish(OpId op, std::size_t input) const {
    if (!mixed_) return Wish::kAny;
    const std::string_view type = forward_.type(op);
    if (keeps_image_type(type)) return input == 0 ? Wish::kAny : Wish::kWide;
    if (std::binary_search(std::begin(kNarrowTypes), std::end(kNarrowTypes), type)) {
      return Wish::kNarrow;
    }
    const bool wide = std::binary_search(std::begin(kWideTypes), std::end(kWideTypes), type);
    return wide ? Wish::kWide : Wish::kAny;
  }

  DType type_of_source(TensorId tensor) const {
    bool read = false;
    for (const OpId reader : forward_.consumers(tensor)) {
      const auto inputs = forward_.inputs(reader);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != tensor) continue;
        if (wish(reader, i) != Wish::kWide) return dtype_;
        read = true;
      }
    }
    return read ? DType::kFloat32 : dtype_;
  }

  // Numbers like a dropout's ratio or a factor, and single numbers that are computed, do not make
  // what they meet wider.
  bool is_number(TensorId tensor) const {
    const bool given = forward_.is_source(forward_.producer(tensor));
    return count_elements(forward_.shape(tensor)) == 1 &&
           (given || (forward_.shape(tensor).empty() &&
                      forward_.bytes(tensor) * 8 == dtype_bits(forward_.dtype(tensor))));
  }

  // Of single numbers alone, where there is nothing else.
  DType widest_input(OpId op) const {
    DType widest = DType::kUnknown;
    DType of_numbers = DType::kUnknown;
    for (const TensorId tensor : forward_.inputs(op)) {
      if (!can_change(forward_.dtype(tensor))) continue;
      if (!is_number(tensor)) {
        widest = wider(widest, types_[tensor]);
      } else if (!forward_.is_source(forward_.producer(tensor))) {
        of_numbers = wider(of_numbers, types_[tensor]);
      }
    }
    if (widest == DType::kUnknown) widest = of_numbers;
    return widest == DType::kUnknown ? dtype_ : widest;
  }

  // The model's own change of precision, as where a router computes in float32.
  bool casts_by_itself(OpId op) const {
    if (forward_.type(op) != "Cast") return false;
    const DType from = forward_.dtype(forward_.inputs(op)[0]);
    const DType to = forward_.dtype(forward_.outputs(op)[0]);
    return from != to && can_change(from) && can_change(to);
  }

  // What the op writes; nothing else depends on more than its first operand's wish.
  DType result_type(OpId op) const {
    if (casts_by_itself(op)) {
      return is_narrow(forward_.dtype(forward_.outputs(op)[0])) ? dtype_ : DType::kFloat32;
    }
    if (keeps_image_type(forward_.type(op))) return types_[forward_.inputs(op)[0]];
    switch (forward_.inputs(op).empty() ? Wish::kAny : wish(op, 0)) {
      case Wish::kNarrow:
        return dtype_;
      case Wish::kWide:
        return DType::kFloat32;
      case Wish::kAny:
        break;
    }
    return widest_input(op);
  }

  DType output_type(OpId op, std::size_t output, DType result) const {
    const TensorId tensor = forward_.outputs(op)[output];
    const DType given = forward_.dtype(tensor);
    if (!can_change(given)) return given;
    if (forward_.is_source(op)) return type_of_source(tensor);
    // Statistics that a batch norm hands on, and the logarithms that fused attention keeps.
    const bool statistics =
        mixed_ && output > 0 &&
        (forward_.type(op) == "BatchNormalization" || forward_.type(op) == "FlashAttention");
    return statistics ? DType::kFloat32 : result;
  }

  void copy(OpId op) {
    const DType result = forward_.is_source(op) ? dtype_ : result_type(op);
    OpSpec spec = spec_of_op(forward_, op);
    for (const OpId before : forward_.after(op)) spec.after.emplace_back(forward_.op_name(before));
    bool changed = false;
    const auto inputs = forward_.inputs(op);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      spec.inputs.push_back(operand(op, i, result));
      changed = changed || types_[inputs[i]] != forward_.dtype(inputs[i]) ||
                spec.inputs.back() != tensors_[inputs[i]];
    }
    const auto outputs = forward_.outputs(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      types_[outputs[i]] = output_type(op, i, result);
      TensorSpec tensor = spec_of_tensor(forward_, outputs[i]);
      if (types_[outputs[i]] != tensor.dtype) {
        tensor.dtype = types_[outputs[i]];
        tensor.memory_bytes.reset();
        changed = true;
      }
      tensors_[outputs[i]] = builder_.add_tensor(tensor);
      remember(tensors_[outputs[i]], tensor);
      spec.outputs.push_back(tensors_[outputs[i]]);
    }
    if (changed) adapt(op, spec);
    builder_.add_op(spec);
  }

  void remember(TensorId tensor, const TensorSpec& spec) {
    new_types_.resize(tensor + 1);
    new_types_[tensor] = tensor_type(spec.shape, spec.dtype);
  }

  // The input as the op reads it.
  TensorId operand(OpId op, std::size_t input, DType result) {
    const TensorId tensor = forward_.inputs(op)[input];
    if (!can_change(forward_.dtype(tensor)) || casts_by_itself(op)) return tensors_[tensor];
    const Wish wanted = wish(op, input);
    if (wanted == Wish::kAny && (is_number(tensor) || forward_.type(op) == "Cast")) {
      return tensors_[tensor];
    }
    const DType type = wanted == Wish::kNarrow ? dtype_
                       : wanted == Wish::kWide ? DType::kFloat32
                                               : result;
    return types_[tensor] == type ? tensors_[tensor] : cast_of(op, tensor, type);
  }

  TensorId cast_of(OpId reader, TensorId tensor, DType type) {
    const auto [at, added] = casts_.try_emplace(std::pair(tensor, type), TensorId(0));
    if (!added) return at->second;
    TensorSpec out{.shape = new_types_[tensors_[tensor]].shape, .dtype = type};
    at->second = builder_.add_tensor(out);
    remember(at->second, out);
    const std::string_view producer = forward_.op_name(forward_.producer(tensor));
    OpSpec spec{.name = free_name(fmt::format("{}/to_{}", producer, dtype_name(type))),
                .type = "Cast",
                .inputs = {tensors_[tensor]},
                .outputs = {at->second},
                .flops = 0,
                .module = std::string(forward_.module(reader)),
                .attributes = {{"to", onnx_type_number(type)}}};
    spec.bytes_moved =
        saturating_add(new_types_[tensors_[tensor]].bytes, new_types_[at->second].bytes);
    builder_.add_op(spec);
    return at->second;
  }

  std::string free_name(std::string name) const {
    while (builder_.has_op(name) || forward_.find_op(name)) name += '+';
    return name;
  }

  // What of the op follows from the sizes of its tensors.
  void adapt(OpId op, OpSpec& spec) const {
    spec.time_us.clear();
    if (spec.type == "Cast" && onnx_type_number(new_types_[spec.outputs[0]].dtype) != 0) {
      spec.attributes.set("to", onnx_type_number(new_types_[spec.outputs[0]].dtype));
    }
    if (!spec.bytes_moved || spec.view) return;
    Types in, out;
    for (const TensorId tensor : spec.inputs) in.push_back(new_types_[tensor]);
    for (const TensorId tensor : spec.outputs) out.push_back(new_types_[tensor]);
    const Bytes before =
        moved_by(spec, types_of(forward_.inputs(op)), types_of(forward_.outputs(op)));
    const Bytes now = moved_by(spec, in, out);
    // A file may say that an op moves more or less than its tensors.
    spec.bytes_moved =
        *spec.bytes_moved == before || before == 0
            ? now
            : static_cast<Bytes>(static_cast<double>(*spec.bytes_moved) * static_cast<double>(now) /
                                 static_cast<double>(before));
  }

  using Types = std::vector<TensorType>;
  Types types_of(std::span<const TensorId> tensors) const {
    Types types;
    for (const TensorId tensor : tensors) {
      const auto shape = forward_.shape(tensor);
      types.push_back(tensor_type({shape.begin(), shape.end()}, forward_.dtype(tensor)));
    }
    return types;
  }

  // By the operator's rule, or all that it reads and writes.
  static Bytes moved_by(const OpSpec& spec, const Types& inputs, const Types& outputs) {
    Bytes all = 0;
    const auto pointers_to = [&](const Types& types) {
      std::vector<const TensorType*> pointers;
      for (const TensorType& type : types) {
        pointers.push_back(&type);
        all = saturating_add(all, type.bytes);
      }
      return pointers;
    };
    const auto in = pointers_to(inputs);
    const auto out = pointers_to(outputs);
    const CostRow* row = find_cost_row("", spec.type);
    if (row == nullptr) row = find_cost_row("com.microsoft", spec.type);
    if (row == nullptr || row->rule == CostRule::kBody) return all;
    const auto cost = count_cost(*row, spec.type, spec.attributes, in, out);
    return cost ? cost->bytes_moved : all;
  }

  const Graph& forward_;
  DType dtype_;
  bool mixed_;
  GraphBuilder builder_;
  std::vector<TensorId> tensors_;                         // by forward tensor: the new one
  std::vector<DType> types_;                              // by forward tensor: the new one's
  std::vector<TensorType> new_types_;                     // by new tensor
  std::map<std::pair<TensorId, DType>, TensorId> casts_;  // by forward tensor and type
};

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const PrecisionName& row : kPrecisions) names.emplace_back(row.name);
  return names;
}

Precision parse_precision(std::string_view name) {
  for (const PrecisionName& row : kPrecisions) {
    if (name == row.name || name == dtype_name(row.dtype)) return row.precision;
  }
  fail_option("there is no precision '{}'{}; expected one of: {}", name,
              suggestion(name, precision_names()), fmt::join(precision_names(), ", "));
}

DType precision_dtype(Precision precision) {
  for (const PrecisionName& row : kPrecisions) {
    if (row.precision == precision) return row.dtype;
  }
  return DType::kUnknown;
}

bool is_narrow(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

std::int64_t onnx_type_number(DType dtype) {
  for (const PrecisionName& row : kPrecisions) {
    if (row.dtype == dtype) return row.onnx;
  }
  return 0;
}

Graph with_precision(const Graph& forward, DType dtype, bool training) {
  return Caster(forward, dtype, training && is_narrow(dtype)).cast();
}

}  // namespace emplace

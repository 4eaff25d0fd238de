#include "cost/op_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace emplace {
namespace {

using Entry = std::pair<std::string_view, OpClass>;

// Whole names, as written, whose parts would mislead: ONNX's Sum and Max are elementwise, PyTorch's
// sum and max reduce.
constexpr std::array<Entry, 26> kTypes{{
    {"Sum", OpClass::kElementwise},
    {"Mean", OpClass::kElementwise},
    {"Max", OpClass::kElementwise},
    {"Min", OpClass::kElementwise},
    {"max", OpClass::kReduction},
    {"min", OpClass::kReduction},
    {"all", OpClass::kReduction},
    {"any", OpClass::kReduction},
    {"std", OpClass::kReduction},
    {"var", OpClass::kReduction},
    {"var_mean", OpClass::kReduction},
    {"norm", OpClass::kReduction},
    {"t", OpClass::kCopy},
    {"full", OpClass::kFill},
    {"ones", OpClass::kFill},
    {"mm", OpClass::kMatMul},
    {"bmm", OpClass::kMatMul},
    {"mv", OpClass::kMatMul},
    {"dot", OpClass::kMatMul},
    {"_to_copy", OpClass::kElementwise},
    {"addbmm", OpClass::kMatMul},
    {"quantile", OpClass::kScatter},
    {"DepthToSpace", OpClass::kCopy},
    {"SpaceToDepth", OpClass::kCopy},
    {"Shape", OpClass::kMetadata},
    {"Size", OpClass::kMetadata},
}};

// The first word that occurs in the lower-cased type decides, so the more specific come first.
constexpr std::array<Entry, 99> kWords{{
    {"update", OpClass::kUpdate},
    {"metadata", OpClass::kMetadata},
    {"quantizelinear", OpClass::kElementwise},
    {"convert_", OpClass::kElementwise},
    {"unsafe_split", OpClass::kMetadata},
    {"rand", OpClass::kRandom},
    {"normal_", OpClass::kRandom},
    {"vector_norm", OpClass::kReduction},
    {"lpnorm", OpClass::kReduction},
    {"batch_norm", OpClass::kBatchNorm},
    {"batchnorm", OpClass::kBatchNorm},
    {"norm", OpClass::kLayerNorm},
    {"lrn", OpClass::kPool},
    {"dropout", OpClass::kRandom},
    {"bernoulli", OpClass::kRandom},
    {"multinomial", OpClass::kRandom},
    {"embedding", OpClass::kGather},
    {"scatter", OpClass::kScatter},
    {"index_put", OpClass::kScatter},
    {"index_add", OpClass::kScatter},
    {"sort", OpClass::kScatter},
    {"topk", OpClass::kScatter},
    {"nonzero", OpClass::kScatter},
    {"unique", OpClass::kScatter},
    {"nonmaxsuppression", OpClass::kScatter},
    {"gather", OpClass::kGather},
    {"index", OpClass::kGather},
    {"roialign", OpClass::kGather},
    {"roi_align", OpClass::kGather},
    {"grid", OpClass::kGather},
    {"slice", OpClass::kConcat},
    {"select", OpClass::kConcat},
    {"conv", OpClass::kConvolution},
    {"log_softmax", OpClass::kSoftmax},
    {"softmax", OpClass::kSoftmax},
    {"nll_loss", OpClass::kLoss},
    {"negativeloglikelihood", OpClass::kLoss},
    {"cross_entropy", OpClass::kSoftmax},
    {"crossentropy", OpClass::kSoftmax},
    {"loss", OpClass::kReduction},
    {"avg_pool", OpClass::kAveragePool},
    {"averagepool", OpClass::kAveragePool},
    {"pool", OpClass::kPool},
    {"upsample", OpClass::kPool},
    {"resize", OpClass::kPool},
    {"interpolate", OpClass::kPool},
    {"reduce", OpClass::kReduction},
    {"argmax", OpClass::kReduction},
    {"argmin", OpClass::kReduction},
    {"cumsum", OpClass::kReduction},
    {"cumprod", OpClass::kReduction},
    {"amax", OpClass::kReduction},
    {"amin", OpClass::kReduction},
    {"logsumexp", OpClass::kReduction},
    {"attention", OpClass::kAttention},
    {"matmul", OpClass::kMatMul},
    {"gemm", OpClass::kMatMul},
    {"einsum", OpClass::kMatMul},
    {"bilinear", OpClass::kMatMul},
    {"linear", OpClass::kMatMul},
    {"lstm", OpClass::kMatMul},
    {"gru", OpClass::kMatMul},
    {"rnn", OpClass::kMatMul},
    {"addmm", OpClass::kMatMul},
    {"baddbmm", OpClass::kMatMul},
    {"_mm", OpClass::kMatMul},
    {"addmv", OpClass::kMatMul},
    {"ones_like", OpClass::kFill},
    {"zeros", OpClass::kFill},
    {"full_like", OpClass::kFill},
    {"new_full", OpClass::kFill},
    {"new_ones", OpClass::kFill},
    {"empty", OpClass::kFill},
    {"arange", OpClass::kFill},
    {"linspace", OpClass::kFill},
    {"range", OpClass::kFill},
    {"constantofshape", OpClass::kFill},
    {"eyelike", OpClass::kFill},
    {"concat", OpClass::kConcat},
    {"cat", OpClass::kConcat},
    {"stack", OpClass::kConcat},
    {"pad", OpClass::kConcat},
    {"split", OpClass::kConcat},
    {"unbind", OpClass::kConcat},
    {"expand", OpClass::kConcat},
    {"repeat", OpClass::kConcat},
    {"tile", OpClass::kConcat},
    {"roll", OpClass::kConcat},
    {"reshape", OpClass::kConcat},
    {"flatten", OpClass::kConcat},
    {"squeeze", OpClass::kConcat},
    {"view", OpClass::kConcat},
    {"clone", OpClass::kCopy},
    {"copy", OpClass::kCopy},
    {"contiguous", OpClass::kCopy},
    {"transpose", OpClass::kCopy},
    {"permute", OpClass::kCopy},
    {"mean", OpClass::kReduction},
    {"sum", OpClass::kReduction},
}};

OpClass class_of_name(std::string_view type) {
  for (const auto& [name, op_class] : kTypes) {
    if (type == name) return op_class;
  }
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [word, op_class] : kWords) {
    if (lower.find(word) != std::string::npos) return op_class;
  }
  return OpClass::kElementwise;
}

OpClass gradient_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::kMatMul:
      return OpClass::kMatMulGrad;
    case OpClass::kConvolution:
      return OpClass::kConvolutionGrad;
    case OpClass::kSoftmax:
      return OpClass::kSoftmaxGrad;
    case OpClass::kPool:
      return OpClass::kPoolGrad;
    case OpClass::kAveragePool:
      return OpClass::kAveragePoolGrad;
    case OpClass::kBatchNorm:
      return OpClass::kBatchNormGrad;
    case OpClass::kLayerNorm:
      return OpClass::kLayerNormGrad;
    case OpClass::kGather:
      return OpClass::kScatter;
    case OpClass::kScatter:
      return OpClass::kGather;
    case OpClass::kReduction:  // spreads what came in over the shape that was reduced
      return OpClass::kBroadcast;
    case OpClass::kRandom:  // the mask was kept
      return OpClass::kElementwise;
    default:
      return op_class;
  }
}

// "ConvGrad", "ConvInputGrad" -> "Conv". Empty when the type names no gradient so.
std::string_view without_grad(std::string_view type) {
  for (const std::string_view suffix : {"InputGrad", "WeightGrad", "BiasGrad", "Grad"}) {
    if (type.size() > suffix.size() && type.ends_with(suffix)) {
      return type.substr(0, type.size() - suffix.size());
    }
  }
  return {};
}

}  // namespace

OperatorKind classify(std::string_view type, Phase phase) {
  if (phase == Phase::kUpdate) return {OpClass::kUpdate, false};
  const std::string_view forward = without_grad(type);
  const bool gradient = !forward.empty() || type.find("backward") != std::string_view::npos;
  const OpClass op_class = class_of_name(forward.empty() ? type : forward);
  return {gradient ? gradient_of(op_class) : op_class, gradient};
}

}  // namespace emplace

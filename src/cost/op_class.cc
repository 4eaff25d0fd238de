#include "cost/op_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace emplace {
namespace {

// The first word that occurs in the lower-cased type decides, so the more specific come first.
constexpr std::array<std::pair<std::string_view, OpClass>, 48> kWords{{
    {"update", OpClass::kUpdate},
    {"norm", OpClass::kNormalization},
    {"lrn", OpClass::kNormalization},
    {"embedding_dense_backward", OpClass::kCopy},
    {"embedding", OpClass::kGather},
    {"gather", OpClass::kGather},
    {"index", OpClass::kGather},
    {"slice_backward", OpClass::kCopy},
    {"select_backward", OpClass::kCopy},
    {"slice", OpClass::kGather},
    {"conv", OpClass::kConvolution},
    {"softmax", OpClass::kReduction},
    {"loss", OpClass::kReduction},
    {"pool", OpClass::kReduction},
    {"reduce", OpClass::kReduction},
    {"argmax", OpClass::kReduction},
    {"argmin", OpClass::kReduction},
    {"topk", OpClass::kReduction},
    {"cumsum", OpClass::kReduction},
    {"sum", OpClass::kReduction},
    {"mean", OpClass::kReduction},
    {"amax", OpClass::kReduction},
    {"addmm", OpClass::kMatMul},
    {"baddbmm", OpClass::kMatMul},
    {"bmm", OpClass::kMatMul},
    {"matmul", OpClass::kMatMul},
    {"gemm", OpClass::kMatMul},
    {"einsum", OpClass::kMatMul},
    {"linear", OpClass::kMatMul},
    {"attention", OpClass::kMatMul},
    {"lstm", OpClass::kMatMul},
    {"gru", OpClass::kMatMul},
    {"rnn", OpClass::kMatMul},
    {"mm", OpClass::kMatMul},
    {"concat", OpClass::kCopy},
    {"cat", OpClass::kCopy},
    {"stack", OpClass::kCopy},
    {"clone", OpClass::kCopy},
    {"copy", OpClass::kCopy},
    {"transpose", OpClass::kCopy},
    {"permute", OpClass::kCopy},
    {"pad", OpClass::kCopy},
    {"split", OpClass::kCopy},
    {"expand", OpClass::kCopy},
    {"tile", OpClass::kCopy},
    {"scatter", OpClass::kCopy},
    {"resize", OpClass::kCopy},
    {"zeros", OpClass::kCopy},
}};

}  // namespace

OpClass classify(std::string_view type, Phase phase) {
  if (phase == Phase::kUpdate) return OpClass::kUpdate;
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [word, op_class] : kWords) {
    if (lower.find(word) != std::string::npos) return op_class;
  }
  return OpClass::kElementwise;
}

}  // namespace emplace

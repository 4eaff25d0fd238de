#include "graph/elementwise.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace emplace {
namespace {

constexpr std::string_view kElementwiseOperators[] = {
    "abs",       "add",        "cast",        "ceil",     "clamp",     "clip",    "cos",
    "div",       "dropout",    "elu",         "erf",      "exp",       "floor",   "gelu",
    "hardswish", "leaky_relu", "log",         "mish",     "mul",       "neg",     "pow",
    "prelu",     "reciprocal", "relu",        "round",    "rsqrt",     "rsub",    "sigmoid",
    "sign",      "silu",       "sin",         "softplus", "sqrt",      "square",  "sub",
    "swish",     "tanh",       "threshold",   "where",    "leakyrelu", "maximum", "minimum",
    "selu",      "hardtanh",   "hardsigmoid", "max",      "min",       "sum"};

}  // namespace

std::string plain_operator_name(std::string_view type) {
  std::string name(type);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view suffix : {"_backward", "grad", "_"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name;
}

bool is_elementwise_operator(std::string_view type) {
  const std::string name = plain_operator_name(type);
  return std::find(std::begin(kElementwiseOperators), std::end(kElementwiseOperators), name) !=
         std::end(kElementwiseOperators);
}

}  // namespace emplace

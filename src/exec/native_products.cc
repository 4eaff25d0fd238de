// Matrix products.
#include <algorithm>

#include "base/error.h"

#include "exec/native.h"
#include "exec/team_products.h"

namespace emplace::exec {
namespace {

// Operands of a product; x times x may list x once.
struct Factors {
  bool trans_a = false;
  bool trans_b = false;
  double alpha = 1;
  std::size_t right = 1;

  Tensor a(const OpStep& step) const {
    return trans_a ? step.inputs[0].transpose(-2, -1) : step.inputs[0];
  }
  Tensor b(const OpStep& step) const {
    return trans_b ? step.inputs[right].transpose(-2, -1) : step.inputs[right];
  }
  void scale(Tensor& result) const {
    if (alpha != 1) result = result * alpha;
  }
};

Factors factors_of(const Site& site) {
  const std::size_t right = site.size() > 1 ? 1 : 0;
  return {.trans_a = site.call.integer("transA", 0) != 0 && site.in(0).size() >= 2,
          .trans_b = site.call.integer("transB", 0) != 0 && site.in(right).size() >= 2,
          .alpha = site.call.real("alpha", 1),
          .right = right};
}

std::int64_t rows_of(const Shape& shape) {
  if (shape.empty()) fail_input("multiplies a single number, expected a vector or a matrix");
  return shape.back() == 0 ? 0 : count_elements(shape) / shape.back();
}

// Weights for all rows of a batch are one product of matrices.
Run compile_matmul(const Site& site) {
  const Factors factors = factors_of(site);
  const Shape a = site.in(0);
  const Shape b = site.in(factors.right);
  const Shape y = site.out();
  if (a.size() > 2 && b.size() == 2 && !factors.trans_a) {
    return [factors, y, rows = rows_of(a), width = a.back()](OpStep& step) {
      step.outputs[0] = team_mm(step.inputs[0].reshape({rows, width}), factors.b(step)).view(y);
      factors.scale(step.outputs[0]);
    };
  }
  return [factors](OpStep& step) {
    step.outputs[0] = team_matmul(factors.a(step), factors.b(step));
    factors.scale(step.outputs[0]);
  };
}

Run compile_gemm(const Site& site) {
  const Factors factors = factors_of(site);
  if (site.size() < 3) return compile_matmul(site);
  return [factors, beta = site.call.real("beta", 1)](OpStep& step) {
    step.outputs[0] =
        team_addmm(step.inputs[2], factors.a(step), factors.b(step), beta, factors.alpha);
  };
}

// From dy [..., n] and A [..., k]: the rows of all batches make one product, of B's shape.
Run compile_weight_grad(const Site& site) {
  const Shape dy{rows_of(site.in(0)), site.in(0).back()};
  const Shape a{rows_of(site.in(1)), site.in(1).back()};
  return [dy, a, trans_b = site.call.integer("transB", 0) != 0,
          alpha = site.call.real("alpha", 1)](OpStep& step) {
    const Tensor left = step.inputs[0].reshape(dy);
    const Tensor right = step.inputs[1].reshape(a);
    step.outputs[0] = trans_b ? team_mm(left.t(), right) : team_mm(right.t(), left);
    if (alpha != 1) step.outputs[0] = step.outputs[0] * alpha;
  };
}

}  // namespace

void add_native_products(CompilerTable& table) {
  for (const char* type : {"MatMul", "FusedMatMul", "TransposeMatMul"}) {
    table[type] = compile_matmul;
  }
  table["Gemm"] = compile_gemm;
  table["MatMulWeightGrad"] = compile_weight_grad;
}

}  // namespace emplace::exec

#include <map>

#include "tensor/operators/operators.h"
#include "tensor/operators/support.h"

namespace emplace::operators {
namespace {

// Of a matrix, or a stack of them.
struct Operand {
  std::vector<Index> batch;
  std::optional<Index> row, column;
};

std::vector<Index> indices_of(const Operand& operand, bool transposed) {
  std::vector<Index> indices = operand.batch;
  const auto& first = transposed ? operand.column : operand.row;
  const auto& second = transposed ? operand.row : operand.column;
  if (first) indices.push_back(*first);
  if (second) indices.push_back(*second);
  return indices;
}

// The product over the last two dimensions; the others are broadcast. A vector is a matrix of one
// row (on the left) or one column (on the right).
MaybeDescription product(const Signature& signature, bool partial_sums) {
  Definition op(signature);
  // A product of a tensor with itself may list it once; its two uses are of different parts.
  if (op.num_outputs() != 1 || op.num_inputs() < 2) return std::nullopt;
  const Shape& a = op.input(0);
  const Shape& b = op.input(1);
  const Shape& y = op.output(0);
  if (a.empty() || b.empty()) return std::nullopt;
  const bool trans_a = op.attributes().integer("transA", 0) != 0 && a.size() > 1;
  const bool trans_b = op.attributes().integer("transB", 0) != 0 && b.size() > 1;
  const std::size_t matrix = (a.size() > 1 ? 1U : 0U) + (b.size() > 1 ? 1U : 0U);
  if (y.size() < matrix) return std::nullopt;
  const Shape batch(y.begin(), y.end() - static_cast<std::ptrdiff_t>(matrix));
  const Position inner = a[trans_a ? a.size() - 2 : a.size() - 1];
  const Position other = b.size() == 1 ? b[0] : b[trans_b ? b.size() - 1 : b.size() - 2];
  if (inner != other) return std::nullopt;

  const std::vector<Index> at = op.indices(batch, "b");
  std::optional<Index> m, n;
  if (a.size() > 1) m = op.index("m", y[batch.size()]);
  if (b.size() > 1) n = op.index("n", y.back());
  const Index k = partial_sums ? op.index("k", inner) : op.whole("k", inner);
  const auto stack = [&](const Shape& shape) {
    return broadcast(at, batch, Shape(shape.begin(), shape.end() - (shape.size() > 1 ? 2 : 1)));
  };
  const auto a_batch = stack(a);
  const auto b_batch = stack(b);
  if (!a_batch || !b_batch) return std::nullopt;
  const Operand left{*a_batch, m, k};
  const Operand second{*b_batch, k, n};
  std::vector<Index> written = at;
  if (m) written.push_back(*m);
  if (n) written.push_back(*n);
  tdl::Expression terms =
      op.in(0)(indices_of(left, trans_a)) * op.in(1)(indices_of(second, trans_b));
  for (std::size_t i = 2; i < op.num_inputs(); ++i) {  // a bias
    const auto indices = broadcast(written, y, op.input(i));
    if (!indices) return std::nullopt;
    terms = terms + once(op.in(i)(*indices));
  }
  if (partial_sums) {
    op.out(0)(written) = sum({k}, terms);
  } else {
    op.out(0)(written) = terms;
  }
  return std::move(op).done();
}

struct Einstein {
  std::vector<std::string> inputs;
  std::string output;
};

// "bij,bjk->bik"; nothing for ellipses and repeated letters.
std::optional<Einstein> parse_equation(std::string_view equation) {
  Einstein result;
  std::string letters;
  bool arrow = false;
  for (std::size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == '.') return std::nullopt;
    if (c == ',' || c == '-') {
      result.inputs.push_back(std::exchange(letters, {}));
      if (c == '-') {
        arrow = true;
        ++i;  // '>'
      }
      continue;
    }
    if (letters.find(c) != std::string::npos) return std::nullopt;
    letters += c;
  }
  if (!arrow) return std::nullopt;
  result.output = letters;
  return result;
}

MaybeDescription einstein_sum(const Signature& signature) {
  Definition op(signature);
  const auto equation = parse_equation(op.attributes().text("equation"));
  if (!equation || equation->inputs.size() != op.num_inputs()) return std::nullopt;
  std::map<char, Position> extents;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (equation->inputs[i].size() != op.input(i).size()) return std::nullopt;
    for (std::size_t d = 0; d < op.input(i).size(); ++d) {
      const auto [at, added] = extents.emplace(equation->inputs[i][d], op.input(i)[d]);
      if (!added && at->second != op.input(i)[d]) return std::nullopt;
    }
  }
  std::map<char, Index> variables;
  std::vector<Index> written, reduced;
  for (const auto& [letter, extent] : extents) {
    variables.emplace(letter, op.index(std::string(1, letter), extent));
    if (equation->output.find(letter) == std::string::npos) reduced.push_back(variables[letter]);
  }
  for (const char letter : equation->output) {
    if (!variables.contains(letter)) return std::nullopt;
    written.push_back(variables[letter]);
  }
  tdl::Expression terms;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    std::vector<Index> indices;
    for (const char letter : equation->inputs[i]) indices.push_back(variables[letter]);
    terms = terms * op.in(i)(indices);
  }
  op.out(0)(written) = sum(reduced, terms);
  return std::move(op).done();
}

}  // namespace

MaybeDescription matmul(const Signature& signature) {
  return product(signature, true);
}

MaybeDescription gemm(const Signature& signature) {
  return product(signature, true);
}

MaybeDescription fused_product(const Signature& signature) {
  return product(signature, false);
}

// Inputs: dY [..., m, n] and X [..., m, k]; of weights [k, n], or [n, k] where they were
// transposed.
MaybeDescription matmul_weight_grad(const Signature& signature) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return std::nullopt;
  Signature forward{.type = "MatMul",
                    .attributes = signature.attributes,
                    .inputs = {signature.inputs[1], signature.outputs[0]},
                    .outputs = {signature.inputs[0]}};
  const MaybeDescription description = matmul(forward);
  if (!description) return std::nullopt;
  return gradient_of_product(*description, 1, {0}, signature.outputs[0]);
}

MaybeDescription einsum(const Signature& signature) {
  return einstein_sum(signature);
}

MaybeDescription einsum_grad(const Signature& signature) {
  const std::int64_t input = signature.attributes.integer("input", -1);
  const std::size_t count = signature.inputs.size();
  if (input < 0 || static_cast<std::size_t>(input) >= count || count < 2) return std::nullopt;
  Signature forward{.type = "Einsum",
                    .attributes = signature.attributes,
                    .inputs = {},
                    .outputs = {signature.inputs[0]}};
  std::vector<std::size_t> others;
  for (std::size_t i = 0, next = 1; i < count; ++i) {
    if (i == static_cast<std::size_t>(input)) {
      forward.inputs.push_back(signature.outputs[0]);
    } else {
      others.push_back(i);
      forward.inputs.push_back(signature.inputs[next++]);
    }
  }
  const MaybeDescription description = einsum(forward);
  if (!description) return std::nullopt;
  return gradient_of_product(*description, static_cast<std::size_t>(input), others,
                             signature.outputs[0]);
}

}  // namespace emplace::operators

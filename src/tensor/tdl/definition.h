// The language in which operators are described, embedded in C++:
//
//   Definition op(signature);
//   const Index m = op.index("m", rows), n = op.index("n", columns), k = op.index("k", inner);
//   op.out(0)(m, n) = sum({k}, op.in(0)(m, k) * op.in(1)(k, n));
//   return std::move(op).done();
//
// What is computed from the elements does not matter here, so `f(...)` stands for any function of
// them; `op.whole` is an index whose whole range such a function takes at once (softmax over a row,
// the window of a convolution).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"

#include "tensor/tdl/description.h"

namespace emplace::tdl {

// An operator's name and the shapes that it is used with.
struct Signature {
  std::string type;
  Attributes attributes;
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  // By input: the numbers in it, where it is a constant list of whole numbers that the graph knows.
  std::vector<std::vector<std::int64_t>> numbers = {};
};

// A value that derives from elements of inputs.
class Expression {
 public:
  Expression() = default;
  explicit Expression(Access access) { reads_.push_back(std::move(access)); }

  friend Expression operator*(Expression a, const Expression& b) { return join(std::move(a), b); }
  friend Expression operator+(Expression a, const Expression& b) { return join(std::move(a), b); }

 private:
  friend class Definition;
  friend Expression reduce(Reducer reducer, const std::vector<Index>& over, Expression of);
  friend Expression once(Expression of);
  friend Expression if_any(Expression of);
  static Expression join(Expression a, const Expression& b);

  std::vector<Access> reads_;
  std::vector<VariableId> reduced_;
  std::optional<Reducer> reducer_;
};

Expression reduce(Reducer reducer, const std::vector<Index>& over, Expression of);
inline Expression sum(const std::vector<Index>& over, Expression of) {
  return reduce(Reducer::kSum, over, std::move(of));
}
// Added once, however many workers have a part of the sum.
Expression once(Expression of);
// Not read by parts that need nothing of it.
Expression if_any(Expression of);
// Any function of its arguments.
template <class... Arguments>
Expression f(const Arguments&... arguments) {
  return (Expression() + ... + arguments);
}

class Definition {
 public:
  explicit Definition(Signature signature) : signature_(std::move(signature)) {}

  const Signature& signature() const { return signature_; }
  const Attributes& attributes() const { return signature_.attributes; }
  const Shape& input(std::size_t i) const { return signature_.inputs[i]; }
  const Shape& output(std::size_t i) const { return signature_.outputs[i]; }
  std::size_t num_inputs() const { return signature_.inputs.size(); }
  std::size_t num_outputs() const { return signature_.outputs.size(); }
  // The numbers of a constant input; empty: not known.
  std::vector<std::int64_t> numbers(std::size_t i) const {
    return i < signature_.numbers.size() ? signature_.numbers[i] : std::vector<std::int64_t>{};
  }

  // A variable over 0 .. extent - 1 that can be cut.
  Index index(std::string name, Position extent) { return add(std::move(name), extent, true); }
  // One that cannot.
  Index whole(std::string name, Position extent) { return add(std::move(name), extent, false); }
  // One for each dimension of the shape: "d0", "d1", ...
  std::vector<Index> indices(const Shape& shape, const std::string& prefix = "d");

  class Tensor {
   public:
    Tensor(Definition& definition, std::size_t position)
        : definition_(definition), position_(position) {}
    Expression operator()(std::vector<Index> indices) const;
    template <class... More>
    Expression operator()(const Index& first, const More&... more) const {
      return (*this)(std::vector<Index>{first, Index(more)...});
    }

   private:
    Definition& definition_;
    std::size_t position_;
  };
  Tensor in(std::size_t position) { return {*this, position}; }
  // The input with all of it read at once.
  Expression all_of(std::size_t position);

  class Target {
   public:
    Target(Definition& definition, Write write)
        : definition_(definition), write_(std::move(write)) {}
    void operator=(const Expression& value);  // NOLINT: the language's own

   private:
    Definition& definition_;
    Write write_;
  };
  class Output {
   public:
    Output(Definition& definition, std::size_t position)
        : definition_(definition), position_(position) {}
    Target operator()(std::vector<Index> indices) const;
    template <class... More>
    Target operator()(const Index& first, const More&... more) const {
      return (*this)(std::vector<Index>{first, Index(more)...});
    }

   private:
    Definition& definition_;
    std::size_t position_;
  };
  Output out(std::size_t position) { return {*this, position}; }
  // For operators that write nothing, as an update of weights in place.
  void touches(const Expression& value);

  void localise(std::function<void(Piece&)> how) { description_.localise = std::move(how); }

  // Nothing where what was said is not consistent with the shapes.
  std::optional<Description> done() &&;

 private:
  friend class Target;
  Index add(std::string name, Position extent, bool divisible);
  void keep_reads(const Expression& value);
  void forbid_minor_digits(const Access& access, const std::vector<Variable>& as_said);

  Signature signature_;
  Description description_;
  bool consistent_ = true;
};

// The description of an operator that computes the gradient of one input of an operator whose
// output is a sum of products of its inputs (matrix products, convolutions, Einstein sums), from
// that operator's own. Its inputs are the output's gradient and then `others`, inputs of the
// forward operator in this order. An input that is read through a window is solved for the output's
// index: in[2 y + k - 1] makes y = (x - k + 1) / 2.
Description gradient_of_product(const Description& forward, std::size_t input,
                                const std::vector<std::size_t>& others, const Shape& input_shape);

}  // namespace emplace::tdl

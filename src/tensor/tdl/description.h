// How an operator's outputs derive from its inputs, as far as splitting it needs to know: which
// variables it runs over, and which elements of which tensors it touches for each setting of them.
//
// A variable can be cut into parts that different workers take, unless an opaque function needs its
// whole range. A part of the operator (a box of variables) reads a box of every input and writes a
// box of every output; where an output's index does not contain a variable that was cut, each
// worker has a partial result of full size, which the output's reducer puts together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"

#include "tensor/tdl/index.h"

namespace emplace::tdl {

struct Variable {
  std::string name;
  Position extent = 1;
  bool divisible = true;
};

enum class Reducer { kSum, kMax, kMin, kProduct };

struct Access {
  std::size_t position = 0;  // among the op's inputs, or outputs
  std::vector<Index> indices = {};
  // Of several workers with partial results only the one with the first part may read it: what is
  // added to a sum, as a bias is.
  bool once = false;
  // Parts that need nothing of it leave it out, as those of a concatenation do.
  bool if_any = false;
};

struct Write : Access {
  std::optional<Reducer> reducer = std::nullopt;  // over variables that its indices do not contain
};

using Region = std::vector<Interval>;  // by dimension

// A part of an operator, as an operator of the same type over smaller tensors.
struct Piece {
  std::vector<Interval> box;        // by variable
  std::vector<Region> wanted;       // by read; may reach beyond the tensor, as padding does
  std::vector<Region> inputs;       // by input: what there is of it; unread ones are empty
  std::vector<std::uint8_t> reads;  // by input: whether the piece reads it
  std::vector<Region> outputs;      // by output
  Attributes attributes;            // the operator's, to be changed where the part differs
  // Whether it has work to do and all that it needs for that; a part without is no part.
  bool valid = true;
};

struct Description {
  std::vector<Variable> variables;
  std::vector<Access> reads;  // an input may be read in several places
  std::vector<Write> writes;  // one for each output
  // Changes the attributes of a piece where the operator's do not hold for it: padding, offsets.
  std::function<void(Piece&)> localise = nullptr;

  // Variables that can be cut: output indices (their parts lie side by side) and reductions.
  std::vector<VariableId> divisible() const;
  // Whether a cut of the variable leaves partial results of some output.
  bool is_reduction(VariableId variable) const;
  // One element of every output from one element of every input that is not broadcast.
  bool is_elementwise() const;
};

// A whole tensor's region.
Region region_of(const Shape& shape);

// What the part of the operator reads and writes. Inputs' and outputs' shapes bound the regions.
Piece piece_of(const Description& description, const std::vector<Interval>& box,
               const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
               const Attributes& attributes);

// "matmul: λ m, n. Σ k. 0[m, k] 1[k, n]", for people.
std::string text(const Description& description);

}  // namespace emplace::tdl

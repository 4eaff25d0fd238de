// A captured step while it is put into ONNX's operators: what each of its tensors is in the new
// graph, and how ops are added there in place of the present one.
//
// Views (transpositions, other shapes) are only added where somebody reads them as they are:
// products take transposed operands, and what is transposed twice is what it was.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graph/graph.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

namespace emplace::captured {

// A view: dimensions in another order, or elements in another shape.
struct ViewStep {
  std::vector<std::int64_t> perm = {};  // empty: another shape
  Shape shape = {};
  OpId origin = 0;  // the op that made it
};

// What a tensor of the captured graph is.
struct Value {
  std::optional<TensorId> root = {};  // of the new graph; none: every element is `number`
  Shape root_shape = {};
  std::vector<ViewStep> steps = {};
  double number = 0;
  DType dtype = DType::kFloat32;  // of the number

  const Shape& shape() const { return steps.empty() ? root_shape : steps.back().shape; }
};

// Something reads a tensor that what replaced its op does not make: the op has to stay.
struct NotMade {
  OpId op;
};

// A part of what an op does: what its name ends with, and how much of the work it is.
struct Part {
  std::string suffix = {};
  double share = 1;
};

class Translation {
 public:
  // `stay` are ops that are to stay as they are.
  Translation(const Graph& graph, std::set<OpId> stay);

  // Throws NotMade.
  void run();
  Graph take_graph() && { return std::move(builder_).build(); }
  // By tensor of the captured graph: the one of the same value, where the new graph has it.
  std::vector<std::optional<TensorId>> tensors() const;

  // ---- the present op

  // Without the underscore of those that write in place.
  std::string_view type() const;
  std::size_t num_inputs() const { return graph_.inputs(op_).size(); }
  std::size_t num_outputs() const { return graph_.outputs(op_).size(); }
  Shape in(std::size_t i) const { return shape_of(graph_.inputs(op_)[i]); }
  Shape out(std::size_t i = 0) const { return shape_of(graph_.outputs(op_)[i]); }
  DType in_type(std::size_t i) const { return graph_.dtype(graph_.inputs(op_)[i]); }
  DType out_type(std::size_t i = 0) const { return graph_.dtype(graph_.outputs(op_)[i]); }
  const Attributes& attributes() const { return graph_.attributes(op_); }
  bool given(std::string_view name) const { return attributes().find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    return attributes().integer(name, otherwise);
  }
  // An axis that an attribute of one of these names says, counted from the front; without one,
  // `otherwise`. Nothing where there is no such axis.
  std::optional<std::size_t> axis(std::initializer_list<std::string_view> names, std::size_t rank,
                                  std::optional<std::int64_t> otherwise = std::nullopt) const;
  Bytes persistent_bytes() const { return graph_.persistent_bytes(op_); }
  // Of a gradient of three operands: those whose gradients it puts out, in order. Nothing where the
  // graph does not say.
  std::optional<std::vector<std::size_t>> wanted_of_three() const;
  // Of the op that made an input: its first output, and a number that it was given.
  Value first_output_of_producer(std::size_t input) const;
  std::optional<double> number_of_producer(std::size_t input, std::string_view name) const;
  // Whether the graph has backward ops.
  bool trains() const { return trains_; }

  // ---- what it reads

  const Value& value(std::size_t input) const;
  TensorId take(std::size_t input) { return take(value(input)); }
  TensorId take(const Value& value);
  // As an operand that is broadcast.
  TensorId operand(std::size_t input);
  // A single number.
  TensorId number(double value, DType dtype);
  // The value in another order of its dimensions, or in another shape.
  Value permuted(Value value, const std::vector<std::int64_t>& perm) const;
  Value reshaped(Value value, Shape shape) const;

  // ---- what is there instead

  // That the output is this.
  void set(std::size_t output, Value value);
  // An op that makes the outputs at these positions.
  void emit(std::string_view type, std::vector<TensorId> inputs,
            std::initializer_list<std::size_t> outputs, Attributes attributes = {}, Part part = {});
  // As the only op, which makes all outputs.
  void replace(std::string_view type, std::vector<TensorId> inputs, Attributes attributes = {});
  // The op as a product of stacks of matrices that makes a tensor of this shape.
  TensorId product(std::vector<TensorId> inputs, const Shape& shape, Attributes attributes);
  // One that makes something on the way.
  TensorId add(std::string_view suffix, std::string_view type, std::vector<TensorId> inputs,
               TensorSpec output, Attributes attributes = {}, bool view = false);
  std::vector<TensorId> add(std::string_view suffix, std::string_view type,
                            std::vector<TensorId> inputs, const std::vector<TensorSpec>& outputs,
                            Attributes attributes = {}, bool view = false);
  // A parameter's companion, which an update keeps, in place of what the op said of its memory.
  TensorId add_buffer(std::string_view suffix, const TensorSpec& spec);
  // A list of numbers.
  void replace_by_constant(Attributes attributes);

 private:
  using ViewKey = std::tuple<TensorId, std::vector<std::int64_t>, Shape>;

  Shape shape_of(TensorId tensor) const {
    return {graph_.shape(tensor).begin(), graph_.shape(tensor).end()};
  }
  bool has_shapes(OpId op) const;
  void copy();
  OpSpec own_spec() const;
  std::string free_name(std::string name) const;
  TensorId view_of(TensorId from, const ViewStep& step);
  void add_op(OpSpec spec);

  const Graph& graph_;
  std::set<OpId> stay_;
  GraphBuilder builder_;
  OpId op_ = 0;
  std::vector<std::optional<Value>> values_;  // by tensor of the captured graph
  std::vector<TensorSpec> specs_;             // by tensor of the new one
  std::map<ViewKey, TensorId> views_;
  std::map<std::pair<double, DType>, TensorId> numbers_;
  bool trains_ = false;
  bool attributed_ = false;     // whether the graph says attributes at all
  bool keeps_buffers_ = false;  // whether the present op was given buffers
};

// The op of the graph in ONNX's terms; false, before anything was added, where it has to stay.
using Rule = bool (*)(Translation& at, std::string_view onnx);

struct RuleRow {
  std::string_view type;
  Rule rule;
  std::string_view onnx = {};
  bool by_attributes = false;  // what it does depends on attributes that may be left out
};

// nullptr: none.
const RuleRow* find_rule(std::string_view type);

}  // namespace emplace::captured

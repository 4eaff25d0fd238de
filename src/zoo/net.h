// The layer library's ground: a model's forward graph while it is built, in ONNX operators. Every
// op gets its shapes, its cost (graph/op_costs.h), its attributes and the module that it belongs
// to.
//
//   Net net("two-layers", {.dtype = DType::kFloat32});
//   const Value x = net.input("x", {32, 64});
//   const auto scope = net.scope("hidden");
//   const Value h = relu(net, linear(net, x, 256));  // zoo/layers.h
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

namespace emplace::zoo {

// A tensor of the model, with what the ops that read it need to know.
struct Value {
  TensorId id = 0;
  Shape shape = {};
  DType dtype = DType::kUnknown;

  std::int64_t dim(std::size_t i) const { return shape[i]; }
  std::int64_t last() const { return shape.back(); }
  std::size_t rank() const { return shape.size(); }
};

using Values = std::vector<Value>;

struct NetOptions {
  DType dtype = DType::kFloat32;  // of parameters and activations
  bool training = true;           // dropout has an effect
};

class Net {
 public:
  explicit Net(std::string name, NetOptions options = {});

  DType dtype() const { return options_.dtype; }
  bool training() const { return options_.training; }

  // Until the scope ends, ops belong to the module `name` of the module around it.
  class Scope {
   public:
    Scope(Net& net, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Net& net_;
    std::size_t length_;  // of the module around it
  };
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }
  // "layer" and 3: "layer.3".
  [[nodiscard]] Scope scope(std::string_view name, std::int64_t index);
  const std::string& module() const { return module_; }

  // What the step is given: examples in the net's element type, or ids, labels, masks.
  Value input(std::string_view name, Shape shape);
  Value input(std::string_view name, Shape shape, DType dtype);
  // Trained weights, and other state, of the module around them.
  Value parameter(std::string_view name, Shape shape);
  Value buffer(std::string_view name, Shape shape);
  // Numbers that belong to the model; equal ones of one module are one op.
  Value constant(const std::vector<std::int64_t>& values);  // int64[n]
  Value scalar(double value);                               // of the net's element type

  // An op whose outputs have these types. Throws an Error when the operator does not take such
  // shapes.
  Values add(std::string_view type, const Values& inputs, const std::vector<TensorType>& outputs,
             Attributes attributes = {});
  Value add_one(std::string_view type, const Values& inputs, Shape shape,
                Attributes attributes = {});
  Value add_one(std::string_view type, const Values& inputs, TensorType output,
                Attributes attributes = {});

  OpId num_ops() const { return builder_.num_ops(); }

  Graph build() &&;

 private:
  std::string unique_name(std::string_view stem);
  Value source(std::string name, std::string_view type, Shape shape, DType dtype,
               Attributes attributes = {});

  NetOptions options_;
  GraphBuilder builder_;
  std::string module_;
  std::unordered_map<std::string, std::int64_t> names_;  // how often each was taken
  std::unordered_map<std::string, Value> constants_;     // by module and contents
};

}  // namespace emplace::zoo

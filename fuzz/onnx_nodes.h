// Nodes of every operator that libonnx knows, in every version, with inputs and attributes of the
// right types and of values that are mostly odd: what a file made to harm may bring.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <onnx/defs/schema.h>

#include "fuzz/choices.h"
#include "io/onnx_flatten.h"
#include "io/onnx_value.h"

namespace emplace::fuzz {

struct MadeNode {
  onnx::NodeProto proto;
  Opsets opsets;
  std::deque<OnnxValue> values;
  std::vector<const OnnxValue*> inputs;  // of `values`, nullptr where omitted
};

class NodeMaker {
 public:
  explicit NodeMaker(Choices& choices) : choices_(choices) {}

  MadeNode make() {
    static const std::vector<onnx::OpSchema> schemas =
        onnx::OpSchemaRegistry::get_all_schemas_with_history();
    return make(schemas[choices_.below(schemas.size())]);
  }

  MadeNode make(const onnx::OpSchema& schema) {
    MadeNode node;
    node.proto.set_op_type(schema.Name());
    node.proto.set_domain(schema.domain());
    node.opsets[schema.domain() == "ai.onnx" ? "" : schema.domain()] = schema.SinceVersion();
    const int most = std::min(schema.max_input(), schema.min_input() + 4);
    const int inputs =
        schema.min_input() +
        static_cast<int>(choices_.below(static_cast<std::size_t>(most - schema.min_input() + 1)));
    for (int i = 0; i < inputs; ++i) add_input(node, i);
    const int outputs = std::min(schema.max_output(), std::max(1, schema.min_output()) + 2);
    for (int i = 0; i < outputs; ++i) node.proto.add_output("out" + std::to_string(i));
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.required || choices_.below(3) > 0) add_attribute(node.proto, attribute);
    }
    return node;
  }

 private:
  // Their product is 2^64 - 1, that is, -1.
  static constexpr std::int64_t kWrapping[] = {3, 5, 17, 257, 641, 65537, 6700417};

  std::int64_t size() {
    return choices_.one_of<std::int64_t>({2, 1, 3, 0, 5, 8, 64, 224, 1024, 65536, -1, 1LL << 31,
                                          1LL << 32, 1LL << 40, (1LL << 31) - 1, 1LL << 62,
                                          INT64_MAX, kWrapping[choices_.below(7)]});
  }
  std::int64_t number() {
    return choices_.one_of<std::int64_t>({1,         0,
                                          2,         -1,
                                          3,         -2,
                                          4,         7,
                                          -3,        16,
                                          100,       -100,
                                          1LL << 31, -(1LL << 31),
                                          1LL << 32, -(1LL << 32),
                                          1LL << 62, INT64_MAX,
                                          INT64_MIN, kWrapping[choices_.below(7)]});
  }
  int elem_type() {
    using T = onnx::TensorProto;
    return choices_.one_of<int>({T::FLOAT, T::INT64, T::INT32, T::BOOL, T::UINT8, T::INT8,
                                 T::DOUBLE, T::FLOAT16, T::STRING, T::UINT64, T::COMPLEX64,
                                 T::UNDEFINED});
  }

  void add_input(MadeNode& node, int index) {
    if (choices_.rarely(16)) {
      node.proto.add_input("");
      node.inputs.push_back(nullptr);
      return;
    }
    node.proto.add_input("in" + std::to_string(index));
    OnnxValue& value = node.values.emplace_back();
    const std::size_t form = choices_.below(9);
    if (form == 8) {
      // Nothing is known of it, as of what an unknown operator makes.
    } else if (form == 7) {
      *value.type.mutable_sequence_type()->mutable_elem_type() =
          tensor_type_proto(elem_type(), {size()});
    } else if (form >= 4) {
      make_small(value);
    } else if (form > 0) {
      std::vector<std::int64_t> shape(choices_.below(6));
      for (std::int64_t& dim : shape) dim = size();
      value.type = tensor_type_proto(elem_type(), shape);
      for (auto& dim : *value.type.mutable_tensor_type()->mutable_shape()->mutable_dim()) {
        if (dim.dim_value() < 0) dim.clear_dim_value();
      }
    } else {
      value.type.mutable_tensor_type()->set_elem_type(elem_type());
    }
    value.settle();
    node.inputs.push_back(&value);
  }

  // A tensor whose contents are known.
  void make_small(OnnxValue& value) {
    SmallTensor tensor{
        .elem_type = choices_.one_of<int>({onnx::TensorProto::INT64, onnx::TensorProto::FLOAT,
                                           onnx::TensorProto::INT32, onnx::TensorProto::BOOL})};
    const std::size_t rank = choices_.below(4);
    std::size_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      tensor.dims.push_back(static_cast<std::int64_t>(choices_.below(5)));
      count *= static_cast<std::size_t>(tensor.dims.back());
    }
    for (std::size_t i = 0; i < count; ++i) {
      tensor.values.push_back(static_cast<long double>(number()));
    }
    value.type = tensor_type_proto(tensor.elem_type, tensor.dims);
    value.data = std::move(tensor);
  }

  void add_attribute(onnx::NodeProto& node, const onnx::OpSchema::Attribute& wanted) {
    using A = onnx::AttributeProto;
    auto* attribute = node.add_attribute();
    attribute->set_name(wanted.name);
    attribute->set_type(wanted.type);
    const std::size_t count = choices_.below(6);
    switch (wanted.type) {
      case A::INT:
        attribute->set_i(number());
        break;
      case A::FLOAT:
        attribute->set_f(choices_.one_of<float>({1.0F, 0.0F, -1.0F, 1e30F, -1e30F}));
        break;
      case A::STRING:
        attribute->set_s(choices_.one_of<const char*>(
            {"SAME_UPPER", "VALID", "SAME_LOWER", "NOTSET", "", "linear", "ij,jk->ik", "...i,i->i",
             "ij->", "->", "forward", "bidirectional", "reverse", "nearest", "none", "mean"}));
        break;
      case A::INTS:
        for (std::size_t i = 0; i < count; ++i) attribute->add_ints(number());
        break;
      case A::FLOATS:
        for (std::size_t i = 0; i < count; ++i) attribute->add_floats(0.5F);
        break;
      case A::STRINGS:
        for (std::size_t i = 0; i < count; ++i) attribute->add_strings("forward");
        break;
      case A::TENSOR: {
        OnnxValue value;
        make_small(value);
        *attribute->mutable_t() = to_proto(*value.data);
        break;
      }
      default:
        break;
    }
  }

  Choices& choices_;
};

}  // namespace emplace::fuzz

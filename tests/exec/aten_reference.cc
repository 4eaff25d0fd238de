#include "exec/aten_reference.h"

#include <functional>
#include <stdexcept>
#include <tuple>

namespace emplace::exec {
namespace {

using Compute = std::function<Tensors(const AtenCall&)>;
using Table = std::map<std::string, Compute, std::less<>>;

Compute of_one(Tensor (*function)(const AtenCall&)) {
  return [function](const AtenCall& call) { return Tensors{function(call)}; };
}

template <class Tuple>
Tensors defined(const Tuple& results) {
  Tensors list;
  std::apply(
      [&](const auto&... each) {
        for (const Tensor& result : {each...}) {
          if (result.defined()) list.push_back(result);
        }
      },
      results);
  return list;
}

// At the beginning; none are zeros.
Integers half(const Integers& pads) {
  if (pads.empty()) return {0, 0};
  return {pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2)};
}

void add_aten_layout(Table& table) {
  for (const char* type : {"view", "reshape", "_unsafe_view", "unsqueeze", "squeeze"}) {
    table[type] = of_one([](const AtenCall& c) { return c.inputs[0].reshape(c.out()); });
  }
  for (const char* type : {"permute", "transpose", "t"}) {
    table[type] = of_one([](const AtenCall& c) { return c.inputs[0].permute(c.list("perm")); });
  }
  table["expand"] = of_one([](const AtenCall& c) { return c.inputs[0].expand(c.out()); });
  table["clone"] = of_one([](const AtenCall& c) { return c.inputs[0].clone(); });
  table["cat"] = of_one([](const AtenCall& c) { return at::cat(c.inputs, c.integer("axis")); });
  table["stack"] = of_one([](const AtenCall& c) { return at::stack(c.inputs, c.integer("axis")); });
  table["unbind"] = [](const AtenCall& c) { return at::unbind(c.inputs[0], c.integer("axis")); };
  for (const char* type : {"split", "unsafe_split"}) {
    table[type] = [](const AtenCall& c) {
      return at::split(c.inputs[0], c.integer("split_size"), c.integer("axis"));
    };
  }
  table["select"] = of_one([](const AtenCall& c) {
    return at::select(c.inputs[0], c.integer("axis"), c.integer("index"));
  });
  table["slice"] = of_one([](const AtenCall& c) {
    return at::slice(c.inputs[0], c.integer("axis"), c.integer("starts"), c.integer("ends"));
  });
  table["slice_backward"] = of_one([](const AtenCall& c) {
    return at::slice_backward(c.inputs[0], c.list("input_sizes"), c.integer("dim"),
                              c.integer("start"), c.integer("end"), c.integer("step", 1));
  });
  table["triu"] =
      of_one([](const AtenCall& c) { return at::triu(c.inputs[0], c.integer("diagonal")); });
  table["arange"] = of_one([](const AtenCall& c) { return torch::arange(c.integer("end")); });
  table["zeros"] = of_one([](const AtenCall& c) { return torch::zeros(c.out(), torch::kDouble); });
  table["ones"] = of_one([](const AtenCall& c) {
    const bool truth = c.graph.dtype(c.graph.outputs(c.op)[0]) == DType::kBool;
    return torch::ones(c.out(), truth ? torch::kBool : torch::kDouble);
  });
  table["ones_like"] = of_one([](const AtenCall& c) { return at::ones_like(c.inputs[0]); });
  table["empty_like"] = of_one([](const AtenCall& c) { return at::zeros_like(c.inputs[0]); });
  table["embedding"] =
      of_one([](const AtenCall& c) { return at::embedding(c.inputs[0], c.inputs[1]); });
  table["embedding_dense_backward"] = of_one([](const AtenCall& c) {
    return at::embedding_dense_backward(c.inputs[0], c.inputs[1], c.integer("num_weights"),
                                        c.integer("padding_idx"), false);
  });
}

void add_aten_elements(Table& table) {
  table["add"] = of_one([](const AtenCall& c) { return at::add(c.inputs[0], c.other()); });
  table["mul"] = of_one([](const AtenCall& c) { return at::mul(c.inputs[0], c.other()); });
  table["div"] = of_one([](const AtenCall& c) { return at::div(c.inputs[0], c.other()); });
  table["pow"] =
      of_one([](const AtenCall& c) { return at::pow(c.inputs[0], c.real("exponent", 1)); });
  table["relu"] = of_one([](const AtenCall& c) { return at::relu(c.inputs[0]); });
  table["tanh"] = of_one([](const AtenCall& c) { return at::tanh(c.inputs[0]); });
  table["sigmoid"] = of_one([](const AtenCall& c) { return at::sigmoid(c.inputs[0]); });
  table["gelu"] = of_one([](const AtenCall& c) { return at::gelu(c.inputs[0]); });
  table["gelu_backward"] =
      of_one([](const AtenCall& c) { return at::gelu_backward(c.inputs[0], c.inputs[1]); });
  table["tanh_backward"] =
      of_one([](const AtenCall& c) { return at::tanh_backward(c.inputs[0], c.inputs[1]); });
  table["sigmoid_backward"] =
      of_one([](const AtenCall& c) { return at::sigmoid_backward(c.inputs[0], c.inputs[1]); });
  table["threshold_backward"] = of_one([](const AtenCall& c) {
    return at::threshold_backward(c.inputs[0], c.inputs[1], c.real("threshold"));
  });
  table["masked_fill"] = of_one(
      [](const AtenCall& c) { return at::masked_fill(c.inputs[0], c.inputs[1], c.real("value")); });
  table["_softmax"] =
      of_one([](const AtenCall& c) { return at::_softmax(c.inputs[0], c.integer("axis"), false); });
  table["_log_softmax"] = of_one(
      [](const AtenCall& c) { return at::_log_softmax(c.inputs[0], c.integer("axis"), false); });
  table["_softmax_backward_data"] = of_one([](const AtenCall& c) {
    return at::_softmax_backward_data(c.inputs[0], c.inputs[1], c.integer("axis"), torch::kDouble);
  });
  table["_log_softmax_backward_data"] = of_one([](const AtenCall& c) {
    return at::_log_softmax_backward_data(c.inputs[0], c.inputs[1], c.integer("axis"),
                                          torch::kDouble);
  });
  table["sum"] = of_one([](const AtenCall& c) {
    return at::sum(c.inputs[0], c.list("axes"), c.integer("keepdims") != 0);
  });
  table["mean"] = of_one([](const AtenCall& c) {
    return at::mean(c.inputs[0], c.list("axes"), c.integer("keepdims") != 0);
  });
}

void add_aten_layers(Table& table) {
  table["mm"] = of_one([](const AtenCall& c) { return at::mm(c.inputs[0], c.inputs[1]); });
  table["bmm"] = of_one([](const AtenCall& c) { return at::bmm(c.inputs[0], c.inputs[1]); });
  table["addmm"] =
      of_one([](const AtenCall& c) { return at::addmm(c.inputs[0], c.inputs[1], c.inputs[2]); });
  table["convolution"] = of_one([](const AtenCall& c) {
    return at::convolution(c.inputs[0], c.inputs[1], {}, c.list("strides"), half(c.list("pads")),
                           c.list("dilations"), false, {0, 0}, c.integer("group", 1));
  });
  table["convolution_backward"] = [](const AtenCall& c) {
    return defined(at::convolution_backward(
        c.inputs[0], c.inputs[1], c.inputs[2], c10::nullopt, c.list("strides"),
        half(c.list("pads")), c.list("dilations"), false, {0, 0}, c.integer("group", 1), c.mask()));
  };
  table["max_pool2d_with_indices"] = [](const AtenCall& c) {
    return defined(at::max_pool2d_with_indices(c.inputs[0], c.list("kernel_shape"),
                                               c.list("strides"), half(c.list("pads"))));
  };
  table["max_pool2d_with_indices_backward"] = of_one([](const AtenCall& c) {
    return at::max_pool2d_with_indices_backward(
        c.inputs[0], c.inputs[1], c.list("kernel_shape"), c.list("strides"), half(c.list("pads")),
        c.list("dilations"), c.integer("ceil_mode") != 0, c.inputs[2]);
  });
  table["avg_pool2d"] = of_one([](const AtenCall& c) {
    return at::avg_pool2d(c.inputs[0], c.list("kernel_shape"), c.list("strides"),
                          half(c.list("pads")), c.integer("ceil_mode") != 0,
                          c.integer("count_include_pad", 1) != 0);
  });
  table["avg_pool2d_backward"] = of_one([](const AtenCall& c) {
    return at::avg_pool2d_backward(
        c.inputs[0], c.inputs[1], c.list("kernel_shape"), c.list("strides"), half(c.list("pads")),
        c.integer("ceil_mode") != 0, c.integer("count_include_pad", 1) != 0, c10::nullopt);
  });
  table["native_layer_norm"] = [](const AtenCall& c) {
    return defined(at::native_layer_norm(c.inputs[0], c.list("normalized_shape"), c.inputs[1],
                                         c.inputs[2], c.real("epsilon")));
  };
  table["native_layer_norm_backward"] = [](const AtenCall& c) {
    return defined(at::native_layer_norm_backward(c.inputs[0], c.inputs[1],
                                                  c.list("normalized_shape"), c.inputs[2],
                                                  c.inputs[3], c.inputs[4], c.inputs[5], c.mask()));
  };
  table["native_batch_norm"] = [](const AtenCall& c) {
    const Tensor mean = c.inputs[3].clone();
    const Tensor variance = c.inputs[4].clone();
    Tensors results = defined(at::native_batch_norm(c.inputs[0], c.inputs[1], c.inputs[2], mean,
                                                    variance, c.integer("training") != 0,
                                                    c.real("momentum"), c.real("epsilon")));
    results.push_back(mean);
    results.push_back(variance);
    return results;
  };
  table["native_batch_norm_backward"] = [](const AtenCall& c) {
    return defined(at::native_batch_norm_backward(
        c.inputs[0], c.inputs[1], c.inputs[2], c.inputs[3], c.inputs[4], c.inputs[5], c.inputs[6],
        c.integer("train") != 0, c.real("epsilon"), c.mask()));
  };
  table["nll_loss_forward"] = [](const AtenCall& c) {
    return defined(at::nll_loss_forward(c.inputs[0], c.inputs[1], {}, c.integer("reduction"),
                                        c.integer("ignore_index")));
  };
  table["nll_loss_backward"] = of_one([](const AtenCall& c) {
    return at::nll_loss_backward(c.inputs[0], c.inputs[1], c.inputs[2], {}, c.integer("reduction"),
                                 c.integer("ignore_index"), c.inputs[3]);
  });
}

}  // namespace

Tensors compute_aten(const AtenCall& call) {
  static const Table table = [] {
    Table made;
    add_aten_layout(made);
    add_aten_elements(made);
    add_aten_layers(made);
    return made;
  }();
  const auto found = table.find(call.graph.type(call.op));
  if (found == table.end()) {
    throw std::runtime_error("no reference for " + std::string(call.graph.type(call.op)));
  }
  return found->second(call);
}

}  // namespace emplace::exec

// emplace/model.h and emplace/granularity.h.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bindings.h"

namespace emplace::python {
namespace {

struct ModelHandle {
  GraphHandle graph;
  std::optional<ClusterHandle> cluster;
  std::vector<std::string> notes;
};

Optimizer optimizer_of(const std::string& name) {
  if (name == "sgd") return Optimizer::kSgd;
  if (name == "momentum") return Optimizer::kMomentum;
  if (name == "adam") return Optimizer::kAdam;
  throw Error(ErrorKind::kOption, "optimizer '" + name + "': expected sgd, momentum or adam");
}

Precision precision_of(const std::string& name) {
  if (name == "float32") return Precision::kFloat32;
  if (name == "float16") return Precision::kFloat16;
  if (name == "bfloat16") return Precision::kBFloat16;
  throw Error(ErrorKind::kOption,
              "precision '" + name + "': expected float32, float16 or bfloat16");
}

ModelHandle model_at(const std::filesystem::path& path_or_name,
                     const std::map<std::string, std::int64_t, std::less<>>& dims, bool training,
                     const std::optional<std::string>& optimizer, bool colocate_gradients,
                     const std::vector<std::string>& recompute,
                     const std::optional<std::string>& precision) {
  ReadOptions options{.dims = dims, .training = training};
  options.training_options.colocate_gradients = colocate_gradients;
  options.training_options.recompute = recompute;
  if (optimizer) {
    options.training_options.optimizer = optimizer_of(*optimizer);
    options.optimizer_chosen = true;
  }
  if (precision) options.precision = precision_of(*precision);
  const py::gil_scoped_release release;
  Model model = read_model(path_or_name.string(), options);
  ModelHandle handle{{model.graph}, std::nullopt, model.notes};
  if (model.cluster) handle.cluster = ClusterHandle{model.cluster};
  return handle;
}

template <class Id>
std::vector<std::uint32_t> ids_of(const std::vector<Id>& ids) {
  return {ids.begin(), ids.end()};
}

std::vector<std::string> op_names(const GraphHandle& handle) {
  const GraphSummary summary = summarize(*handle.graph);
  std::vector<std::string> names;
  names.reserve(summary.ops);
  for (OpId op = 0; op < summary.ops; ++op) names.push_back(op_of(*handle.graph, op).name);
  return names;
}

void bind_views(py::module_& module) {
  py::class_<OpView>(module, "OpView", "An op of a graph; inputs and outputs are tensor numbers.")
      .def_readonly("name", &OpView::name)
      .def_readonly("type", &OpView::type)
      .def_readonly("phase", &OpView::phase)
      .def_readonly("module", &OpView::module)
      .def_property_readonly("inputs", [](const OpView& op) { return ids_of(op.inputs); })
      .def_property_readonly("outputs", [](const OpView& op) { return ids_of(op.outputs); })
      .def("__repr__", [](const OpView& op) { return "<Op " + op.name + " (" + op.type + ")>"; });
  py::class_<TensorView>(module, "TensorView", "A tensor of a graph, between op numbers.")
      .def_property_readonly(
          "producer", [](const TensorView& t) { return static_cast<std::uint32_t>(t.producer); })
      .def_property_readonly("consumers", [](const TensorView& t) { return ids_of(t.consumers); })
      .def_readonly("shape", &TensorView::shape)
      .def_readonly("dtype", &TensorView::dtype, "Empty where only its size is known.")
      .def_readonly("bytes", &TensorView::bytes);
  py::class_<ZooModel>(module, "ZooModel", "A model of the zoo.")
      .def_readonly("name", &ZooModel::name)
      .def_readonly("summary", &ZooModel::summary)
      .def_readonly("source", &ZooModel::source)
      .def_readonly("parameters", &ZooModel::parameters)
      .def_readonly("options", &ZooModel::options)
      .def("__repr__", [](const ZooModel& model) { return "<ZooModel " + model.name + ">"; });
}

void bind_graph(py::module_& module) {
  const auto summary = [](auto member) {
    return [member](const GraphHandle& g) { return summarize(*g.graph).*member; };
  };
  py::class_<GraphHandle>(module, "Graph",
                          "A model's step: ops that produce and consume tensors. Immutable.")
      .def_property_readonly("name", summary(&GraphSummary::name))
      .def_property_readonly(
          "num_ops", [](const GraphHandle& g) -> std::uint32_t { return summarize(*g.graph).ops; })
      .def_property_readonly(
          "num_tensors",
          [](const GraphHandle& g) -> std::uint32_t { return summarize(*g.graph).tensors; })
      .def_property_readonly("parameters", summary(&GraphSummary::parameters),
                             "Numbers that are trained.")
      .def_property_readonly("flops", summary(&GraphSummary::flops),
                             "Of a step, as far as they are known.")
      .def_property_readonly("training", summary(&GraphSummary::training),
                             "Whether it has a backward pass.")
      .def_property_readonly("op_names", &op_names)
      .def(
          "op", [](const GraphHandle& g, std::uint32_t op) { return op_of(*g.graph, op); },
          py::arg("number"))
      .def(
          "tensor",
          [](const GraphHandle& g, std::uint32_t tensor) { return tensor_of(*g.graph, tensor); },
          py::arg("number"))
      .def(
          "keep_whole",
          [](const GraphHandle& g, const std::string& granularity) {
            return GraphHandle{keep_whole(g.graph, parse_granularity(granularity))};
          },
          py::arg("granularity") = "module",
          "The same graph, whose modules ('module') or layers ('layer') stay on one device.")
      .def(
          "to_json", [](const GraphHandle& g) { return graph_json(*g.graph); },
          "The graph as emplace.graph/1.")
      .def_static(
          "from_json",
          [](const std::string& text) {
            const py::gil_scoped_release release;
            return GraphHandle{parse_graph(text)};
          },
          py::arg("text"), "The graph of an emplace.graph/1 file's content.")
      .def("__len__", [](const GraphHandle& g) -> std::uint32_t { return summarize(*g.graph).ops; })
      .def("__repr__", [](const GraphHandle& g) {
        const GraphSummary s = summarize(*g.graph);
        return "<Graph " + s.name + ": " + std::to_string(s.ops) + " ops>";
      });
}

}  // namespace

void bind_models(py::module_& module) {
  bind_views(module);
  bind_graph(module);
  py::class_<ModelHandle>(module, "Model", "What was read: a graph, and what came with it.")
      .def_readonly("graph", &ModelHandle::graph)
      .def_readonly("cluster", &ModelHandle::cluster, "Where the file brings one; else None.")
      .def_readonly("notes", &ModelHandle::notes, "What its user should know.")
      .def("__repr__", [](const ModelHandle& model) {
        return "<Model " + summarize(*model.graph.graph).name + ">";
      });
  module.def("read_model", &model_at, py::arg("path_or_name"), py::kw_only(),
             py::arg("dims") = std::map<std::string, std::int64_t, std::less<>>{},
             py::arg("training") = false, py::arg("optimizer") = py::none(),
             py::arg("colocate_gradients") = false,
             py::arg("recompute") = std::vector<std::string>{}, py::arg("precision") = py::none(),
             R"(A model from a file (emplace.graph/1, ONNX, ...) or by its name.

>>> import emplace
>>> emplace.read_model("zoo:resnet-50:batch=64").graph.parameters
25557032

`training` makes the training step of a forward graph; `dims` are an ONNX file's symbolic dimensions;
`recompute` has patterns of modules whose activations are computed again.
)");
  module.def("zoo_models", &zoo_models, "What `zoo` and 'zoo:NAME' can name, with options.");
}

}  // namespace emplace::python

// Graphs that are built in code (emplace/model.h).
#include <pybind11/stl.h>

#include "bindings.h"

namespace emplace::python {
namespace {

void bind_tensor_descriptions(py::module_& module) {
  py::class_<TensorDescription>(
      module, "TensorDescription",
      "A tensor that an op writes: either `shape` and `dtype`, by PyTorch's names, or `bytes`.")
      .def(py::init(
               [](std::vector<std::int64_t> shape, std::string dtype, std::optional<Bytes> bytes) {
                 return TensorDescription{std::move(shape), std::move(dtype), bytes};
               }),
           py::arg("shape") = std::vector<std::int64_t>{}, py::arg("dtype") = "float32",
           py::kw_only(), py::arg("bytes") = py::none())
      .def_readwrite("shape", &TensorDescription::shape)
      .def_readwrite("dtype", &TensorDescription::dtype)
      .def_readwrite("bytes", &TensorDescription::bytes);
  py::class_<TensorReference>(
      module, "TensorReference",
      "The `output`-th tensor that op `op`, by its place in the description, writes. The op's "
      "number alone stands for its first.")
      .def(py::init([](std::uint32_t op, std::uint32_t output) {
             return TensorReference{op, output};
           }),
           py::arg("op"), py::arg("output") = 0)
      .def_property(
          "op", [](const TensorReference& r) { return static_cast<std::uint32_t>(r.op); },
          [](TensorReference& r, std::uint32_t op) { r.op = op; })
      .def_readwrite("output", &TensorReference::output);
  py::implicitly_convertible<py::int_, TensorReference>();
}

}  // namespace

void bind_building(py::module_& module) {
  bind_tensor_descriptions(module);
  using Times = std::map<std::string, double>;
  py::class_<OpDescription>(
      module, "OpDescription",
      "An op of a graph that is built. `type` is input, parameter, buffer, constant or any "
      "operator's name, `phase` forward, backward or update; `time_us` has measured times by the "
      "names or kinds of devices.")
      .def(py::init([](std::string name, std::string type, std::vector<TensorReference> inputs,
                       std::vector<TensorDescription> outputs, std::string phase, std::string of,
                       std::optional<std::int64_t> flops, Times time_us, Bytes persistent_bytes,
                       std::string colocate, std::vector<std::string> devices) {
             return OpDescription{std::move(name),
                                  std::move(type),
                                  std::move(inputs),
                                  std::move(outputs),
                                  std::move(phase),
                                  std::move(of),
                                  flops,
                                  std::move(time_us),
                                  persistent_bytes,
                                  std::move(colocate),
                                  std::move(devices)};
           }),
           py::arg("name"), py::arg("type"), py::arg("inputs") = std::vector<TensorReference>{},
           py::arg("outputs") = std::vector<TensorDescription>{}, py::kw_only(),
           py::arg("phase") = "forward", py::arg("module") = "", py::arg("flops") = py::none(),
           py::arg("time_us") = Times{}, py::arg("persistent_bytes") = 0, py::arg("colocate") = "",
           py::arg("devices") = std::vector<std::string>{})
      .def_readwrite("name", &OpDescription::name)
      .def_readwrite("type", &OpDescription::type)
      .def_readwrite("inputs", &OpDescription::inputs)
      .def_readwrite("outputs", &OpDescription::outputs)
      .def_readwrite("phase", &OpDescription::phase)
      .def_readwrite("module", &OpDescription::module)
      .def_readwrite("flops", &OpDescription::flops)
      .def_readwrite("time_us", &OpDescription::time_us)
      .def_readwrite("persistent_bytes", &OpDescription::persistent_bytes)
      .def_readwrite("colocate", &OpDescription::colocate)
      .def_readwrite("devices", &OpDescription::devices);
  module.def(
      "build_graph",
      [](const std::string& name, const std::vector<OpDescription>& ops) {
        return GraphHandle{build_graph(name, ops)};
      },
      py::arg("name"), py::arg("ops"),
      R"(A graph from its ops, in topological order.

>>> import emplace
>>> emplace.build_graph("pair", [
...     emplace.OpDescription("x", "input", [], [emplace.TensorDescription([64, 64])]),
...     emplace.OpDescription("square", "Mul", [0, 0], [emplace.TensorDescription([64, 64])]),
... ])
<Graph pair: 2 ops>
)");
}

}  // namespace emplace::python

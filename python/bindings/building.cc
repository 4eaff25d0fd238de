// Graphs that are built in code (emplace/model.h).
#include <limits>
#include <map>

#include <pybind11/stl.h>

#include "bindings.h"

namespace emplace::python {
namespace {

std::string shown(const py::handle& value) {
  return py::repr(value).cast<std::string>();
}

// What operator.index takes, numpy's integers too.
std::uint32_t number_of(const py::handle& value, const std::string& what) {
  constexpr long long kLargest = std::numeric_limits<std::uint32_t>::max();
  if (PyIndex_Check(value.ptr()) != 0) {
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow == 0 && number >= 0 && number <= kLargest) {
      return static_cast<std::uint32_t>(number);
    }
  }
  throw Error(ErrorKind::kInput,
              what + ": expected a whole number that is not negative, not " + shown(value));
}

std::vector<TensorReference> references_of(const py::iterable& inputs, const std::string& op) {
  std::vector<TensorReference> references;
  for (const py::handle input : inputs) {
    references.push_back(py::isinstance<TensorReference>(input)
                             ? input.cast<TensorReference>()
                             : TensorReference{number_of(input, "op '" + op + "': inputs"), 0});
  }
  return references;
}

// What is read cannot be written into, which would change a copy.
template <class Values>
py::tuple tuple_of(const Values& values) {
  return py::tuple(py::cast(values));
}

using Times = std::map<std::string, double>;

Times times_of(const py::object& times) {
  try {
    return py::dict(times).cast<Times>();
  } catch (const py::cast_error&) {
    throw Error(ErrorKind::kInput,
                "time_us: expected microseconds by names or kinds of devices, not " + shown(times));
  }
}

py::object read_only(const Times& times) {
  return py::reinterpret_steal<py::object>(PyDictProxy_New(py::cast(times).ptr()));
}

void bind_tensor_descriptions(py::module_& module) {
  py::class_<TensorDescription>(
      module, "TensorDescription",
      "A tensor that an op writes: either `shape` and `dtype`, by PyTorch's names, or `bytes`. "
      "Immutable.")
      .def(py::init(
               [](std::vector<std::int64_t> shape, std::string dtype, std::optional<Bytes> bytes) {
                 return TensorDescription{std::move(shape), std::move(dtype), bytes};
               }),
           py::arg("shape") = std::vector<std::int64_t>{}, py::arg("dtype") = "float32",
           py::kw_only(), py::arg("bytes") = py::none())
      .def_property_readonly("shape",
                             [](const TensorDescription& tensor) { return tuple_of(tensor.shape); })
      .def_readonly("dtype", &TensorDescription::dtype)
      .def_readonly("bytes", &TensorDescription::bytes);
  py::class_<TensorReference>(
      module, "TensorReference",
      "The `output`-th tensor that op `op`, by its place in the description, writes. The op's "
      "number alone stands for its first. Immutable.")
      .def(py::init([](const py::object& op, const py::object& output) {
             return TensorReference{number_of(op, "op"), number_of(output, "output")};
           }),
           py::arg("op"), py::arg("output") = 0)
      .def_property_readonly(
          "op", [](const TensorReference& r) { return static_cast<std::uint32_t>(r.op); })
      .def_readonly("output", &TensorReference::output);
}

}  // namespace

void bind_building(py::module_& module) {
  bind_tensor_descriptions(module);
  py::class_<OpDescription>(
      module, "OpDescription",
      "An op of a graph that is built. `type` is input, parameter, buffer, constant or any "
      "operator's name, `phase` forward, backward or update; `time_us` has measured times by the "
      "names or kinds of devices. Attributes are assigned as wholes: lists are given as tuples.")
      .def(py::init([](std::string name, std::string type, const py::iterable& inputs,
                       std::vector<TensorDescription> outputs, std::string phase, std::string of,
                       std::optional<std::int64_t> flops, const py::object& time_us,
                       Bytes persistent_bytes, std::string colocate,
                       std::vector<std::string> devices) {
             std::vector<TensorReference> references = references_of(inputs, name);
             return OpDescription{std::move(name),
                                  std::move(type),
                                  std::move(references),
                                  std::move(outputs),
                                  std::move(phase),
                                  std::move(of),
                                  flops,
                                  times_of(time_us),
                                  persistent_bytes,
                                  std::move(colocate),
                                  std::move(devices)};
           }),
           py::arg("name"), py::arg("type"), py::arg("inputs") = py::tuple(),
           py::arg("outputs") = std::vector<TensorDescription>{}, py::kw_only(),
           py::arg("phase") = "forward", py::arg("module") = "", py::arg("flops") = py::none(),
           py::arg("time_us") = py::dict(), py::arg("persistent_bytes") = 0,
           py::arg("colocate") = "", py::arg("devices") = std::vector<std::string>{})
      .def_readwrite("name", &OpDescription::name)
      .def_readwrite("type", &OpDescription::type)
      .def_property(
          "inputs", [](const OpDescription& op) { return tuple_of(op.inputs); },
          [](OpDescription& op, const py::iterable& inputs) {
            op.inputs = references_of(inputs, op.name);
          })
      .def_property(
          "outputs", [](const OpDescription& op) { return tuple_of(op.outputs); },
          [](OpDescription& op, std::vector<TensorDescription> outputs) {
            op.outputs = std::move(outputs);
          })
      .def_readwrite("phase", &OpDescription::phase)
      .def_readwrite("module", &OpDescription::module)
      .def_readwrite("flops", &OpDescription::flops)
      .def_property(
          "time_us", [](const OpDescription& op) { return read_only(op.time_us); },
          [](OpDescription& op, const py::object& times) { op.time_us = times_of(times); })
      .def_readwrite("persistent_bytes", &OpDescription::persistent_bytes)
      .def_readwrite("colocate", &OpDescription::colocate)
      .def_property(
          "devices", [](const OpDescription& op) { return tuple_of(op.devices); },
          [](OpDescription& op, std::vector<std::string> devices) {
            op.devices = std::move(devices);
          });
  module.def(
      "build_graph",
      [](const std::string& name, const std::vector<OpDescription>& ops) {
        const py::gil_scoped_release release;
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

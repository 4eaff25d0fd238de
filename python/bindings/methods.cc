// emplace/search.h: the methods that there are.
#include <pybind11/stl.h>

#include "bindings.h"

namespace emplace::python {

void bind_methods(py::module_& module) {
  py::class_<OptionInfo>(module, "OptionInfo", "An option of a placer or of a zoo model.")
      .def_readonly("name", &OptionInfo::name)
      .def_readonly("type", &OptionInfo::type)
      .def_readonly("default_value", &OptionInfo::default_value)
      .def_readonly("range", &OptionInfo::range)
      .def_readonly("help", &OptionInfo::help)
      .def_readonly("paper", &OptionInfo::paper, "Its value with preset='paper'; may be empty.")
      .def("__repr__", [](const OptionInfo& option) {
        return "<Option " + option.name + "=" + option.default_value + ">";
      });
  py::class_<MethodInfo>(module, "MethodInfo", "A placer, or a way to partition.")
      .def_readonly("key", &MethodInfo::key)
      .def_readonly("family", &MethodInfo::family)
      .def_readonly("summary", &MethodInfo::summary)
      .def_readonly("reference", &MethodInfo::reference)
      .def_readonly("randomized", &MethodInfo::randomized)
      .def_readonly("learns", &MethodInfo::learns)
      .def_readonly("options", &MethodInfo::options)
      .def("__repr__", [](const MethodInfo& info) { return "<Method " + info.key + ">"; });
  module.def("list_placers", &list_placers, R"(The placers, by family and key.

>>> import emplace
>>> "heft" in [info.key for info in emplace.list_placers()]
True
)");
  module.def("list_partition_methods", &list_partition_methods, "The ways to partition.");
}

}  // namespace emplace::python

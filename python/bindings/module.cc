// The module emplace._emplace: the public C++ API for Python. The package `emplace` is what people
// import; it adds what is easier said in Python.
#include "bindings.h"

PYBIND11_MODULE(_emplace, module) {
  using namespace emplace::python;
  module.doc() = "The C++ part of the package emplace.";
  module.def("version", &emplace::version, "The version of the library, such as '0.1.0'.");
  bind_errors(module);
  bind_methods(module);
  bind_clusters(module);
  bind_models(module);
  bind_building(module);
  bind_problems(module);
  bind_simulation(module);
  bind_placement(module);
  bind_environments(module);
  bind_execution(module);
  bind_partition(module);
  bind_training(module);
}

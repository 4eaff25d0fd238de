// What the Python module is made of: a function for each concept, and the types that Python holds.
// Graphs, clusters and problems are opaque in the public headers, so Python holds pointers to them.
#pragma once

#include <memory>
#include <string>

#include <emplace/emplace.h>
#include <pybind11/pybind11.h>

namespace emplace::python {

namespace py = pybind11;

struct GraphHandle {
  std::shared_ptr<const Graph> graph;
};

struct ClusterHandle {
  std::shared_ptr<const Cluster> cluster;
};

struct ProblemHandle {
  std::shared_ptr<const Problem> problem;
  std::string in_place = "sums";  // as it was compiled

  std::size_t num_ops() const { return size_of(*problem).ops; }
  std::size_t num_devices() const { return size_of(*problem).devices; }
  // They live as long as the problem.
  GraphHandle graph() const { return {{problem, &graph_of(*problem)}}; }
  ClusterHandle cluster() const { return {{problem, &cluster_of(*problem)}}; }
};

void bind_errors(py::module_& module);
void bind_methods(py::module_& module);
void bind_clusters(py::module_& module);
void bind_models(py::module_& module);
void bind_building(py::module_& module);
void bind_problems(py::module_& module);
void bind_simulation(py::module_& module);
void bind_placement(py::module_& module);
void bind_environments(py::module_& module);
void bind_execution(py::module_& module);
void bind_partition(py::module_& module);
void bind_training(py::module_& module);

}  // namespace emplace::python

// emplace/problem.h.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "arrays.h"

namespace emplace::python {
namespace {

CostMode mode_of(const std::string& name) {
  if (name == "auto") return CostMode::kAuto;
  if (name == "measured") return CostMode::kMeasured;
  if (name == "analytic") return CostMode::kAnalytic;
  throw Error(ErrorKind::kOption, "cost '" + name + "': expected auto, measured or analytic");
}

InPlace in_place_of(const std::string& name) {
  if (name == "none") return InPlace::kNone;
  if (name == "sums") return InPlace::kSums;
  if (name == "all") return InPlace::kAll;
  throw Error(ErrorKind::kOption, "in_place '" + name + "': expected none, sums or all");
}

using OwnCosts =
    std::function<std::optional<double>(const OpView&, const std::string&, const std::string&)>;

ProblemHandle compile_handles(const GraphHandle& graph, const ClusterHandle& cluster,
                              const std::string& cost, bool fuse,
                              const std::vector<std::string>& pin,
                              const std::vector<std::string>& forbid, const OwnCosts& own,
                              const std::string& in_place) {
  CompileOptions options{.cost = mode_of(cost), .fuse = fuse, .in_place = in_place_of(in_place)};
  for (const std::string& rule : pin) {
    options.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kPin, rule));
  }
  for (const std::string& rule : forbid) {
    options.rules.push_back(DeviceRule::parse(DeviceRule::Kind::kForbid, rule));
  }
  if (!own) {
    const py::gil_scoped_release release;
    return {compile(graph.graph, cluster.cluster, options), in_place};
  }
  options.sources.push_back(
      costs_from("own", [&](const Graph& of, OpId op, const std::string& device,
                            const std::string& kind) { return own(op_of(of, op), device, kind); }));
  if (options.cost != CostMode::kAnalytic) options.sources.push_back(measured_costs());
  if (options.cost != CostMode::kMeasured) options.sources.push_back(analytic_costs());
  return {compile(graph.graph, cluster.cluster, options), in_place};
}

py::array_t<std::int64_t> durations(const ProblemHandle& handle) {
  load_numpy();
  const auto num_ops = static_cast<py::ssize_t>(handle.num_ops());
  const auto num_devices = static_cast<py::ssize_t>(handle.num_devices());
  py::array_t<std::int64_t> array({num_ops, num_devices});
  auto view = array.mutable_unchecked<2>();
  for (py::ssize_t op = 0; op < num_ops; ++op) {
    for (py::ssize_t device = 0; device < num_devices; ++device) {
      view(op, device) = duration_of(*handle.problem, op, device);
    }
  }
  return array;
}

}  // namespace

void bind_problems(py::module_& module) {
  py::class_<ProblemHandle>(module, "Problem",
                            "A graph on a cluster with every duration known. `compile` makes one.")
      .def_property_readonly("graph", &ProblemHandle::graph)
      .def_property_readonly("cluster", &ProblemHandle::cluster)
      .def_property_readonly(
          "groups",
          [](const ProblemHandle& p) { return array_of<std::int32_t>(groups_of(*p.problem)); },
          "The group of every op, int32: ops of a group must share a device.")
      .def_property_readonly("durations", &durations,
                             "Nanoseconds of every op on every device, int64[op, device].")
      .def_readonly("in_place", &ProblemHandle::in_place, "Which ops write over inputs.")
      .def(
          "describe", [](const ProblemHandle& p) { return describe(*p.problem); },
          "What is being worked on, and how op times are known.")
      .def("__repr__", [](const ProblemHandle& p) {
        return "<Problem: " + summarize(graph_of(*p.problem)).name + " on " +
               name_of(cluster_of(*p.problem)) + ">";
      });
  module.def("compile", &compile_handles, py::arg("graph"), py::arg("cluster"), py::arg("cost"),
             py::arg("fuse"), py::arg("pin"), py::arg("forbid"), py::arg("costs"),
             py::arg("in_place"));
}

}  // namespace emplace::python

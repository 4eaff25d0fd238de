// emplace/environment.h and emplace/placer_function.h.
#include "environment.h"

#include <limits>

#include <pybind11/stl.h>

namespace emplace::python {
namespace {

py::array_t<std::int64_t> matrix(const std::vector<Nanoseconds>& values, std::size_t columns) {
  load_numpy();
  py::array_t<std::int64_t> array({values.size() / columns, columns});
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

py::dict features(const ProblemHandle& problem) {
  GroupFeatures found;
  {
    const py::gil_scoped_release release;
    found = features_of(*problem.problem);
  }
  load_numpy();
  const std::size_t num_devices = problem.num_devices();
  py::array_t<bool> allowed({found.allowed.size() / num_devices, num_devices});
  std::copy(found.allowed.begin(), found.allowed.end(), allowed.mutable_data());
  py::array_t<std::int32_t> edges({found.edge_from.size(), std::size_t{2}});
  for (std::size_t i = 0; i < found.edge_from.size(); ++i) {
    edges.mutable_data()[2 * i] = found.edge_from[i];
    edges.mutable_data()[2 * i + 1] = found.edge_to[i];
  }
  py::dict features;
  features["names"] = found.names;
  features["types"] = found.types;
  features["modules"] = found.modules;
  features["ops"] = array_of<std::int32_t>(found.ops);
  features["durations"] = matrix(found.durations, num_devices);
  features["allowed"] = allowed;
  features["resident"] = array_of<std::int64_t>(found.resident);
  features["outputs"] = array_of<std::int64_t>(found.outputs);
  features["before"] = array_of<std::int64_t>(found.before);
  features["after"] = array_of<std::int64_t>(found.after);
  features["edges"] = edges;
  features["edge_bytes"] = array_of<std::int64_t>(found.edge_bytes);
  return features;
}

py::tuple arrays_of(const std::vector<StepValue>& values, std::size_t count) {
  load_numpy();
  py::array_t<std::int64_t> steps(static_cast<py::ssize_t>(count));
  py::array_t<std::int64_t> overflows(static_cast<py::ssize_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    steps.mutable_data()[i] = values[i].step;
    overflows.mutable_data()[i] = values[i].overflow;
  }
  return py::make_tuple(steps, overflows);
}

struct EnvironmentHandle {
  Environment environment;
  ProblemHandle problem;
  std::size_t num_groups;
};

py::tuple evaluate(const EnvironmentHandle& handle, const py::object& placements, int threads) {
  const DeviceRows rows = device_rows(placements, handle.num_groups);
  std::vector<StepValue> values(rows.count());
  {
    const py::gil_scoped_release release;
    handle.environment.evaluate(rows.numbers(), values, threads);
  }
  return arrays_of(values, values.size());
}

py::tuple evaluate_in(SessionHandle& handle, const py::object& placements) {
  const DeviceRows rows = device_rows(placements, size_of(*handle.get().problem()).groups);
  std::vector<StepValue> values(rows.count());
  std::size_t done = 0;
  {
    const py::gil_scoped_release release;
    done = handle.get().evaluate(rows.numbers(), values);
  }
  return arrays_of(values, done);
}

}  // namespace

DeviceRows device_rows(const py::object& object, std::size_t num_groups) {
  load_numpy();
  py::array array = py::array::ensure(object);
  if (array && array.ndim() == 2 && array.dtype().is(py::dtype::of<std::int32_t>()) &&
      (array.flags() & py::array::c_style) != 0 &&
      static_cast<std::size_t>(array.shape(1)) == num_groups) {
    return {py::array_t<std::int32_t, py::array::c_style>(array)};
  }
  PyErr_Clear();
  const auto wide = whole_numbers(object, 2, "placements");
  if (static_cast<std::size_t>(wide.shape(1)) != num_groups) {
    throw Error(ErrorKind::kInput, "placements: expected rows of " + std::to_string(num_groups) +
                                       " devices, one for each group, not " +
                                       std::to_string(wide.shape(1)));
  }
  py::array_t<std::int32_t, py::array::c_style> narrow({wide.shape(0), wide.shape(1)});
  for (py::ssize_t i = 0; i < wide.size(); ++i) {
    // What is no device at all stays none when it is made narrower.
    narrow.mutable_data()[i] = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(wide.data()[i], -1, std::numeric_limits<std::int32_t>::max()));
  }
  return {narrow};
}

void bind_environments(py::module_& module) {
  module.def("features_of", &features, py::arg("problem"),
             R"(What is known of a problem before anything is placed, by group, as arrays.

Groups of ops that must share a device are what is decided about. `durations` and `allowed` are by
group and device, `edges` has the groups between which tensors of `edge_bytes` go.

>>> import emplace
>>> features = emplace.features_of(emplace.compile("zoo:alexnet", "2xp100"))
>>> features["durations"].shape == features["allowed"].shape
True
)");
  py::class_<EnvironmentHandle>(module, "Evaluations")
      .def(py::init([](const ProblemHandle& problem, const std::string& objective) {
             return EnvironmentHandle{Environment(problem.problem, objective_from(objective)),
                                      problem, size_of(*problem.problem).groups};
           }),
           py::arg("problem"), py::arg("objective"))
      .def("evaluate", &evaluate, py::arg("placements"), py::arg("threads"))
      .def_property_readonly("evaluations",
                             [](const EnvironmentHandle& e) { return e.environment.evaluations(); })
      .def_readonly("num_groups", &EnvironmentHandle::num_groups)
      .def(
          "placement",
          [](const EnvironmentHandle& e, const py::object& devices) {
            const auto numbers = whole_numbers(devices, 1, "placement");
            const DeviceRows row = device_rows(
                numbers.attr("reshape")(py::make_tuple(1, numbers.size())), e.num_groups);
            return array_of<std::int32_t>(e.environment.placement(row.numbers()));
          },
          py::arg("devices"));
  py::class_<SessionHandle>(module, "PlacerSession",
                            "What a placer that is a Python function is given.")
      .def_property_readonly(
          "problem",
          [](const SessionHandle& s) { return ProblemHandle{.problem = s.get().problem()}; },
          "With only the devices that may be used.")
      .def_property_readonly("seed", [](const SessionHandle& s) { return s.get().seed(); })
      .def_property_readonly("seconds",
                             [](const SessionHandle& s) { return s.get().budget().seconds; })
      .def_property_readonly("max_evaluations",
                             [](const SessionHandle& s) { return s.get().budget().evaluations; })
      .def_property_readonly(
          "spent", [](const SessionHandle& s) { return s.get().spent(); },
          "Whether the search should end: nothing more is evaluated.")
      .def_property_readonly("num_groups",
                             [](const SessionHandle& s) -> std::uint32_t {
                               return size_of(*s.get().problem()).groups;
                             })
      .def_property_readonly(
          "starts",
          [](const SessionHandle& s) {
            py::list starts;
            for (const auto& start : s.get().starts()) {
              starts.append(array_of<std::int32_t>(start));
            }
            return starts;
          },
          "Devices by group, to begin from.")
      .def("evaluate", &evaluate_in, py::arg("placements"),
           "Step times (or periods) and bytes above capacity of rows of devices by group; fewer "
           "than rows where the budget is spent. The best of all is remembered.");
}

}  // namespace emplace::python

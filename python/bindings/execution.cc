// emplace/execute.h.
#include <pybind11/stl.h>

#include "answer.h"
#include "arguments.h"
#include "arrays.h"
#include "work.h"

namespace emplace::python {
namespace {

struct ExecutionHandle {
  ExecutionResult result;
  ProblemHandle problem;

  TimelineHandle timeline(const Timeline& of) const {
    if (!result.fits()) throw Error(ErrorKind::kInput, "nothing was measured: " + result.failure());
    return {of, problem, result.placement()};
  }
};

ExecutionHandle run_placement(const ProblemHandle& problem, const py::object& placement,
                              const py::object& priorities, const py::dict& given) {
  Work work(given["progress"]);
  const Placement devices = placement_from(placement, problem);
  const Schedule schedule = schedule_from(priorities, problem);
  RunOptions options;
  options.steps = argument<int>(given, "steps");
  options.warm_up = argument<int>(given, "warm_up");
  options.numbers = argument<std::string>(given, "numbers");
  options.fixed_order = argument<bool>(given, "fixed_order");
  options.launch_each = argument<bool>(given, "launch_each");
  options.limit_memory = argument<bool>(given, "limit_memory");
  options.seed = argument<std::uint64_t>(given, "seed");
  options.cancelled = work.cancelled();
  options.on_progress = work.listener();
  std::optional<ExecutionResult> result;
  work.run([&] { result = run(problem.problem, devices, schedule, options); });
  return {*result, problem};
}

ProfileResult profile_problem(const ProblemHandle& problem, const py::dict& given) {
  Work work(given["progress"]);
  ProfileOptions options;
  options.phases = argument<int>(given, "phases");
  options.steps = argument<int>(given, "steps");
  options.warm_up = argument<int>(given, "warm_up");
  options.proposals = argument<int>(given, "proposals");
  options.numbers = argument<std::string>(given, "numbers");
  options.busy = argument<bool>(given, "busy");
  options.cancelled = work.cancelled();
  options.on_progress = work.listener();
  std::optional<ProfileResult> result;
  work.run([&] { result = profile(problem.problem, options); });
  return *result;
}

template <class Function>
auto of_result(Function function) {
  return [function](const ExecutionHandle& handle) { return (handle.result.*function)(); };
}

template <class Function>
auto numbers_of(Function function) {
  return [function](const ExecutionHandle& handle) {
    return array_of<std::int64_t>((handle.result.*function)());
  };
}

void bind_execution_result(py::module_& module) {
  using Result = ExecutionResult;
  py::class_<ExecutionHandle>(module, "ExecutionResult",
                              "A placement executed on this machine, beside its prediction; times "
                              "are in nanoseconds.")
      .def_property_readonly("problem", [](const ExecutionHandle& e) { return e.problem; })
      .def_property_readonly("fits", of_result(&Result::fits),
                             "Whether memory was enough; if not, nothing was measured.")
      .def_property_readonly("failure", of_result(&Result::failure), "Where memory was short.")
      .def_property_readonly("time", of_result(&Result::time), "Of a step: the median.")
      .def_property_readonly("low", of_result(&Result::low), "Half of the steps are between ...")
      .def_property_readonly("high", of_result(&Result::high), "... these two.")
      .def_property_readonly("predicted", of_result(&Result::predicted))
      .def_property_readonly("oracle", of_result(&Result::oracle),
                             "Predicted from the op times of these very steps.")
      .def_property_readonly("drift", of_result(&Result::drift),
                             "How much longer work that is always the same took afterwards.")
      .def_property_readonly("interrupted", of_result(&Result::interrupted),
                             "Whether there are fewer steps than asked for.")
      .def_property_readonly("steps", numbers_of(&Result::steps), "Times of those that count.")
      .def_property_readonly(
          "losses", [](const ExecutionHandle& e) { return array_of<double>(e.result.losses()); },
          "Of all steps, warm-up included.")
      .def_property_readonly("op_times", numbers_of(&Result::op_times), "By op: medians.")
      .def_property_readonly("peaks", numbers_of(&Result::peaks), "Bytes by device.")
      .def_property_readonly(
          "measured_timeline",
          [](const ExecutionHandle& e) { return e.timeline(e.result.measured_timeline()); },
          "Of the step in the middle.")
      .def_property_readonly(
          "predicted_timeline",
          [](const ExecutionHandle& e) { return e.timeline(e.result.predicted_timeline()); })
      .def_property_readonly(
          "placement",
          [](const ExecutionHandle& e) { return array_of<std::int32_t>(e.result.placement()); })
      .def_property_readonly("notes", of_result(&Result::notes), "Why times may mislead.")
      .def("to_text", of_result(&Result::to_text))
      .def("to_json", of_result(&Result::to_json))
      .def("trace_json", of_result(&Result::trace_json),
           "The measured timeline above the predicted one, for Perfetto.")
      .def("__str__", of_result(&Result::to_text))
      .def("__repr__", [](const ExecutionHandle& e) -> std::string {
        if (!e.result.fits()) return "<ExecutionResult: does not fit>";
        return "<ExecutionResult: " + std::to_string(e.result.time()) + " ns measured, " +
               std::to_string(e.result.predicted()) + " ns predicted>";
      });
}

}  // namespace

void bind_execution(py::module_& module) {
  bind_execution_result(module);
  py::class_<ProfileResult>(module, "ProfileResult",
                            "A graph with measured op times, and a cluster with measured links.")
      .def_property_readonly("graph", [](const ProfileResult& p) { return GraphHandle{p.graph()}; })
      .def_property_readonly("cluster",
                             [](const ProfileResult& p) { return ClusterHandle{p.cluster()}; })
      .def_property_readonly("drift", &ProfileResult::drift,
                             "The slowest phase by the fastest, of work that is always the same.")
      .def_property_readonly("notes", &ProfileResult::notes)
      .def("to_text", &ProfileResult::to_text)
      .def("to_json", &ProfileResult::to_json)
      .def("__str__", &ProfileResult::to_text)
      .def("__repr__", [](const ProfileResult& p) {
        return "<ProfileResult of " + summarize(*p.graph()).name + ">";
      });
  module.def("run", &run_placement, py::arg("problem"), py::arg("placement"), py::arg("priorities"),
             py::arg("options"));
  module.def("profile", &profile_problem, py::arg("problem"), py::arg("options"));
}

}  // namespace emplace::python

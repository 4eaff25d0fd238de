// emplace/place.h.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "answer.h"
#include "arguments.h"
#include "environment.h"
#include "work.h"

namespace emplace::python {
namespace {

// What `place` and `compare` share; the package gives every argument.
struct PlaceArguments {
  PlaceOptions options;
  Work work;

  // A Python function of a PlacerSession, as a placer.
  PlacerFunction placer_from(const std::string& name, const py::object& function) {
    return {name, [this, function = function.ptr()](PlacerSession& session) {
              const py::gil_scoped_acquire acquire;
              const Work::Calling calling(work);
              try {
                return devices_from(py::reinterpret_borrow<py::object>(function), session);
              } catch (const py::error_already_set& error) {
                // The best that it has evaluated is the answer then.
                const bool ended = work.interrupted() && error.matches(PyExc_KeyboardInterrupt);
                if (!ended) work.fail(std::current_exception());
                return std::vector<std::int32_t>{};
              }
            }};
  }
  static std::vector<std::int32_t> devices_from(const py::object& function,
                                                PlacerSession& session) {
    SessionHandle handle{&session};
    const py::object given = py::cast(handle);
    // Nothing may use the session after the search, whether the function returns or throws.
    const auto end = [&](void*) { given.cast<SessionHandle&>().session = nullptr; };
    const std::unique_ptr<void, decltype(end)> guard(&handle, end);
    const py::object answer = function(given);
    if (answer.is_none()) return {};
    const auto numbers = whole_numbers(answer, 1, "placement");
    const DeviceRows row = device_rows(numbers.attr("reshape")(py::make_tuple(1, numbers.size())),
                                       size_of(*session.problem()).groups);
    return {row.numbers().begin(), row.numbers().end()};
  }

  PlaceArguments(const ProblemHandle& problem, const py::dict& given) : work(given["progress"]) {
    options.placer = argument<std::string>(given, "placer");
    for (const auto& [name, function] : given["functions"].cast<py::dict>()) {
      options.functions.push_back(
          placer_from(name.cast<std::string>(), py::reinterpret_borrow<py::object>(function)));
    }
    options.scheduler = argument<std::string>(given, "scheduler");
    options.objective = objective_from(argument<std::string>(given, "objective"));
    options.budget = budget_of(given, work);
    options.seed = argument<std::uint64_t>(given, "seed");
    options.most_devices = argument<int>(given, "most_devices");
    options.use_cpu = argument<bool>(given, "use_cpu");
    for (const py::handle start : given["starts"]) {
      options.starts.push_back(
          {placement_from(py::reinterpret_borrow<py::object>(start), problem), {}});
    }
    options.samples = argument<std::int64_t>(given, "samples");
    options.learning = given["learning"].cast<LearningSettings>();
    options.on_progress = work.listener();
  }
};

AnswerHandle place_handle(const ProblemHandle& problem, const py::dict& given) {
  PlaceArguments arguments(problem, given);
  std::optional<Answer> answer;
  arguments.work.run([&] { answer = place(problem.problem, arguments.options); });
  return {*answer, problem, arguments.work.interrupted()};
}

std::vector<AnswerHandle> compare_handles(const ProblemHandle& problem, const py::dict& given,
                                          int seeds, bool best_orders) {
  PlaceArguments arguments(problem, given);
  CompareOptions options;
  static_cast<PlaceOptions&>(options) = arguments.options;
  options.seeds = seeds;
  options.best_orders = best_orders;
  std::vector<Answer> answers;
  arguments.work.run([&] { answers = compare(problem.problem, options); });
  std::vector<AnswerHandle> handles;
  for (Answer& answer : answers) {
    handles.push_back({std::move(answer), problem, arguments.work.interrupted()});
  }
  return handles;
}

AnswerHandle assess_handle(const ProblemHandle& problem, const py::object& placement,
                           const py::object& priorities, const std::string& objective,
                           std::int64_t samples) {
  const Placement devices = placement_from(placement, problem);
  const Schedule schedule = schedule_from(priorities, problem);
  const Objective goal = objective_from(objective);
  const py::gil_scoped_release release;
  return {assess(problem.problem, devices, schedule, goal, samples), problem};
}

AnswerHandle read_handle(const std::filesystem::path& path, const ProblemHandle& problem) {
  const py::gil_scoped_release release;
  const SavedPlacement saved = read_placement(path.string(), *problem.problem);
  return {assess(problem.problem, saved.placement, saved.schedule), problem};
}

py::dict device_of(const AnswerHandle& handle) {
  const Graph& graph = graph_of(*handle.problem.problem);
  std::vector<py::str> names;
  for (const DeviceView& device : devices_of(cluster_of(*handle.problem.problem))) {
    names.emplace_back(device.name);
  }
  py::dict devices;
  const Placement& placement = handle.answer.placement();
  for (std::size_t op = 0; op < placement.size(); ++op) {
    devices[py::str(op_of(graph, op).name)] = names[placement[op]];
  }
  return devices;
}

// Text that takes a while to make.
template <class Function>
auto unlocked(Function function) {
  return [function](const AnswerHandle& handle) {
    const py::gil_scoped_release release;
    return (handle.answer.*function)();
  };
}

template <class Function>
auto of_answer(Function function) {
  return [function](const AnswerHandle& handle) { return (handle.answer.*function)(); };
}

void bind_answer(py::module_& module) {
  py::class_<AnswerHandle>(module, "Answer",
                           "A placement with everything that is known of it; times are in "
                           "nanoseconds.")
      .def_property_readonly("problem", [](const AnswerHandle& a) { return a.problem; })
      .def_property_readonly(
          "placement",
          [](const AnswerHandle& a) { return array_of<std::int32_t>(a.answer.placement()); },
          "Device numbers by op, int32.")
      .def_property_readonly("device_of", &device_of, "From every op's name to its device's name.")
      .def_property_readonly(
          "priorities",
          [](const AnswerHandle& a) -> py::object {
            if (a.answer.schedule().fifo()) return py::none();
            return array_of<std::int64_t>(a.answer.schedule().priorities);
          },
          "By op; None where devices take ready ops first come, first served.")
      .def_property_readonly(
          "timeline",
          [](const AnswerHandle& a) {
            return TimelineHandle{a.answer.timeline(), a.problem, a.answer.placement()};
          })
      .def_property_readonly("time", of_answer(&Answer::time), "Step time, or period.")
      .def_property_readonly("fits", of_answer(&Answer::fits))
      .def_property_readonly(
          "bound", [](const AnswerHandle& a) { return a.answer.bound().step; },
          "No placement that fits is faster than this; proven.")
      .def_property_readonly("bound_reason",
                             [](const AnswerHandle& a) { return a.answer.bound().reason; })
      .def_property_readonly("gap", of_answer(&Answer::gap),
                             "How far the time is above the bound: 0.04 is 4 %.")
      .def_property_readonly("optimal", of_answer(&Answer::optimal))
      .def_property_readonly(
          "used",
          [](const AnswerHandle& a) {
            std::vector<Bytes> used;
            const std::size_t devices = a.answer.timeline().devices.size();
            for (std::size_t i = 0; i < devices; ++i) used.push_back(a.answer.used(i));
            return array_of<std::int64_t>(used);
          },
          "Bytes that each device needs.")
      .def_property_readonly("latency", of_answer(&Answer::latency))
      .def_property_readonly("in_flight", of_answer(&Answer::in_flight))
      .def_property_readonly("samples_per_second", of_answer(&Answer::samples_per_second))
      .def_property_readonly("tokens_per_second", of_answer(&Answer::tokens_per_second))
      .def_property_readonly("utilisation", of_answer(&Answer::utilisation))
      .def_property_readonly("placer", of_answer(&Answer::placer))
      .def_property_readonly("seed", of_answer(&Answer::seed))
      .def_property_readonly("evaluations", of_answer(&Answer::evaluations))
      .def_property_readonly("search_seconds", of_answer(&Answer::search_seconds))
      .def_property_readonly("notes", of_answer(&Answer::notes))
      .def_readonly("interrupted", &AnswerHandle::interrupted,
                    "Whether Ctrl-C ended the search: this is the best until then.")
      .def("to_text", unlocked(&Answer::to_text), "Time, bound, devices and channels.")
      .def("explanation", unlocked(&Answer::explanation), "What limits it, and what would help.")
      .def("to_json", unlocked(&Answer::to_json))
      .def("placement_json", unlocked(&Answer::placement_json), "A placement file.")
      .def("trace_json", unlocked(&Answer::trace_json), "For Perfetto or chrome://tracing.")
      .def("__str__", unlocked(&Answer::to_text))
      .def("__repr__", [](const AnswerHandle& a) {
        return "<Answer: " + std::to_string(a.answer.time()) + " ns" +
               (a.answer.fits() ? "" : ", does not fit") + ">";
      });
}

}  // namespace

void bind_placement(py::module_& module) {
  py::class_<LearningSettings>(module, "LearningSettings", "For placers that learn.")
      .def(py::init([](std::string device, std::string curves, std::string checkpoint,
                       std::optional<double> checkpoint_seconds, bool resume) {
             return LearningSettings{std::move(device), std::move(curves), std::move(checkpoint),
                                     checkpoint_seconds, resume};
           }),
           py::kw_only(), py::arg("device") = "", py::arg("curves") = "",
           py::arg("checkpoint") = "", py::arg("checkpoint_seconds") = py::none(),
           py::arg("resume") = false)
      .def_readwrite("device", &LearningSettings::device, "Where networks compute: cpu, cuda:0.")
      .def_readwrite("curves", &LearningSettings::curves, "A folder for learning curves.")
      .def_readwrite("checkpoint", &LearningSettings::checkpoint, "A file.")
      .def_readwrite("checkpoint_seconds", &LearningSettings::checkpoint_seconds, "How often.")
      .def_readwrite("resume", &LearningSettings::resume, "Go on from the checkpoint.");
  bind_answer(module);
  module.def("place", &place_handle, py::arg("problem"), py::arg("options"));
  module.def("compare", &compare_handles, py::arg("problem"), py::arg("options"), py::arg("seeds"),
             py::arg("best_orders"));
  module.def("assess", &assess_handle, py::arg("problem"), py::arg("placement"),
             py::arg("priorities") = py::none(), py::arg("objective") = "step",
             py::arg("samples") = 0,
             R"(A given placement, with its bound and its explanation.

>>> import emplace
>>> problem = emplace.compile("zoo:alexnet", "2xp100")
>>> emplace.assess(problem, [0] * len(problem.graph)).fits
True
)");
  module.def("read_placement", &read_handle, py::arg("path"), py::arg("problem"),
             "A placement file, assessed.");
}

}  // namespace emplace::python

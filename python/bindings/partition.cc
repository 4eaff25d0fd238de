// emplace/partition.h and emplace/train.h.
#include <limits>

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "arguments.h"
#include "arrays.h"
#include "work.h"

namespace emplace::python {
namespace {

Partition partition_handle(const ProblemHandle& problem, const py::dict& given) {
  Work work(given["progress"]);
  PartitionOptions options{.method = argument<std::string>(given, "method"),
                           .workers = argument<int>(given, "workers"),
                           .budget = budget_of(given, work),
                           .seed = argument<std::uint64_t>(given, "seed"),
                           .overlap_slowdown = argument<double>(given, "overlap_slowdown"),
                           .collectives = argument<std::string>(given, "collectives"),
                           .on_progress = work.listener()};
  std::optional<Partition> found;
  work.run([&] { found = partition(problem.problem, options); });
  return *found;
}

Selection select_file(const std::filesystem::path& path, const py::dict& given) {
  Work work(given["progress"]);
  const SelectOptions options{.budget = budget_of(given, work),
                              .seed = argument<std::uint64_t>(given, "seed"),
                              .on_progress = work.listener()};
  Selection found;
  work.run([&] { found = select(path.string(), options); });
  return found;
}

TrainResult train_policy(const py::dict& given) {
  Work work(given["progress"]);
  TrainOptions options;
  options.policy = argument<std::string>(given, "policy");
  options.graphs = argument<std::vector<std::string>>(given, "graphs");
  options.clusters = argument<std::vector<std::string>>(given, "clusters");
  options.memory = argument<std::vector<double>>(given, "memory");
  options.imitate = argument<std::string>(given, "imitate");
  options.imitate_evaluations = argument<std::int64_t>(given, "imitate_evaluations");
  options.settings = given["settings"].cast<OptionValues>();
  options.from = argument<std::string>(given, "start");
  options.device = argument<std::string>(given, "device");
  options.curves = argument<std::string>(given, "curves");
  options.checkpoint = argument<std::string>(given, "checkpoint");
  options.checkpoint_seconds = argument<std::optional<double>>(given, "checkpoint_seconds");
  options.resume = argument<bool>(given, "resume");
  options.seed = argument<std::uint64_t>(given, "seed");
  options.budget = budget_of(given, work);
  options.on_progress = work.listener();
  if (const py::object save = given["on_save"]; !save.is_none()) {
    // Without the interpreter's lock; the reference is counted by `given`.
    options.on_save = [&work, function = py::handle(save)](std::string_view policy) {
      work.call([&] { function(py::bytes(policy.data(), policy.size())); });
    };
  }
  TrainResult result;
  work.run([&] { result = train(options); });
  return result;
}

py::dict points_of(const TrainResult& result) {
  load_numpy();
  std::vector<std::string> phases;
  py::dict columns;
  const std::size_t count = result.points.size();
  py::array_t<std::int64_t> steps(static_cast<py::ssize_t>(count));
  py::array_t<std::int64_t> evaluations(static_cast<py::ssize_t>(count));
  const auto column = [&](auto value) {
    py::array_t<double> numbers(static_cast<py::ssize_t>(count));
    for (std::size_t i = 0; i < count; ++i) numbers.mutable_data()[i] = value(result.points[i]);
    return numbers;
  };
  for (std::size_t i = 0; i < count; ++i) {
    steps.mutable_data()[i] = result.points[i].step;
    evaluations.mutable_data()[i] = result.points[i].evaluations;
    phases.push_back(result.points[i].phase);
  }
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  columns["step"] = steps;
  columns["evaluations"] = evaluations;
  columns["phase"] = phases;
  columns["seconds"] = column([](const PolicyPoint& p) { return p.seconds; });
  columns["likelihood"] =
      column([](const PolicyPoint& p) { return p.likelihood.value_or(kUnknown); });
  columns["relative_time"] =
      column([](const PolicyPoint& p) { return p.relative_time.value_or(kUnknown); });
  columns["fitting_share"] =
      column([](const PolicyPoint& p) { return p.fitting_share.value_or(kUnknown); });
  return columns;
}

}  // namespace

void bind_partition(py::module_& module) {
  py::class_<Partition>(module, "Partition",
                        "How every tensor and op is divided, and what that is worth.")
      .def_property_readonly("step", &Partition::step, "Nanoseconds.")
      .def_property_readonly("fits", &Partition::fits)
      .def_property_readonly("moved", &Partition::moved, "Bytes between devices, in a step.")
      .def_property_readonly("verdict", &Partition::verdict, "What to do, with the figures.")
      .def_property_readonly(
          "divided", [](const Partition& p) { return ProblemHandle{.problem = p.divided()}; },
          "The divided graph as a problem, which can be simulated.")
      .def_property_readonly(
          "placement", [](const Partition& p) { return array_of<std::int32_t>(p.placement()); },
          "Of the divided graph.")
      .def("to_text", &Partition::to_text)
      .def("to_json", &Partition::to_json)
      .def("plan_json", &Partition::plan_json)
      .def("picture_svg", &Partition::picture_svg,
           "Along which dimensions every layer's tensors are cut, as SVG.")
      .def("__str__", &Partition::to_text)
      .def("__repr__",
           [](const Partition& p) { return "<Partition: " + std::to_string(p.step()) + " ns>"; });
  module.def("partition", &partition_handle, py::arg("problem"), py::arg("options"));
  py::class_<Selection>(module, "Selection", "One strategy for each node.")
      .def_property_readonly(
          "strategies", [](const Selection& s) { return array_of<std::int32_t>(s.strategies); })
      .def_readonly("cost", &Selection::cost)
      .def_readonly("lower_bound", &Selection::lower_bound)
      .def_readonly("feasible", &Selection::feasible)
      .def_readonly("proven", &Selection::proven)
      .def("__repr__",
           [](const Selection& s) { return "<Selection: cost " + std::to_string(s.cost) + ">"; });
  module.def("select", &select_file, py::arg("problem_file"), py::arg("options"));
}

void bind_training(py::module_& module) {
  py::class_<TrainResult>(module, "TrainResult", "A trained policy, and how it was trained.")
      .def_property_readonly(
          "policy", [](const TrainResult& r) { return py::bytes(r.policy); },
          "A policy file's content: write it, and use 'gdp(policy=FILE)'.")
      .def_readonly("tasks", &TrainResult::tasks)
      .def_readonly("evaluations", &TrainResult::evaluations)
      .def_readonly("steps", &TrainResult::steps)
      .def_readonly("finished", &TrainResult::finished)
      .def_readonly("relative_time", &TrainResult::relative_time)
      .def_readonly("fitting_share", &TrainResult::fitting_share)
      .def_property_readonly("points", &points_of,
                             "Every step of this run, as columns; nan where a phase has no such.")
      .def_readonly("warnings", &TrainResult::warnings);
  module.def("train", &train_policy, py::arg("options"));
  module.def("train_settings", &train_settings, "What `train` takes as further arguments.");
  module.def(
      "describe_policy",
      [](const std::filesystem::path& path) { return describe_policy(path.string()); },
      py::arg("path"), "What a policy file says of itself.");
}

}  // namespace emplace::python

// emplace/simulate.h.
#include <pybind11/stl.h>

#include "answer.h"
#include "arrays.h"

namespace emplace::python {
namespace {

TimelineHandle run(const ProblemHandle& problem, const py::object& placement,
                   const py::object& priorities) {
  Placement devices = placement_from(placement, problem);
  const Schedule schedule = schedule_from(priorities, problem);
  const py::gil_scoped_release release;
  Timeline timeline = simulate(problem.problem, devices, schedule);
  return {std::move(timeline), problem, std::move(devices)};
}

// Rows of a two-dimensional array as placements.
std::vector<Placement> placements_from(const py::object& object, const ProblemHandle& problem) {
  const auto rows = whole_numbers(object, 2, "placements");
  const auto num_ops = static_cast<py::ssize_t>(problem.num_ops());
  if (rows.shape(1) != num_ops) {
    throw Error(ErrorKind::kInput, "placements: expected rows of " + std::to_string(num_ops) +
                                       " devices, one for each op, not " +
                                       std::to_string(rows.shape(1)));
  }
  const auto num_devices = static_cast<std::int64_t>(problem.num_devices());
  std::vector<Placement> placements(static_cast<std::size_t>(rows.shape(0)));
  const auto view = rows.unchecked<2>();
  for (py::ssize_t row = 0; row < rows.shape(0); ++row) {
    Placement& placement = placements[static_cast<std::size_t>(row)];
    placement.reserve(static_cast<std::size_t>(num_ops));
    for (py::ssize_t op = 0; op < num_ops; ++op) {
      // What is no device at all stays none when it is made narrower.
      const std::int64_t device = view(row, op);
      placement.emplace_back(device >= 0 && device < num_devices ? device
                                                                 : static_cast<int>(kNoDevice));
    }
  }
  return placements;
}

py::tuple run_all(const ProblemHandle& problem, const py::object& placements, int threads) {
  load_numpy();
  const std::vector<Placement> rows = placements_from(placements, problem);
  std::vector<StepValue> values;
  {
    const py::gil_scoped_release release;
    values = simulate_all(problem.problem, rows, threads);
  }
  py::array_t<std::int64_t> steps(static_cast<py::ssize_t>(values.size()));
  py::array_t<std::int64_t> overflows(static_cast<py::ssize_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    steps.mutable_data()[i] = values[i].step;
    overflows.mutable_data()[i] = values[i].overflow;
  }
  return py::make_tuple(steps, overflows);
}

template <class Get>
py::array_t<std::int64_t> column(const Timeline& timeline, Get get) {
  load_numpy();
  py::array_t<std::int64_t> array(static_cast<py::ssize_t>(timeline.transfers.size()));
  std::int64_t* out = array.mutable_data();
  for (const Transfer& transfer : timeline.transfers) *out++ = get(transfer);
  return array;
}

py::dict transfers(const TimelineHandle& handle) {
  const Timeline& timeline = handle.timeline;
  const Graph& graph = graph_of(*handle.problem.problem);
  const auto number = [](auto id) { return static_cast<std::int64_t>(id); };
  py::dict columns;
  columns["tensor"] = column(timeline, [&](const Transfer& t) { return number(t.tensor); });
  columns["from"] = column(timeline, [&](const Transfer& t) { return number(t.from); });
  columns["to"] = column(timeline, [&](const Transfer& t) { return number(t.to); });
  columns["channel"] = column(timeline, [&](const Transfer& t) {
    return t.channel == kNoChannel ? std::int64_t{-1} : number(t.channel);
  });
  columns["bytes"] =
      column(timeline, [&](const Transfer& t) { return tensor_of(graph, t.tensor).bytes; });
  columns["queued"] = column(timeline, [](const Transfer& t) { return t.queued; });
  columns["start"] = column(timeline, [](const Transfer& t) { return t.start; });
  columns["finish"] = column(timeline, [](const Transfer& t) { return t.finish; });
  return columns;
}

template <class Get>
py::array_t<std::int64_t> spans(const TimelineHandle& handle, Get get) {
  load_numpy();
  py::array_t<std::int64_t> array(static_cast<py::ssize_t>(handle.timeline.ops.size()));
  std::int64_t* out = array.mutable_data();
  for (const OpSpan& span : handle.timeline.ops) *out++ = get(span);
  return array;
}

void bind_uses(py::module_& module) {
  py::class_<DeviceUse>(module, "DeviceUse", "Of a device in a step: nanoseconds and bytes.")
      .def_readonly("busy", &DeviceUse::busy)
      .def_readonly("peak", &DeviceUse::peak)
      .def_readonly("capacity", &DeviceUse::capacity);
  py::class_<ChannelUse>(module, "ChannelUse", "Of a channel in a step.")
      .def_readonly("busy", &ChannelUse::busy)
      .def_readonly("bytes", &ChannelUse::bytes)
      .def_readonly("transfers", &ChannelUse::transfers);
}

}  // namespace

void bind_simulation(py::module_& module) {
  bind_uses(module);
  py::class_<TimelineHandle>(module, "Timeline",
                             "Everything that happens in a simulated step, in nanoseconds.")
      .def_property_readonly("step", [](const TimelineHandle& t) { return t.timeline.step; })
      .def_property_readonly("fits", [](const TimelineHandle& t) { return t.timeline.fits(); })
      .def_property_readonly("problem", [](const TimelineHandle& t) { return t.problem; })
      .def_property_readonly(
          "placement", [](const TimelineHandle& t) { return array_of<std::int32_t>(t.placement); },
          "Device numbers by op.")
      .def_property_readonly(
          "start",
          [](const TimelineHandle& t) { return spans(t, [](const OpSpan& s) { return s.start; }); },
          "By op.")
      .def_property_readonly(
          "finish",
          [](const TimelineHandle& t) {
            return spans(t, [](const OpSpan& s) { return s.finish; });
          },
          "By op.")
      .def_property_readonly("transfers", &transfers,
                             "Arrays, in the order in which tensors were queued: tensor, from, to, "
                             "channel (-1: none), bytes, queued, start, finish.")
      .def_property_readonly("devices", [](const TimelineHandle& t) { return t.timeline.devices; })
      .def_property_readonly("channels",
                             [](const TimelineHandle& t) { return t.timeline.channels; })
      .def_property_readonly("num_transfers",
                             [](const TimelineHandle& t) { return t.timeline.num_transfers; })
      .def_property_readonly("transfer_bytes",
                             [](const TimelineHandle& t) { return t.timeline.transfer_bytes; })
      .def(
          "trace_json",
          [](const TimelineHandle& t) {
            return trace_json(*t.problem.problem, t.placement, t.timeline);
          },
          "For Perfetto or chrome://tracing.")
      .def("__repr__", [](const TimelineHandle& t) {
        return "<Timeline: " + std::to_string(t.timeline.step) + " ns>";
      });
  module.def("simulate", &run, py::arg("problem"), py::arg("placement"),
             py::arg("priorities") = py::none(),
             R"(The exact step of a placement.

`placement` has a device number for each op, or is a dict from op names to device names;
`priorities` has a number for each op: among ready ops a device takes the highest.

>>> import emplace
>>> problem = emplace.compile("zoo:alexnet", "2xp100")
>>> emplace.simulate(problem, [0] * len(problem.graph)).num_transfers
0
)");
  module.def("simulate_all", &run_all, py::arg("problem"), py::arg("placements"),
             py::arg("threads") = 1,
             "Step times, and bytes above capacity, of many placements: two arrays.");
}

}  // namespace emplace::python

// emplace/cluster.h.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bindings.h"

namespace emplace::python {
namespace {

ClusterHandle cluster_at(const std::filesystem::path& path_or_preset) {
  const py::gil_scoped_release release;
  return {read_cluster(path_or_preset.string())};
}

void bind_descriptions(py::module_& module) {
  py::class_<DeviceView>(module, "DeviceView", "A device of a cluster.")
      .def_readonly("name", &DeviceView::name)
      .def_readonly("kind", &DeviceView::kind)
      .def_property_readonly(
          "memory",
          [](const DeviceView& device) -> std::optional<Bytes> {
            if (device.memory == kUnlimited) return std::nullopt;
            return device.memory;
          },
          "In bytes; None where there is no limit.")
      .def_readonly("is_cpu", &DeviceView::is_cpu)
      .def("__repr__", [](const DeviceView& device) {
        return "<Device " + device.name + " (" + device.kind + ")>";
      });
  py::class_<DeviceDescription>(module, "DeviceDescription",
                                "A device of a cluster that is built; `memory` is the kind's "
                                "unless given.")
      .def(py::init([](std::string name, std::string kind, std::optional<Bytes> memory) {
             return DeviceDescription{std::move(name), std::move(kind), memory};
           }),
           py::arg("name"), py::arg("kind"), py::arg("memory") = py::none())
      .def_readwrite("name", &DeviceDescription::name)
      .def_readwrite("kind", &DeviceDescription::kind)
      .def_readwrite("memory", &DeviceDescription::memory);
  const LinkRule rule;
  py::class_<LinkRule>(module, "LinkRule",
                       "Links between devices: `from_` and `to` are devices, kinds or patterns, "
                       "later rules win; bandwidth in bytes per second, times in nanoseconds.")
      .def(
          py::init([](std::string from, std::string to, std::int64_t bandwidth, Nanoseconds latency,
                      Nanoseconds hold, std::string channel, bool multicast, bool throttled) {
            return LinkRule{std::move(from),    std::move(to), bandwidth, latency, hold,
                            std::move(channel), multicast,     throttled};
          }),
          py::arg("from_") = rule.from, py::arg("to") = rule.to, py::kw_only(),
          py::arg("bandwidth"), py::arg("latency") = rule.latency, py::arg("hold") = rule.hold,
          py::arg("channel") = rule.channel, py::arg("multicast") = rule.multicast,
          py::arg("throttled") = rule.throttled)
      .def_readwrite("from_", &LinkRule::from)
      .def_readwrite("to", &LinkRule::to)
      .def_readwrite("bandwidth", &LinkRule::bandwidth)
      .def_readwrite("latency", &LinkRule::latency)
      .def_readwrite("hold", &LinkRule::hold)
      .def_readwrite("channel", &LinkRule::channel)
      .def_readwrite("multicast", &LinkRule::multicast)
      .def_readwrite("throttled", &LinkRule::throttled);
}

}  // namespace

void bind_clusters(py::module_& module) {
  bind_descriptions(module);
  py::class_<ClusterHandle>(module, "Cluster",
                            "The devices and the links between them. `read_cluster` and "
                            "`build_cluster` make one.")
      .def_property_readonly("name", [](const ClusterHandle& c) { return name_of(*c.cluster); })
      .def_property_readonly("devices",
                             [](const ClusterHandle& c) { return devices_of(*c.cluster); })
      .def_property_readonly(
          "channels", [](const ClusterHandle& c) { return channels_of(*c.cluster); },
          "Names of what transfers queue for.")
      .def(
          "to_yaml", [](const ClusterHandle& c) { return cluster_yaml(*c.cluster); },
          "A cluster file.")
      .def_static(
          "from_yaml", [](const std::string& text) { return ClusterHandle{parse_cluster(text)}; },
          py::arg("text"), "The cluster of a cluster file's content.")
      .def("__len__", [](const ClusterHandle& c) { return devices_of(*c.cluster).size(); })
      .def("__repr__", [](const ClusterHandle& c) {
        return "<Cluster " + name_of(*c.cluster) + ": " +
               std::to_string(devices_of(*c.cluster).size()) + " devices>";
      });
  module.def("read_cluster", &cluster_at, py::arg("path_or_preset"),
             R"(A cluster file, or a preset's name.

>>> import emplace
>>> [device.name for device in emplace.read_cluster("2xp100").devices]
['gpu0', 'gpu1']
)");
  module.def(
      "build_cluster",
      [](const std::string& name, const std::vector<DeviceDescription>& devices,
         const std::vector<LinkRule>& links) {
        return ClusterHandle{build_cluster(name, devices, links)};
      },
      py::arg("name"), py::arg("devices"), py::arg("links"),
      R"(A cluster from its devices and links.

>>> import emplace
>>> emplace.build_cluster("mine", [emplace.DeviceDescription("a", "p100"),
...                                emplace.DeviceDescription("b", "p100", memory=8 << 30)],
...                       [emplace.LinkRule(bandwidth=12_000_000_000, latency=10_000)])
<Cluster mine: 2 devices>
)");
  module.def("example_presets", &example_presets, "Names of presets worth showing.");
  module.def("device_kinds", &device_kinds, "The built-in kinds of devices.");
}

}  // namespace emplace::python

#include "arrays.h"

#include <atomic>
#include <limits>
#include <unordered_map>

#include "answer.h"

namespace emplace::python {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

std::string text_of(const py::handle& object) {
  return py::str(object).cast<std::string>();
}

Placement placement_from_names(const py::dict& devices, const ProblemHandle& problem) {
  const Graph& graph = graph_of(*problem.problem);
  std::unordered_map<std::string, DeviceId> device_of_name;
  for (const DeviceView& device : devices_of(cluster_of(*problem.problem))) {
    device_of_name.emplace(device.name, device_of_name.size());
  }
  const std::size_t num_ops = problem.num_ops();
  Placement placement(num_ops);
  for (std::size_t op = 0; op < num_ops; ++op) {
    const std::string name = op_of(graph, op).name;
    const py::str key(name);
    if (!devices.contains(key)) fail("op '" + name + "': the placement has no device for it");
    const std::string device = text_of(devices[key]);
    const auto found = device_of_name.find(device);
    if (found == device_of_name.end()) {
      fail("op '" + name + "': is placed on '" + device + "', which is no device of the cluster");
    }
    placement[op] = found->second;
  }
  if (devices.size() != num_ops) {
    fail("the placement has " + std::to_string(devices.size()) + " ops, the graph " +
         std::to_string(num_ops));
  }
  return placement;
}

}  // namespace

void load_numpy() {
  static std::atomic<bool> loaded{false};
  if (loaded) return;
  py::module_::import("numpy");
  loaded = true;
}

py::array_t<std::int64_t, py::array::c_style> whole_numbers(const py::object& object,
                                                            py::ssize_t dimensions,
                                                            const std::string& what) {
  load_numpy();
  const py::array array = py::array::ensure(object);
  if (!array) {
    PyErr_Clear();
    fail(what + ": expected an array of whole numbers");
  }
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u' && array.size() > 0) {
    fail(what + ": expected whole numbers, not " + text_of(array.dtype()));
  }
  if (array.ndim() != dimensions) {
    fail(what + ": expected " + std::to_string(dimensions) + " dimension" +
         (dimensions == 1 ? "" : "s") + ", not the shape " + text_of(array.attr("shape")));
  }
  const bool unsigned_64 = kind == 'u' && array.itemsize() == 8 && array.size() > 0;
  if (unsigned_64 && array.attr("max")().cast<std::uint64_t>() >> 63U != 0) {
    fail(what + ": expected numbers below 2^63, not " + text_of(array.attr("max")()));
  }
  return py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>(array);
}

Placement placement_from(const py::object& object, const ProblemHandle& problem) {
  if (py::isinstance<AnswerHandle>(object)) return object.cast<AnswerHandle&>().answer.placement();
  if (py::isinstance<py::dict>(object)) return placement_from_names(object, problem);
  const auto numbers = whole_numbers(object, 1, "placement");
  const std::size_t num_ops = problem.num_ops();
  if (static_cast<std::size_t>(numbers.size()) != num_ops) {
    fail("placement: expected a device for each of " + std::to_string(num_ops) + " ops, not " +
         std::to_string(numbers.size()));
  }
  Placement placement(num_ops);
  for (std::size_t op = 0; op < num_ops; ++op) {
    const std::int64_t device = numbers.data()[op];
    if (device < 0 || device >= std::numeric_limits<std::uint16_t>::max()) {
      fail("op '" + op_of(graph_of(*problem.problem), op).name + "': is placed on device number " +
           std::to_string(device) + "; the cluster has " + std::to_string(problem.num_devices()));
    }
    placement[op] = device;
  }
  return placement;
}

Schedule schedule_from(const py::object& priorities, const ProblemHandle& problem) {
  if (priorities.is_none()) return {};
  const auto numbers = whole_numbers(priorities, 1, "priorities");
  if (numbers.size() != 0 && static_cast<std::size_t>(numbers.size()) != problem.num_ops()) {
    fail("priorities: expected a number for each of " + std::to_string(problem.num_ops()) +
         " ops, not " + std::to_string(numbers.size()));
  }
  return {{numbers.data(), numbers.data() + numbers.size()}};
}

Objective objective_from(const std::string& name) {
  // As the program's option calls them, too.
  if (name == "step" || name == "latency") return StepTime{};
  if (name == "period" || name == "throughput") return StreamPeriod{};
  if (name == "serial period") return StreamPeriod{Overlap::kNone};
  throw Error(ErrorKind::kOption,
              "objective '" + name +
                  "': expected step (or latency), period (or throughput) or serial period");
}

}  // namespace emplace::python

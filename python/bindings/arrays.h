// numpy arrays in and out. numpy itself is loaded when the first array is made, not when the module
// is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pybind11/numpy.h>

#include "bindings.h"

namespace emplace::python {

// To be called before any array is made or looked at. pybind11 would load numpy inside the
// initialisation of a static, which lets go of the interpreter's lock; a second thread would then
// take that lock and wait for the static with it, for ever.
void load_numpy();

// A copy, as numbers of another type where asked for.
template <class Number, class From>
py::array_t<Number> array_of(const std::vector<From>& values) {
  load_numpy();
  py::array_t<Number> array(static_cast<py::ssize_t>(values.size()));
  Number* out = array.mutable_data();
  for (const From& value : values) *out++ = static_cast<Number>(value);
  return array;
}

// An array of whole numbers with so many dimensions, or an Error that begins with `what`.
py::array_t<std::int64_t, py::array::c_style> whole_numbers(const py::object& object,
                                                            py::ssize_t dimensions,
                                                            const std::string& what);

// Devices by op: an array or list of device numbers, a dict from each op's name to its device's
// name, or an Answer.
Placement placement_from(const py::object& object, const ProblemHandle& problem);
// Priorities by op, or None.
Schedule schedule_from(const py::object& priorities, const ProblemHandle& problem);
// "step", "period" or "serial period".
Objective objective_from(const std::string& name);

}  // namespace emplace::python

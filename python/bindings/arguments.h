// Arguments that Python gives by name, as values; what cannot be one raises an Error that says what
// was expected.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <pybind11/stl.h>

#include "work.h"

namespace emplace::python {

template <class Value>
std::string expected_of() {
  if constexpr (std::is_same_v<Value, bool>) {
    return "True or False";
  } else if constexpr (std::is_unsigned_v<Value>) {
    return "a whole number that is not negative";
  } else if constexpr (std::is_integral_v<Value>) {
    return "a whole number";
  } else if constexpr (std::is_floating_point_v<Value>) {
    return "a number";
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    return "a whole number or None";
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    return "a number or None";
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return "a string";
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return "a list of strings";
  } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
    return "a list of numbers";
  } else {
    return "a value of another type";
  }
}

[[noreturn]] inline void refuse_argument(const py::dict& given, const char* name,
                                         const std::string& expected) {
  constexpr std::size_t kShown = 80;
  std::string value = py::repr(given[name]).cast<std::string>();
  if (value.size() > kShown) value = value.substr(0, kShown) + "...";
  throw Error(ErrorKind::kOption, std::string(name) + ": expected " + expected + ", not " + value);
}

template <class Value>
Value argument(const py::dict& given, const char* name) {
  try {
    return given[name].template cast<Value>();
  } catch (const py::cast_error&) {
    refuse_argument(given, name, expected_of<Value>());
  }
}

inline Budget budget_of(const py::dict& given, const Work& work) {
  Budget budget;
  budget.seconds = argument<std::optional<double>>(given, "seconds");
  budget.evaluations = argument<std::optional<std::int64_t>>(given, "evaluations");
  budget.threads = argument<int>(given, "threads");
  budget.cancelled = work.cancelled();
  if (budget.seconds && !(std::isfinite(*budget.seconds) && *budget.seconds >= 0)) {
    refuse_argument(given, "seconds", "a number of seconds, 0 or more");
  }
  if (budget.evaluations && *budget.evaluations < 0) {
    refuse_argument(given, "evaluations", "0 or more");
  }
  if (budget.threads < 1) refuse_argument(given, "threads", "1 or more");
  return budget;
}

}  // namespace emplace::python

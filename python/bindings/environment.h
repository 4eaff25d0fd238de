// Placements by group, as rows of an array, and what a placer in Python is given.
#pragma once

#include <algorithm>
#include <span>

#include "arrays.h"

namespace emplace::python {

struct DeviceRows {
  py::array_t<std::int32_t, py::array::c_style> array;

  std::size_t count() const { return static_cast<std::size_t>(array.shape(0)); }
  std::span<const std::int32_t> numbers() const {
    return {array.data(), static_cast<std::size_t>(array.size())};
  }
};
// Not copied where it is int32 already.
DeviceRows device_rows(const py::object& object, std::size_t num_groups);

// Valid while the function runs; what is kept of it afterwards refuses to work.
struct SessionHandle {
  PlacerSession* session;

  PlacerSession& get() const {
    if (session == nullptr) throw Error(ErrorKind::kOption, "the search of this session has ended");
    return *session;
  }
};

}  // namespace emplace::python

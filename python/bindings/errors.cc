// emplace::Error as emplace.Error, a ValueError with the same message and the kind of mistake.
#include "bindings.h"

namespace emplace::python {
namespace {

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kOption:
      return "option";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kSystem:
      return "system";
  }
  return "input";
}

// Lives as long as the process, like every type of a module.
PyObject* error_type = nullptr;

void raise_error(const Error& error) {
  py::object instance = py::reinterpret_borrow<py::object>(error_type)(error.what());
  instance.attr("kind") = kind_name(error.kind());
  PyErr_SetObject(error_type, instance.ptr());
}

}  // namespace

void bind_errors(py::module_& module) {
  constexpr const char* kDoc =
      "An argument or a file is wrong.\n\n"
      "The message names the file, the op and what was expected; `kind` is 'input' (a file, or a\n"
      "value in it), 'option' (an argument), 'unsupported' (beyond this build) or 'system' (the\n"
      "operating system refused).";
  error_type = PyErr_NewExceptionWithDoc("emplace.Error", kDoc, PyExc_ValueError, nullptr);
  if (error_type == nullptr) throw py::error_already_set();
  module.attr("Error") = py::reinterpret_borrow<py::object>(error_type);
  py::reinterpret_borrow<py::object>(error_type).attr("kind") = "input";
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      raise_error(error);
    }
  });
}

}  // namespace emplace::python

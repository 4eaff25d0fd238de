// The one exception type. Whoever called us, or wrote the file we read, made a mistake: the message
// names the file, the op and what was expected. Expected outcomes (does not fit, budget spent) are
// fields of results, never exceptions; our own bugs hit EMPLACE_CHECK (base/check.h).
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace emplace {

enum class ErrorKind {
  kInput,        // a file or a value in it is wrong
  kOption,       // a command-line argument, placer name or option is wrong
  kUnsupported,  // valid, but beyond what this build can do
  kSystem,       // the operating system refused (no such file, disk full)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

  // The same error with where it happened put in front: "model.json: op 'mm_3': ...".
  Error in(const std::string& where) const { return {kind_, where + ": " + what()}; }

 private:
  ErrorKind kind_;
};

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kInput, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_option(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kOption, fmt::format(format, std::forward<Args>(args)...));
}

// Runs `body`; an Error that leaves it is rethrown with `where` in front of its message.
template <class Body>
decltype(auto) with_context(const std::string& where, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw error.in(where);
  }
}

}  // namespace emplace

// The one exception type. Whoever called us, or wrote the file that was read, made a mistake: the
// message names the file, the op and what was expected. Expected outcomes (does not fit, budget
// spent, cancelled) are fields of results, never exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace emplace {

enum class ErrorKind {
  kInput,        // a file or a value in it is wrong
  kOption,       // an argument, a placer's name or an option is wrong
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

}  // namespace emplace

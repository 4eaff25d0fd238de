// The message of the Error that something ends in.
#pragma once

#include <string>
#include <utility>

#include <emplace/error.h>

namespace emplace {

// Empty where it does not.
template <class Body>
std::string error_text(Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace emplace

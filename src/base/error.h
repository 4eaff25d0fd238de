// How the one exception type (emplace/error.h) is thrown. Our own bugs hit EMPLACE_CHECK
// (base/check.h).
#pragma once

#include <string>
#include <utility>

#include <emplace/error.h>
#include <fmt/format.h>

#include "base/ids.h"

namespace emplace {

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

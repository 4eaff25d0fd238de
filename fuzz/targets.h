// Everything that reads what others wrote, as functions of bytes. Each returns, or throws an Error:
// anything else is a defect. The fuzzers call them with what they make, and the tests with the
// files that were a defect once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace emplace::fuzz {

struct Target {
  std::string_view name;
  void (*read)(const std::string& bytes);
};

std::span<const Target> targets();

// Calls the target and takes Errors for answers: what it says, or nothing where it reads the bytes.
std::optional<std::string> call(const Target& target, const std::string& bytes);

}  // namespace emplace::fuzz

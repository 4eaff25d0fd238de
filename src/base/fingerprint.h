// Whether two processes, or a process and a file, mean the same: a hash of all that matters.
#pragma once

#include <cstdint>
#include <string_view>

namespace emplace {

// FNV-1a by words, and a fold, since multiplying carries nothing from high bits to low ones. Every
// step is a bijection of what was added before, so that texts and numbers that differ in one place
// have different values.
class Fingerprint {
 public:
  Fingerprint& add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3ULL;
    value_ ^= value_ >> 31;
    return *this;
  }
  Fingerprint& add(std::string_view text) {
    add(text.size());
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace emplace

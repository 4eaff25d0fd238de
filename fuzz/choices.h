// Decisions from bytes: what a fuzzer changes in its input becomes another decision, so that inputs
// of any structure can be made of it. When the bytes are used up, every choice is the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace emplace::fuzz {

class Choices {
 public:
  explicit Choices(std::string_view bytes) : left_(bytes) {}

  // From 0 to count - 1.
  std::size_t below(std::size_t count) {
    if (count <= 1) return 0;
    std::size_t value = byte();
    if (count > 256) value = value * 256 + byte();
    return value % count;
  }
  // In about one case of `times`.
  bool rarely(std::size_t times) { return below(times) == times - 1; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  bool used_up() const { return left_.empty(); }

 private:
  std::size_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(1);
    return value;
  }

  std::string_view left_;
};

}  // namespace emplace::fuzz

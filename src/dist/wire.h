// How values become bytes and bytes values again. What is read may come from anywhere: every length
// is checked against what is there before memory is taken for it, and bytes that make no sense are
// an Error, never a crash.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace emplace::dist {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

// What is written as the bytes that it has in memory.
template <class T>
concept Plain = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class Writer {
 public:
  template <Plain T>
  Writer& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& flag(bool value) { return number<std::uint8_t>(value ? 1 : 0); }
  Writer& text(std::string_view value) {
    number<std::uint64_t>(value.size());
    bytes_.append(value);
    return *this;
  }
  template <Plain T>
  Writer& numbers(const std::vector<T>& values) {
    number<std::uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return *this;
  }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Does not own the bytes.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <Plain T>
  T number() {
    T value;
    std::memcpy(&value, next(sizeof value), sizeof value);
    return value;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) fail_input("a message has {} for a flag", value);
    return value == 1;
  }
  std::string text() {
    const std::size_t size = count(1);
    return {next(size), size};
  }
  template <Plain T>
  std::vector<T> numbers() {
    const std::size_t size = count(sizeof(T));
    std::vector<T> values(size);
    if (size > 0) std::memcpy(values.data(), next(size * sizeof(T)), size * sizeof(T));
    return values;
  }
  // Of things that take at least `each` bytes.
  std::size_t count(std::size_t each) {
    const auto size = number<std::uint64_t>();
    if (size > bytes_.size() / each) {
      fail_input("a message announces {} elements and has {} more bytes", size, bytes_.size());
    }
    return static_cast<std::size_t>(size);
  }
  void copy_to(void* target, std::size_t size) {
    if (size > 0) std::memcpy(target, next(size), size);
  }
  // Throws an Error where anything is left.
  void end() const {
    if (!bytes_.empty()) fail_input("a message is {} bytes too long", bytes_.size());
  }
  std::string_view rest() const { return bytes_; }

 private:
  const char* next(std::size_t size) {
    if (size > bytes_.size()) {
      fail_input("a message ends {} bytes too early", size - bytes_.size());
    }
    const char* here = bytes_.data();
    bytes_.remove_prefix(size);
    return here;
  }

  std::string_view bytes_;
};

}  // namespace emplace::dist

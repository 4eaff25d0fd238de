// What an operator's name leaves open: strides, axes, whether an operand is transposed. Named as
// ONNX names them. A small sorted map, compared by value, so that a graph keeps each set once.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace emplace {

using AttributeValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);
  // Not by the variant's own copies: where one throws for want of memory, g++ 12's code destroys
  // what was not made.
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept = default;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept = default;
  ~Attributes() = default;

  void set(std::string name, AttributeValue value);  // replaces an earlier value

  bool empty() const { return entries_.empty(); }
  std::span<const Entry> entries() const { return entries_; }  // by name, ascending
  const AttributeValue* find(std::string_view name) const;     // nullptr: none

  // The value, or `otherwise` where there is none of that type. A whole number also reads as real.
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise = {}) const;
  std::span<const std::int64_t> integers(std::string_view name) const;  // empty: none

  std::partial_ordering operator<=>(const Attributes&) const = default;
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace emplace

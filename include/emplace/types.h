// Numbers: ids, times, sizes.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace emplace {

// An index into the arrays of a graph or a cluster. All count from zero in file order, and that
// order breaks every tie. It is made from any whole number and used as one, but not made from
// another kind of id: an op where a device is expected does not compile.
template <class Tag, class Number>
class Id {
 public:
  constexpr Id() = default;
  template <std::integral From>
  constexpr Id(From value)
      : value_(static_cast<Number>(value)) {}  // NOLINT(google-explicit-constructor)
  template <class OtherTag, class OtherNumber>
  Id(Id<OtherTag, OtherNumber>) = delete;

  constexpr operator Number() const { return value_; }  // NOLINT(google-explicit-constructor)
  constexpr Id& operator++() {
    ++value_;
    return *this;
  }
  constexpr Id& operator--() {
    --value_;
    return *this;
  }
  constexpr Id operator++(int) { return value_++; }
  constexpr Id operator--(int) { return value_--; }

 private:
  Number value_ = 0;
};

using OpId = Id<struct OpTag, std::uint32_t>;
using TensorId = Id<struct TensorTag, std::uint32_t>;
using GroupId = Id<struct GroupTag, std::uint32_t>;  // ops that must share a device
using DeviceId = Id<struct DeviceTag, std::uint16_t>;
using ChannelId = Id<struct ChannelTag, std::uint32_t>;  // what transfers between devices queue for

inline constexpr OpId kNoOp = std::numeric_limits<std::uint32_t>::max();
inline constexpr DeviceId kNoDevice = std::numeric_limits<std::uint16_t>::max();
inline constexpr ChannelId kNoChannel = std::numeric_limits<std::uint32_t>::max();

// Times and sizes are 64-bit integers throughout.
using Nanoseconds = std::int64_t;
using Bytes = std::int64_t;

inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// "0.1.0".
std::string version();

}  // namespace emplace

template <class Tag, class Number>
struct std::numeric_limits<emplace::Id<Tag, Number>> : std::numeric_limits<Number> {};

template <class Tag, class Number>
struct std::hash<emplace::Id<Tag, Number>> {
  std::size_t operator()(emplace::Id<Tag, Number> id) const { return std::hash<Number>{}(id); }
};

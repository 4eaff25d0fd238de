// Interned strings: each distinct string once, in one buffer, known by a small number. The empty
// string is always there as kEmptyString unless the pool was made without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace emplace {

using StringId = std::uint32_t;
inline constexpr StringId kEmptyString = 0;

class StringPool {
 public:
  struct WithoutEmpty {};
  StringPool() { intern(""); }
  explicit StringPool(WithoutEmpty) {}

  // The number of `text`, added if new. Numbers count up from zero in order of first use.
  StringId intern(std::string_view text);
  std::optional<StringId> find(std::string_view text) const;

  std::string_view get(StringId id) const {
    return std::string_view(buffer_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }
  StringId size() const { return static_cast<StringId>(offsets_.size() - 1); }

 private:
  // Open addressing over slots that hold id + 1; 0 is free. Strings live in the buffer only.
  std::size_t slot_of(std::string_view text) const;
  void grow();

  std::string buffer_;
  std::vector<std::uint64_t> offsets_{0};
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(16, 0);
};

}  // namespace emplace

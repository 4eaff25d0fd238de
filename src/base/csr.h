// Many short lists in two flat arrays: list i is values[offsets[i] .. offsets[i+1]).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace emplace {

template <class T>
class Csr {
 public:
  Csr() : offsets_{0} {}

  std::size_t size() const { return offsets_.size() - 1; }
  std::size_t total() const { return values_.size(); }
  std::span<const T> operator[](std::size_t i) const {
    return {values_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }
  std::span<const T> values() const { return values_; }

  // Appends a list; the ways to fill are this one and from_pairs.
  template <class Range>
  void push_back(const Range& list) {
    values_.insert(values_.end(), std::begin(list), std::end(list));
    EMPLACE_CHECK(values_.size() < (1ULL << 32));
    offsets_.push_back(static_cast<std::uint32_t>(values_.size()));
  }

  void reserve(std::size_t lists, std::size_t values) {
    offsets_.reserve(lists + 1);
    values_.reserve(values);
  }

  // `lists` lists from (list, value) pairs, which keep their order within a list.
  template <class Pairs>
  static Csr from_pairs(std::size_t lists, const Pairs& pairs) {
    Csr result;
    result.offsets_.assign(lists + 1, 0);
    for (const auto& [list, value] : pairs) ++result.offsets_[list + 1];
    for (std::size_t i = 0; i < lists; ++i) result.offsets_[i + 1] += result.offsets_[i];
    result.values_.resize(result.offsets_[lists]);
    std::vector<std::uint32_t> at(result.offsets_.begin(), result.offsets_.end() - 1);
    for (const auto& [list, value] : pairs) result.values_[at[list]++] = value;
    return result;
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<T> values_;
};

}  // namespace emplace

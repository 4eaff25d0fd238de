// Sets of ranks, one for each device, of which the lowest is taken: a bit for each rank, and above
// them bits that say which words have any, so that adding and taking touch a word of each level.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace emplace {

class RankSets {
 public:
  RankSets(std::uint32_t sets, std::uint32_t ranks) : sets_(sets) {
    std::size_t words = ranks;
    do {
      words = (words + kBits - 1) / kBits;
      level_begin_[levels_++] = stride_;
      stride_ += words;
    } while (words > 1);
  }

  // Before the first use, as many runs are by FIFO alone.
  void make_room() { words_.resize(stride_ * sets_); }

  [[gnu::always_inline]] void add(std::uint32_t set, std::uint32_t rank) {
    std::uint64_t* const words = words_.data() + set * stride_;
    for (std::uint32_t level = 0; level < levels_; ++level) {
      std::uint64_t& word = words[level_begin_[level] + rank / kBits];
      const bool had_any = word != 0;
      word |= std::uint64_t{1} << (rank % kBits);
      if (had_any) return;
      rank /= kBits;
    }
  }

  // Of a set that is not empty.
  [[gnu::always_inline]] std::uint32_t take_lowest(std::uint32_t set) {
    std::uint64_t* const words = words_.data() + set * stride_;
    std::uint32_t lowest = 0;
    for (std::uint32_t level = levels_; level-- > 0;) {
      const std::uint64_t word = words[level_begin_[level] + lowest];
      lowest = lowest * kBits + static_cast<std::uint32_t>(std::countr_zero(word));
    }
    std::uint32_t rank = lowest;
    for (std::uint32_t level = 0; level < levels_; ++level) {
      std::uint64_t& word = words[level_begin_[level] + rank / kBits];
      word &= word - 1;
      if (word != 0) break;
      rank /= kBits;
    }
    return lowest;
  }

 private:
  static constexpr std::uint32_t kBits = 64;

  std::uint32_t sets_;
  std::array<std::size_t, 6> level_begin_{};
  std::uint32_t levels_ = 0;
  std::size_t stride_ = 0;  // words of a set
  std::vector<std::uint64_t> words_;
};

}  // namespace emplace

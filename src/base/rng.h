// The one source of randomness: seeded, splittable, the same on every platform (unlike the
// distributions of <random>). Each task takes its own generator by `split`, so results do not
// depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/wide.h"

namespace emplace {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) {
    for (auto& word : state_) word = next_seed(seed);
  }

  // To be saved and gone on from.
  using State = std::array<std::uint64_t, 4>;
  explicit Rng(const State& state) : state_(state) {}
  const State& state() const { return state_; }

  // xoshiro256**, Blackman and Vigna 2018.
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound must be positive. Lemire's multiplication, without its rejection
  // step: the bias is below 2^-32 for every bound that occurs here.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  bool chance(double probability) { return uniform() < probability; }

  template <class T>
  const T& pick(std::span<const T> items) {
    return items[below(items.size())];
  }

  template <class Container>
  void shuffle(Container& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  // An independent generator for a sub-task; the same task number gives the same generator.
  Rng split(std::uint64_t task) const {
    std::uint64_t seed = state_[0] ^ (task * 0x9e3779b97f4a7c15ULL);
    return Rng(next_seed(seed) ^ state_[3]);
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t next_seed(std::uint64_t& seed) {  // splitmix64
    std::uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  State state_;
};

}  // namespace emplace

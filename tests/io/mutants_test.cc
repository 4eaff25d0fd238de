// Every seed of the fuzzers, changed a little, some hundred times: what a fuzzer does for hours,
// for a moment of every test run. Under sanitizers (sanitized_tests) it finds more than crashes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "fuzz/mutators.h"
#include "fuzz/targets.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

constexpr int kMutantsOfEach = 60;
constexpr std::size_t kLargestSeed = 64'000;

// libFuzzer's part, of which a few kinds do here.
std::size_t mutate_bytes(std::uint8_t* data, std::size_t size, std::size_t most) {
  static Rng rng(7);
  const std::size_t at = size == 0 ? 0 : rng.below(size);
  switch (rng.below(4)) {
    case 0:
      if (size > 0) data[at] = static_cast<std::uint8_t>(rng.below(256));
      return size;
    case 1:
      if (size > 0) std::rotate(data + at, data + at + 1, data + size);
      return size > 0 ? size - 1 : 0;
    case 2:
      if (size >= most) return size;
      data[size] = static_cast<std::uint8_t>(rng.below(256));
      std::rotate(data + at, data + size, data + size + 1);
      return size + 1;
    default:
      if (size > 0) data[at] ^= static_cast<std::uint8_t>(1U << rng.below(8));
      return size;
  }
}

std::string with_other_bytes(const std::string& seed, Rng& rng) {
  std::string text = seed;
  for (std::size_t times = 1 + rng.below(8); times > 0; --times) {
    const std::size_t size = text.size();
    text.resize(size + 1);
    text.resize(mutate_bytes(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  }
  if (rng.chance(0.2)) text.resize(rng.below(text.size() + 1));
  return text;
}

class Mutants : public ::testing::TestWithParam<std::string> {};

TEST_P(Mutants, are_read_or_refused) {
  const auto target = std::find_if(fuzz::targets().begin(), fuzz::targets().end(),
                                   [](const fuzz::Target& one) { return one.name == GetParam(); });
  ASSERT_NE(target, fuzz::targets().end());
  Rng rng(1);
  int tried = 0;
  for (const char* kind : {"corpus", "crashes"}) {
    const fs::path folder = fs::path(EMPLACE_SOURCE_DIR) / "fuzz" / kind / GetParam();
    if (!fs::exists(folder)) continue;
    std::vector<fs::path> files{fs::directory_iterator(folder), fs::directory_iterator()};
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::string seed{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
      if (seed.size() > kLargestSeed) continue;
      for (int i = 0; i < kMutantsOfEach; ++i) {
        SCOPED_TRACE(path.string() + ", mutant " + std::to_string(i));
        std::string mutant;
        const auto number = static_cast<unsigned>(rng.below(1'000'000));
        if (GetParam() == "onnx" && i % 2 == 0) {
          mutant = fuzz::mutate_onnx(seed, number, mutate_bytes);
        } else if (i % 2 == 0) {
          mutant = fuzz::mutate_json(seed, number, mutate_bytes);
        }
        if (mutant.empty()) mutant = with_other_bytes(seed, rng);
        EXPECT_NO_THROW(fuzz::call(*target, mutant));
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 0);
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const fuzz::Target& target : fuzz::targets()) names.emplace_back(target.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, Mutants, ::testing::ValuesIn(target_names()),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace emplace

// Files that were a defect once, and the fuzzers' seeds: fuzz/crashes/TARGET and
// fuzz/corpus/TARGET.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/targets.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Replay : public ::testing::TestWithParam<const char*> {};

TEST_P(Replay, every_file_is_read_or_refused) {
  const fs::path folder = fs::path(EMPLACE_SOURCE_DIR) / "fuzz" / GetParam();
  const std::vector<fs::path> files = files_below(folder);
  ASSERT_FALSE(files.empty());
  for (const fs::path& path : files) {
    SCOPED_TRACE(path.string());
    const std::string name = path.parent_path().filename().string();
    const auto target = std::find_if(fuzz::targets().begin(), fuzz::targets().end(),
                                     [&](const fuzz::Target& one) { return one.name == name; });
    ASSERT_NE(target, fuzz::targets().end()) << "no target is called " << name;
    EXPECT_NO_THROW(fuzz::call(*target, content(path)));
  }
}

INSTANTIATE_TEST_SUITE_P(, Replay, ::testing::Values("crashes", "corpus"),
                         [](const auto& chosen) { return std::string(chosen.param); });

}  // namespace
}  // namespace emplace

// Files that were a defect once, and the fuzzers' seeds: fuzz/crashes/TARGET and
// fuzz/corpus/TARGET.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

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

std::optional<std::string> answer_to(const fs::path& path) {
  const std::string name = path.parent_path().filename().string();
  const auto target = std::find_if(fuzz::targets().begin(), fuzz::targets().end(),
                                   [&](const fuzz::Target& one) { return one.name == name; });
  if (target == fuzz::targets().end()) return "no target is called " + name;
  return fuzz::call(*target, content(path));
}

// A seed that is refused leads a fuzzer no further than to its fault.
TEST(Replay, every_seed_is_read) {
  const std::vector<fs::path> files = files_below(fs::path(EMPLACE_SOURCE_DIR) / "fuzz/corpus");
  ASSERT_FALSE(files.empty());
  for (const fs::path& path : files) {
    SCOPED_TRACE(path.string());
    std::optional<std::string> answer;
    ASSERT_NO_THROW(answer = answer_to(path));
    // Models that are made of any bytes may be odd, and the zoo's say nothing of devices.
    const std::string target = path.parent_path().filename();
    if (target == "onnx_model" || (target == "import" && path.extension() == ".onnx")) continue;
    EXPECT_EQ(answer.value_or("is read"), "is read");
  }
}

// As fuzz/crashes/answers.txt says: a line for each, with a part of the message.
TEST(Replay, what_was_a_defect_is_refused_for_what_is_wrong_with_it) {
  const fs::path folder = fs::path(EMPLACE_SOURCE_DIR) / "fuzz/crashes";
  std::map<std::string, std::string> expected;
  std::ifstream lines(folder / "answers.txt");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos) << line;
    expected[line.substr(0, colon)] = line.substr(colon + 2);
  }
  for (const fs::path& path : files_below(folder)) {
    if (path.filename() == "answers.txt") continue;
    const std::string name = path.lexically_relative(folder).generic_string();
    SCOPED_TRACE(name);
    std::optional<std::string> answer;
    ASSERT_NO_THROW(answer = answer_to(path));
    EXPECT_THAT(answer.value_or("is read"), ::testing::HasSubstr(expected[name]));
    EXPECT_FALSE(expected[name].empty())
        << "answers.txt does not say: " << answer.value_or("is read");
  }
}

}  // namespace
}  // namespace emplace

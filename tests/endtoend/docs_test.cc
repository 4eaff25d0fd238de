// What the docs show is what the program does.
#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placers/all.h"

#include "support/command.h"
#include "support/learned_placers.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream stream(EMPLACE_SOURCE_DIR "/" + path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Docs, list_of_placers_is_up_to_date) {
  if (learned_placers().empty()) GTEST_SKIP() << "built without learned placers";
  const testing::TemporaryFolder folder;
  EXPECT_EQ(folder.emplace("list --markdown").out, read("docs/placers.md"));
}

TEST(Docs, table_of_the_zoo_is_up_to_date) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(read("docs/zoo.md"), HasSubstr(folder.emplace("zoo list --markdown").out));
}

TEST(Docs, readme_lists_every_placer) {
  const std::string readme = read("README.md");
  for (const MethodInfo* info : all_placers().list())
    EXPECT_THAT(readme, HasSubstr("`" + info->key + "`"));
}

// Trains a policy, or uses a placer that a build without libtorch does not have.
bool needs_to_learn(const std::string& line) {
  if (line.find("emplace train") != std::string::npos) return true;
  const std::string option = "--placer ";
  const std::size_t at = line.find(option);
  if (at == std::string::npos) return false;
  const std::size_t begin = line.find_first_not_of("\"'", at + option.size());
  const std::string key = line.substr(begin, line.find_first_of("\"'( ", begin) - begin);
  const auto placers = all_placers().list();
  return std::none_of(placers.begin(), placers.end(),
                      [&](const MethodInfo* info) { return info->key == key; });
}

// The README's shell block, line by line, in a folder that has what it names.
TEST(Docs, readme_commands_work) {
  const testing::TemporaryFolder folder;
  folder.shell("mkdir build examples && ln -s " EMPLACE_BINARY
               " build/emplace && ln -s " EMPLACE_SOURCE_DIR "/examples/* examples/");
  std::istringstream lines(read("README.md"));
  const bool can_learn = !learned_placers().empty();
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    // There is no model.onnx to go with the docs; tests/io/onnx_reader_test.cc reads such models.
    if (!line.starts_with("build/emplace") || line.find("model.onnx") != std::string::npos)
      continue;
    if (!can_learn && needs_to_learn(line)) continue;
    // How good the answers are is not looked at.
    const auto result =
        folder.shell(std::regex_replace(line, std::regex("--time [0-9]+s"), "--time 1s"));
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    ++commands;
  }
  EXPECT_GE(commands, 6);
}

// A command of a tutorial, and what its output must have: each line one of its words.
struct Step {
  std::string command;
  std::vector<std::string> expected;
};

// The shell blocks of a page. A here-document belongs to its command.
std::vector<Step> steps_of(const std::string& page) {
  std::vector<Step> steps;
  std::istringstream lines(page);
  bool shell = false;
  bool inside = false;  // a here-document
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      shell = line == "```sh";
    } else if (inside) {
      steps.back().command += "\n" + line;
      inside = line != "END";
    } else if (shell && line.starts_with("#> ")) {
      steps.back().expected.push_back(line.substr(3));
    } else if (shell && !line.empty()) {
      steps.push_back({line, {}});
      inside = line.find("<<END") != std::string::npos;
    }
  }
  return steps;
}

bool has_any(const std::string& text, const std::string& choices) {
  std::istringstream words(choices);
  for (std::string word; std::getline(words, word, '|');) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

class Tutorial : public ::testing::TestWithParam<const char*> {};

TEST_P(Tutorial, works_from_start_to_end) {
  const testing::TemporaryFolder folder;
  folder.shell("mkdir bin && ln -s " EMPLACE_BINARY " bin/emplace");
  const std::vector<Step> steps = steps_of(read(std::string("docs/tutorials/") + GetParam()));
  const bool can_learn = !learned_placers().empty();
  if (!can_learn && GetParam() == std::string("running.md")) GTEST_SKIP() << "nothing executes";
  int commands = 0;
  for (const Step& step : steps) {
    if (!can_learn && (needs_to_learn(step.command) || has_any(step.command, "hdp|post|my.policy")))
      continue;
    const auto result = folder.shell("PATH=$PWD/bin:$PATH; " + step.command);
    EXPECT_EQ(result.exit_code, 0) << step.command << "\n" << result.err;
    for (const std::string& words : step.expected) {
      EXPECT_TRUE(has_any(result.out, words)) << step.command << "\nprints no '" << words << "':\n"
                                              << result.out;
    }
    ++commands;
  }
  EXPECT_GE(commands, 6);
}

INSTANTIATE_TEST_SUITE_P(Pages, Tutorial,
                         ::testing::Values("engineer.md", "researcher.md", "hardware.md",
                                           "running.md"),
                         [](const auto& page) {
                           const std::string name = page.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace emplace

// The layers hold, and the check would notice if they did not.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kCheck = EMPLACE_SOURCE_DIR "/tools/check_layers.py ";

TEST(Layers, hold) {
  const TemporaryFolder folder;
  const auto result = folder.shell(kCheck);
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

TEST(Layers, check_notices_violations) {
  const TemporaryFolder folder;
  folder.shell("mkdir -p src/graph src/io src/cellar");
  folder.write("src/graph/a.cc", "#include \"sim/simulator.h\"\n");
  folder.write("src/graph/b.cc", "#include \"cluster/cluster.h\"\n");
  folder.write("src/graph/c.cc", "#include <simdjson.h>\n");
  folder.write("src/io/d.cc", "void f() { printf(\"\"); }\n");
  folder.write("src/cellar/e.cc", "");
  const auto result = folder.shell(std::string(kCheck) + "src");
  EXPECT_EQ(result.exit_code, 1);
  for (const char* where :
       {"graph/a.cc:1", "graph/b.cc:1", "graph/c.cc:1", "io/d.cc:1", "cellar/e.cc"}) {
    EXPECT_THAT(result.out, HasSubstr(where));
  }
}

constexpr const char* kCheckNames = EMPLACE_SOURCE_DIR "/tools/check_names.py ";

TEST(Names, differ_where_files_are_compiled_together) {
  const TemporaryFolder folder;
  const auto result = folder.shell(kCheckNames);
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

TEST(Names, check_notices_those_that_are_alike) {
  const TemporaryFolder folder;
  folder.shell("mkdir -p src/graph src/zoo");
  const char* one = "namespace {\nint size_of(int a) {\n  return a;\n}\n}  // namespace\n";
  for (const char* file : {"src/graph/a.cc", "src/graph/b.cc", "src/zoo/a.cc", "src/zoo/b.cc"}) {
    folder.write(file, one);
  }
  const auto result = folder.shell(std::string(kCheckNames) + ".");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "src/graph: 'size_of' is in a.cc, b.cc\n");
}

constexpr const char* kCheckSizes = EMPLACE_SOURCE_DIR "/tools/check_sizes.py ";

TEST(Sizes, no_file_is_too_long) {
  const TemporaryFolder folder;
  const auto result = folder.shell(kCheckSizes);
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

TEST(Sizes, check_notices_a_file_that_is) {
  const TemporaryFolder folder;
  folder.shell(
      "mkdir -p src/graph tests; yes | head -600 > src/graph/a.cc; "
      "yes | head -601 > tests/b.h; yes | head -601 > tests/golden.txt");
  const auto result = folder.shell(std::string(kCheckSizes) + ".");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "tests/b.h: 601 lines; expected 600 at most\n");
}

}  // namespace
}  // namespace emplace

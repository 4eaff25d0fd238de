#include "base/read_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "support/command.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string error_of(const std::string& path) {
  try {
    read_bytes(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
    return error.what();
  }
  return "no error";
}

TEST(ReadBytes, gives_a_file_as_it_is) {
  const TemporaryFolder folder;
  std::string content = "a\r\nb";
  content += '\0';
  EXPECT_EQ(read_bytes(folder.write("small", content)), content);
  EXPECT_EQ(read_bytes(folder.write("empty", "")), "");
  for (const std::size_t more : {0, 1}) {  // whole chunks, and more
    const std::string large((std::size_t{1} << 21) + more, 'x');
    EXPECT_TRUE(read_bytes(folder.write("large", large)) == large);
  }
}

TEST(ReadBytes, names_what_cannot_be_read) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(folder.path("none")), HasSubstr(folder.path("none") + ": cannot be opened"));
  EXPECT_THAT(error_of(folder.path("")), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace emplace

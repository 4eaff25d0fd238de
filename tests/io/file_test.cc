#include "io/file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::path(testing::TempDir()) / (std::string("emplace_file_") + info->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string get(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string gzipped(const std::string& content) const {
    write_file(path("gzipped.gz"), content);
    std::string bytes = get("gzipped.gz");
    fs::remove(path("gzipped.gz"));
    return bytes;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  std::string error_of_reading(const std::string& name) const {
    try {
      read_file(path(name));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path directory_;
};

// Bytes that do not compress, longer than the pieces in which files are read and packed.
std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& c : bytes) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return bytes;
}

TEST_F(FileTest, reads_what_was_written) {
  for (const std::string& content : {std::string(), std::string("a\0b\n", 4), noise(3'000'000)}) {
    write_file(path("plain"), content);
    EXPECT_EQ(get("plain"), content);
    EXPECT_EQ(read_file(path("plain")), content);
    write_file(path("packed.gz"), content);
    EXPECT_EQ(read_file(path("packed.gz")), content);
  }
}

TEST_F(FileTest, packs_where_the_name_ends_in_gz_and_unpacks_by_content) {
  const std::string content(100'000, 'x');
  const std::string bytes = gzipped(content);
  EXPECT_LT(bytes.size(), 1000U);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
  put("no_ending", bytes);
  EXPECT_EQ(read_file(path("no_ending")), content);
  put("lying.gz", "plain text");
  EXPECT_EQ(read_file(path("lying.gz")), "plain text");
}

TEST_F(FileTest, same_content_gives_the_same_gzip_bytes) {
  EXPECT_EQ(gzipped("content"), gzipped("content"));
}

TEST_F(FileTest, joins_the_members_of_a_gzip_file) {
  const std::string big = noise(1'500'000);
  put("two.gz", gzipped(big) + gzipped("") + gzipped("tail"));
  EXPECT_EQ(read_file(path("two.gz")), big + "tail");
}

TEST_F(FileTest, allows_zeros_after_gzip_data_and_nothing_else) {
  put("padded.gz", gzipped("content") + std::string(512, '\0'));
  EXPECT_EQ(read_file(path("padded.gz")), "content");
  put("extra.gz", gzipped("content") + "extra");
  EXPECT_THAT(error_of_reading("extra.gz"), HasSubstr("5 bytes that are not gzip"));
}

TEST_F(FileTest, refuses_truncated_gzip_at_every_length) {
  const std::string bytes = gzipped("some content that is long enough to matter");
  for (std::size_t length = 2; length < bytes.size(); ++length) {
    put("cut.gz", bytes.substr(0, length));
    const std::string message = error_of_reading("cut.gz");
    EXPECT_THAT(message, HasSubstr("truncated")) << length;
    EXPECT_THAT(message, HasSubstr(path("cut.gz")));
  }
}

TEST_F(FileTest, refuses_truncated_gzip_that_ends_where_a_piece_does) {
  const std::string bytes = gzipped(noise(2'500'000));
  put("cut.gz", bytes.substr(0, std::size_t{1} << 20));
  EXPECT_THAT(error_of_reading("cut.gz"), HasSubstr("truncated"));
}

TEST_F(FileTest, refuses_gzip_whose_checksum_is_wrong) {
  std::string bytes = gzipped("some content");
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);
  put("bad.gz", bytes);
  EXPECT_THAT(error_of_reading("bad.gz"), HasSubstr("corrupt"));
}

TEST_F(FileTest, names_a_file_that_is_not_there) {
  try {
    read_file(path("absent"));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
    EXPECT_THAT(error.what(), HasSubstr(path("absent")));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
}

TEST_F(FileTest, refuses_to_read_or_write_a_directory) {
  EXPECT_THAT(error_of_reading("."), HasSubstr("is a directory"));
  EXPECT_THROW(write_file(directory_.string(), "content"), Error);
}

TEST_F(FileTest, replaces_a_file_and_leaves_nothing_beside_it) {
  write_file(path("file"), "old and longer");
  write_file(path("file"), "new");
  EXPECT_EQ(get("file"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileTest, failing_to_write_names_the_file_and_leaves_nothing) {
  try {
    write_file(path("no/such/folder"), "content");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kSystem);
    EXPECT_THAT(error.what(), HasSubstr(path("no/such/folder")));
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(FileTest, writes_through_a_symbolic_link) {
  put("target", "old");
  fs::create_symlink(path("target"), path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("target"), "new");
}

TEST_F(FileTest, writes_to_a_device_without_replacing_it) {
  if (!fs::is_character_file("/dev/null") || !fs::is_character_file("/dev/full")) {
    GTEST_SKIP() << "this system has no /dev/null and /dev/full";
  }
  write_file("/dev/null", "content");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(write_file("/dev/full", "content"), Error);
}

}  // namespace
}  // namespace emplace

#include "base/read_bytes.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/error.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = std::size_t{1} << 20;

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string error_text() {
  return std::generic_category().message(errno);
}

}  // namespace

std::string read_bytes(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    fail(ErrorKind::kSystem, "{}: is a directory; expected a file", path);
  }
  errno = 0;
  const File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) fail(ErrorKind::kSystem, "{}: cannot be opened: {}", path, error_text());
  std::string content;
  const auto size = fs::file_size(path, ignored);
  if (!ignored) content.reserve(size + kChunk);
  std::size_t used = 0;
  while (true) {
    content.resize(used + kChunk);
    const std::size_t got = std::fread(content.data() + used, 1, kChunk, file.get());
    used += got;
    if (got < kChunk) break;
  }
  if (std::ferror(file.get()))
    fail(ErrorKind::kSystem, "{}: cannot be read: {}", path, error_text());
  content.resize(used);
  return content;
}

}  // namespace emplace

#include "io/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/read_bytes.h"

#include "io/gzip.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string error_text() {
  return std::generic_category().message(errno);
}

// Nothing when all was written, else what the system said.
std::string write_bytes(std::FILE* file, std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fflush(file) != 0) {
    return error_text();
  }
  return {};
}

void write_in_place(const std::string& path, std::string_view bytes) {
  errno = 0;
  const File file(std::fopen(path.c_str(), "wb"));
  if (!file) fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, error_text());
  const std::string problem = write_bytes(file.get(), bytes);
  if (!problem.empty()) fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, problem);
}

// An empty file beside `target`, under a name that no other file has, process or thread.
File open_temporary(const std::string& target, std::string& name) {
  static std::atomic<unsigned> counter{0};
  constexpr mode_t kMode = 0666;  // the user's umask decides, as for any file
  int descriptor = -1;
  do {
    name = fmt::format("{}.tmp-{}-{}", target, ::getpid(), counter.fetch_add(1));
    errno = 0;
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  } while (descriptor < 0 && errno == EEXIST);
  return File(descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb"));
}

void write_and_rename(const std::string& path, const std::string& target, std::string_view bytes) {
  std::string name;
  File file = open_temporary(target, name);
  if (!file) fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, error_text());
  std::string problem = write_bytes(file.get(), bytes);
  // Else the name may reach the disk before the content, and a crash leave an empty file.
  if (problem.empty() && ::fsync(::fileno(file.get())) != 0) problem = error_text();
  if (std::fclose(file.release()) != 0 && problem.empty()) problem = error_text();
  if (problem.empty() && std::rename(name.c_str(), target.c_str()) != 0) problem = error_text();
  if (!problem.empty()) {
    std::remove(name.c_str());
    fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, problem);
  }
}

// Where a file of this name really is: what a link leads to is replaced, not the link.
std::string behind_links(const std::string& path, const fs::file_status& status) {
  std::error_code failure;
  if (!fs::exists(status) || !fs::is_symlink(fs::symlink_status(path, failure))) return path;
  const std::string target = fs::canonical(path, failure).string();
  return failure ? path : target;
}

// A device or a pipe must be written to, not replaced by a file of its name.
bool written_in_place(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status);
}

fs::file_status status_for_writing(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    fail(ErrorKind::kSystem, "{}: is a directory; expected a file's name", path);
  }
  return status;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::string bytes = read_bytes(path);
  return has_gzip_magic(bytes) ? gunzip(bytes, path) : bytes;
}

void write_file(const std::string& path, std::string_view content) {
  std::string packed;
  if (path.ends_with(".gz")) {
    packed = gzip(content);
    content = packed;
  }
  const fs::file_status status = status_for_writing(path);
  if (written_in_place(status)) return write_in_place(path, content);
  write_and_rename(path, behind_links(path, status), content);
}

void require_folder(const std::string& path) {
  if (path.empty()) return;
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  fail(ErrorKind::kSystem, "{}: cannot be written: there is no folder '{}'", path, folder.string());
}

void require_writable(const std::string& path) {
  const fs::file_status status = status_for_writing(path);
  if (written_in_place(status)) return;
  std::string name;
  const File file = open_temporary(behind_links(path, status), name);
  if (!file) fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, error_text());
  std::remove(name.c_str());
}

}  // namespace emplace

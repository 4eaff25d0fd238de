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
#include <zlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/read_bytes.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, with gzip's header and trailer

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string error_text() {
  return std::generic_category().message(errno);
}

bool has_gzip_magic(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    EMPLACE_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK);
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends one member's content to `content` and returns what follows the member.
  std::string_view member(std::string_view bytes, std::string& content) {
    EMPLACE_CHECK(inflateReset(&stream_) == Z_OK);
    std::size_t used = content.size();
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      const auto give = static_cast<uInt>(std::min(bytes.size(), kChunk));
      content.resize(used + kChunk);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = give;
      stream_.next_out = reinterpret_cast<Bytef*>(content.data() + used);
      stream_.avail_out = static_cast<uInt>(kChunk);
      status = inflate(&stream_, Z_NO_FLUSH);
      bytes.remove_prefix(give - stream_.avail_in);
      used += kChunk - stream_.avail_out;
      if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && stream_.avail_out > 0)) {
        fail_input("{}: the gzip data ends too early; the file is truncated", path_);
      }
      if (status != Z_OK && status != Z_STREAM_END) {
        fail_input("{}: the gzip data is corrupt: {}", path_,
                   stream_.msg != nullptr ? stream_.msg : "inflate failed");
      }
    }
    content.resize(used);
    return bytes;
  }

 private:
  const std::string& path_;
  z_stream stream_{};
};

std::string gunzip(std::string_view bytes, const std::string& path) {
  Inflater inflater(path);
  std::string content;
  while (has_gzip_magic(bytes)) bytes = inflater.member(bytes, content);
  // Archivers pad with zeros; anything else was meant to be data.
  if (bytes.find_first_not_of('\0') != std::string_view::npos) {
    fail_input("{}: the gzip data is corrupt: {} bytes that are not gzip follow it", path,
               bytes.size());
  }
  return content;
}

std::string gzip(std::string_view content) {
  z_stream stream{};
  constexpr int kMemoryLevel = 8;
  EMPLACE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string bytes;
  std::size_t used = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const auto give = static_cast<uInt>(std::min(content.size(), kChunk));
    bytes.resize(used + kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = give;
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + used);
    stream.avail_out = static_cast<uInt>(kChunk);
    status = deflate(&stream, give == content.size() ? Z_FINISH : Z_NO_FLUSH);
    EMPLACE_CHECK(status == Z_OK || status == Z_STREAM_END);
    content.remove_prefix(give - stream.avail_in);
    used += kChunk - stream.avail_out;
  }
  bytes.resize(used);
  return bytes;
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

#include "base/read_bytes.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"

namespace emplace {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kPollMilliseconds = 50;

std::string error_text() {
  return std::generic_category().message(errno);
}

// Standard input stays open.
class Source {
 public:
  explicit Source(const std::string& path) : path_(path) {
    if (path == "-") return;
    // Opening a named pipe would otherwise wait for whoever writes to it, maybe for ever.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) {
      fail(ErrorKind::kSystem, "{}: cannot be opened: {}", path, error_text());
    }
  }
  ~Source() {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  struct stat status() const {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) {
      fail(ErrorKind::kSystem, "{}: cannot be looked at: {}", path_, error_text());
    }
    return found;
  }

  bool is_terminal() const { return ::isatty(descriptor_) != 0; }

  // 0 at the end.
  std::size_t read(char* to, std::size_t count) {
    while (true) {
      const ssize_t got = ::read(descriptor_, to, count);
      if (got > 0) began_ = true;
      if (got > 0 || (got == 0 && !nobody_yet())) return static_cast<std::size_t>(got);
      if (got < 0 && errno != EINTR && errno != EAGAIN) {
        fail(ErrorKind::kSystem, "{}: cannot be read: {}", path_, error_text());
      }
      pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (got == 0 || errno == EAGAIN) ::poll(&ready, 1, kPollMilliseconds);
    }
  }

 private:
  // A named pipe is at its end before it has begun, too: nobody has opened it for writing.
  bool nobody_yet() const {
    if (began_ || descriptor_ == STDIN_FILENO || !S_ISFIFO(status().st_mode)) return false;
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
    if (waited.count() < limits::kPipeSeconds) return true;
    fail(ErrorKind::kSystem,
         "{}: cannot be read: it is a pipe, and nobody wrote to it for {:.0f} s", path_,
         limits::kPipeSeconds);
  }

  const std::string& path_;
  int descriptor_ = STDIN_FILENO;
  bool began_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string read_bytes(const std::string& path) try {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail(ErrorKind::kSystem, "{}: is a directory; expected a file", path);
  }
  Source source(path);
  std::string content;
  const struct stat status = source.status();
  // Such as /dev/zero, which has no end.
  if (path != "-" && S_ISCHR(status.st_mode) && !source.is_terminal()) {
    fail(ErrorKind::kSystem, "{}: is a device; expected a file", path);
  }
  if (S_ISREG(status.st_mode) && status.st_size >= 0 &&
      static_cast<std::size_t>(status.st_size) <= limits::kInputBytes) {
    content.reserve(static_cast<std::size_t>(status.st_size) + kChunk);
  }
  std::size_t used = 0;
  while (true) {
    content.resize(used + kChunk);
    const std::size_t got = source.read(content.data() + used, kChunk);
    if (got == 0) break;
    used += got;
    if (used > limits::kInputBytes) {
      fail(ErrorKind::kUnsupported, "{}: is longer than the {} GiB that an input may have", path,
           limits::kInputBytes >> 30);
    }
  }
  content.resize(used);
  return content;
} catch (const std::bad_alloc&) {
  fail(ErrorKind::kSystem, "{}: is too large for this machine's memory", path);
}

}  // namespace emplace

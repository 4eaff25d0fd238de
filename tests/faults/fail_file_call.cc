// Preloaded into a program (LD_PRELOAD), lets the n-th call that writes a file of its folder fail:
// EMPLACE_FAIL_FILE_CALL=n:WHAT once, n+:WHAT from then on, where WHAT is the number of an error,
// or 0 for writes that take half of what they are given. Calls are opening to write, writing,
// changing the mode, syncing, closing and renaming, of files with a relative name, and making and
// exchanging such folders.
// EMPLACE_COUNT_FILE_CALLS=FILE gets how many there were.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Fault {
  long at = -1;
  bool from_then_on = false;
  int error = 0;

  Fault() {
    const char* text = std::getenv("EMPLACE_FAIL_FILE_CALL");
    if (text == nullptr) return;
    char* end = nullptr;
    at = std::strtol(text, &end, 10);
    from_then_on = *end == '+';
    if (from_then_on) ++end;
    error = *end == ':' ? static_cast<int>(std::strtol(end + 1, nullptr, 10)) : 0;
  }
};

const Fault& fault() {
  static const Fault one;
  return one;
}

std::atomic<long> count{0};
std::array<std::atomic<bool>, 4096> watched{};

std::atomic<bool>* watch_of(int descriptor) {
  return descriptor >= 0 && static_cast<std::size_t>(descriptor) < watched.size()
             ? &watched[static_cast<std::size_t>(descriptor)]
             : nullptr;
}

bool is_watched(int descriptor) {
  const std::atomic<bool>* watch = watch_of(descriptor);
  return watch != nullptr && watch->load();
}

bool due() {
  const long now = count.fetch_add(1);
  return fault().at >= 0 && (now == fault().at || (fault().from_then_on && now > fault().at));
}

// Whether this call is to fail; errno then says how.
bool fails() {
  if (!due() || fault().error == 0) return false;
  errno = fault().error;
  return true;
}

int open_file(const char* path, int flags, unsigned mode) {
  const bool writes = path[0] != '/' && (flags & (O_WRONLY | O_RDWR)) != 0;
  if (writes && fails()) return -1;
  const long descriptor = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (auto* watch = watch_of(static_cast<int>(descriptor))) watch->store(writes);
  return static_cast<int>(descriptor);
}

unsigned mode_in(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
}

struct Report {
  ~Report() {
    const char* path = std::getenv("EMPLACE_COUNT_FILE_CALLS");
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", count.load());
    std::fclose(file);
  }
};
const Report report;

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_file(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_file(path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  if (is_watched(descriptor) && due()) {
    if (fault().error != 0) {
      errno = fault().error;
      return -1;
    }
    size = (size + 1) / 2;
  }
  return syscall(SYS_write, descriptor, bytes, size);
}

int fchmod(int descriptor, mode_t mode) noexcept {
  if (is_watched(descriptor) && fails()) return -1;
  return static_cast<int>(syscall(SYS_fchmod, descriptor, mode));
}

int fsync(int descriptor) {
  if (is_watched(descriptor) && fails()) return -1;
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

int close(int descriptor) {
  bool failed = false;
  if (is_watched(descriptor)) {
    watch_of(descriptor)->store(false);
    failed = fails();
  }
  const int error = errno;
  const auto result = static_cast<int>(syscall(SYS_close, descriptor));
  if (!failed) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  if (from[0] != '/' && fails()) return -1;
  return static_cast<int>(syscall(SYS_rename, from, to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (from[0] != '/' && fails()) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (path[0] != '/' && fails()) return -1;
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}

}  // extern "C"

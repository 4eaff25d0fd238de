#include "io/file_calls.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace emplace {
namespace {

FileCalls system_calls;
FileCalls* chosen_calls = &system_calls;

template <class Call>
auto uninterrupted(Call call) {
  decltype(call()) result;
  do {
    errno = 0;
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

int FileCalls::open(const char* path, int flags, mode_t mode) {
  return ::open(path, flags, mode);
}
ssize_t FileCalls::write(int descriptor, const void* bytes, std::size_t count) {
  return ::write(descriptor, bytes, count);
}
int FileCalls::change_mode(int descriptor, mode_t mode) {
  return ::fchmod(descriptor, mode);
}
int FileCalls::lock(int descriptor, int operation) {
  return ::flock(descriptor, operation);
}
int FileCalls::sync(int descriptor) {
  return ::fsync(descriptor);
}
int FileCalls::close(int descriptor) {
  return ::close(descriptor);
}
int FileCalls::rename(const char* from, const char* to) {
  return ::rename(from, to);
}
int FileCalls::remove(const char* path) {
  return ::unlink(path);
}
int FileCalls::make_folder(const char* path, mode_t mode) {
  return ::mkdir(path, mode);
}
int FileCalls::exchange(const char* one, const char* other) {
  return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

FileCalls& file_calls() {
  return *chosen_calls;
}

FileCalls* replace_file_calls(FileCalls* calls) {
  return std::exchange(chosen_calls, calls != nullptr ? calls : &system_calls);
}

OutputFile::OutputFile(const std::string& path, int flags, mode_t mode)
    : descriptor_(
          uninterrupted([&] { return file_calls().open(path.c_str(), flags | O_CLOEXEC, mode); })) {
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::string OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return file_calls().write(descriptor_, bytes.data(), bytes.size()); });
    if (written < 0) return file_error();
    // As on a device that takes nothing more, and says no more.
    if (written == 0) return "nothing more could be written";
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string OutputFile::sync() {
  return uninterrupted([&] { return file_calls().sync(descriptor_); }) < 0 ? file_error() : "";
}

// A descriptor is gone after close(2) even where a signal interrupted that.
std::string OutputFile::close() {
  if (descriptor_ < 0) return {};
  errno = 0;
  const int result = file_calls().close(std::exchange(descriptor_, -1));
  return result < 0 && errno != EINTR ? file_error() : "";
}

std::string file_error() {
  return std::generic_category().message(errno);
}

}  // namespace emplace

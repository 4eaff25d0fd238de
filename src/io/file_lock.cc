#include "io/file_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/error.h"

namespace emplace {
namespace {

// A run that was killed a moment ago holds its lock until its memory is given back.
constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kPause{20};

// Whether the name still is the file's: who had the lock before removes both.
bool is_at(const std::string& name, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  return ::stat(name.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

}  // namespace

FileLock::FileLock(const std::string& path) : name_(path + ".lock") {
  constexpr mode_t kMode = 0666;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    OutputFile file(name_, O_RDWR | O_CREAT, kMode);
    if (!file) fail(ErrorKind::kSystem, "{}: cannot be locked: {}: {}", path, name_, file_error());
    if (file_calls().lock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      // Some shared disks have no locks; a run there is on its own.
      if (errno != EWOULDBLOCK) {
        file_calls().remove(name_.c_str());
        return;
      }
      if (std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      fail(ErrorKind::kSystem, "{}: another run is using it; give this one a file of its own",
           path);
    }
    if (is_at(name_, file.descriptor())) {
      file_ = std::move(file);
      return;
    }
  }
}

FileLock::~FileLock() {
  if (file_) file_calls().remove(name_.c_str());
}

}  // namespace emplace

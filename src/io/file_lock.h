// That a file belongs to one run at a time: files that are replaced cannot be locked themselves, so
// the lock is a file of its own beside it, which goes with the lock.
#pragma once

#include <string>

#include "io/file_calls.h"

namespace emplace {

class FileLock {
 public:
  // Throws an Error where another run, of this process or of another, keeps the lock of this path
  // for seconds, or the folder cannot be written to.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string name_;
  OutputFile file_;  // none where the disk has no locks
};

}  // namespace emplace

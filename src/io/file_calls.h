// The system calls that write files, all of them here, so that a test can let any of them fail.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace emplace {

// As the system's, errno included.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t count);
  virtual int change_mode(int descriptor, mode_t mode);
  virtual int lock(int descriptor, int operation);
  virtual int sync(int descriptor);
  virtual int close(int descriptor);
  virtual int rename(const char* from, const char* to);
  virtual int remove(const char* path);
  virtual int make_folder(const char* path, mode_t mode);
  // Of two files or folders, each gets the other's name, at once.
  virtual int exchange(const char* one, const char* other);
};

FileCalls& file_calls();
// For tests, while no file is written: these from now on; nullptr: the system's. Returns those
// before.
FileCalls* replace_file_calls(FileCalls* calls);

// A file that is open for writing. What fails is said by a text, which is empty where nothing did.
class OutputFile {
 public:
  OutputFile() = default;
  // As open(2), and tried again where a signal interrupts it.
  OutputFile(const std::string& path, int flags, mode_t mode);
  ~OutputFile() { close(); }
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // All of it, in as many calls as it takes.
  std::string write(std::string_view bytes);
  std::string sync();
  std::string close();

 private:
  int descriptor_ = -1;
};

// What errno says.
std::string file_error();

// What the system says where a call fails, which is tried again where a signal interrupts it.
template <class Call>
std::string answer_of(Call call) {
  while (call() != 0) {
    if (errno != EINTR) return file_error();
  }
  return {};
}

}  // namespace emplace

#include "io/append_file.h"

#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace emplace {
namespace {

[[noreturn]] void fail_to_write(const std::string& path) {
  fail(ErrorKind::kSystem, "{}: cannot be written: {}", path,
       std::generic_category().message(errno));
}

}  // namespace

AppendFile::AppendFile(const std::string& path, Open how) : path_(path) {
  errno = 0;
  file_.reset(std::fopen(path.c_str(), how == Open::kNew ? "wbx" : "r+b"));
  if (!file_ || std::fseek(file_.get(), 0, SEEK_END) != 0) fail_to_write(path_);
}

void AppendFile::append(std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      std::fflush(file_.get()) != 0) {
    fail_to_write(path_);
  }
}

}  // namespace emplace

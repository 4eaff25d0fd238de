#include "io/append_file.h"

#include <fcntl.h>

#include "base/error.h"

namespace emplace {
namespace {

constexpr mode_t kAppendMode = 0666;  // the user's umask decides

[[noreturn]] void refuse_to_append(const std::string& path, const std::string& why) {
  fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, why);
}

}  // namespace

AppendFile::AppendFile(const std::string& path, Open how)
    : path_(path),
      file_(path, O_WRONLY | O_APPEND | (how == Open::kNew ? O_CREAT | O_EXCL : 0), kAppendMode) {
  if (!file_) refuse_to_append(path_, file_error());
}

void AppendFile::append(std::string_view bytes) {
  const std::string problem = file_.write(bytes);
  if (!problem.empty()) refuse_to_append(path_, problem);
}

}  // namespace emplace

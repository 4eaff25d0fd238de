// A file that grows while others read it: what is appended is handed to the system at once.
#pragma once

#include <string>
#include <string_view>

#include "io/file_calls.h"

namespace emplace {

class AppendFile {
 public:
  enum class Open { kNew, kExisting };  // must not exist; must exist

  // Throws an Error where it cannot, as append does.
  AppendFile(const std::string& path, Open how);

  void append(std::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  OutputFile file_;
};

}  // namespace emplace

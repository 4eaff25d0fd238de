// The files that a command writes. "-" is standard output; the report then goes to standard error.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace emplace::cli {

class Outputs {
 public:
  // Empty paths are of files that were not asked for. Throws an Error where one cannot be written
  // for want of a folder, or when two things, of which `json` is one, are to go to standard output.
  Outputs(std::vector<std::string> paths, bool json);

  // Where the report goes.
  std::FILE* report() const { return report_; }
  // Nothing where the path is empty.
  void write(const std::string& path, std::string_view content) const;
  // Those that are files, in the order in which they were given.
  std::vector<std::string> files() const;

 private:
  std::vector<std::string> paths_;
  std::FILE* report_ = stdout;
};

}  // namespace emplace::cli

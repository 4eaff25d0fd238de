// The files that a command writes. "-" is standard output; the report then goes to standard error.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace emplace::cli {

class Outputs {
 public:
  // Empty paths are of files that were not asked for. Throws an Error where one cannot be written,
  // is one of the `inputs` (files, or names of other things) or another output, or when two things,
  // of which `json` is one, are to go to standard output: all before any work is done.
  Outputs(Session& session, std::vector<std::string> paths, bool json,
          const std::vector<std::string>& inputs);

  // Where the report goes.
  std::FILE* report() const { return report_; }
  // Nothing where the path is empty. What fails is said, and is the session's exit code, but does
  // not keep the answer from being printed.
  void write(const std::string& path, std::string_view content) const;
  // Those that are files and could be written, in the order in which they were given.
  std::vector<std::string> files() const;

 private:
  Session& session_;
  std::vector<std::string> paths_;
  mutable std::vector<std::string> failed_;
  std::FILE* report_ = stdout;
};

}  // namespace emplace::cli

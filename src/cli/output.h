// The files that a command writes. "-" is standard output; the report then goes to standard error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cli/command.h"

namespace emplace::cli {

class Outputs {
 public:
  // Empty paths are of files that were not asked for. Throws an Error where one cannot be written,
  // is one of the `inputs` (files, or names of other things) or another output, or when two things,
  // of which `json` is one, are to go to standard output: all before any work is done. `others` are
  // what the run itself writes.
  Outputs(Session& session, std::vector<std::string> paths, bool json,
          const std::vector<std::string>& inputs, const std::vector<std::string>& others = {});

  // The report, for people. Where it goes to standard error, nothing depends on its being read.
  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) const {
    print_text(fmt::format(format, std::forward<Values>(values)...));
  }
  // Nothing where the path is empty. What fails is said, and is the session's exit code, but does
  // not keep the answer from being printed.
  void write(const std::string& path, std::string_view content) const;
  // Those that are files and could be written, in the order in which they were given.
  std::vector<std::string> files() const;

 private:
  void print_text(const std::string& text) const;

  Session& session_;
  std::vector<std::string> paths_;
  mutable std::vector<std::string> failed_;
  bool to_stderr_ = false;  // the report
};

}  // namespace emplace::cli

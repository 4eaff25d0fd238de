#include "cli/output.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "io/file.h"

namespace emplace::cli {
namespace {

constexpr std::string_view kStandardOutput = "-";

}  // namespace

Outputs::Outputs(std::vector<std::string> paths, bool json) : paths_(std::move(paths)) {
  const auto streams = std::count(paths_.begin(), paths_.end(), kStandardOutput);
  if (streams + (json ? 1 : 0) > 1) {
    fail_option("standard output can take one thing, not {}: give the other a file's name",
                json ? "JSON and a file" : "two files");
  }
  if (streams > 0) report_ = stderr;
  for (const std::string& path : paths_) {
    if (path != kStandardOutput) require_folder(path);
  }
}

void Outputs::write(const std::string& path, std::string_view content) const {
  if (path.empty()) return;
  if (path == kStandardOutput) {
    fmt::print("{}", content);
  } else {
    write_file(path, content);
  }
}

std::vector<std::string> Outputs::files() const {
  std::vector<std::string> files;
  for (const std::string& path : paths_) {
    if (!path.empty() && path != kStandardOutput) files.push_back(path);
  }
  return files;
}

}  // namespace emplace::cli

#include "cli/output.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "cli/messages.h"
#include "io/file.h"

namespace emplace::cli {
namespace {

constexpr std::string_view kStandardOutput = "-";

// Inputs may also be names of models and clusters.
bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Such as /dev/null, which takes any number of things.
bool is_device(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_character_file(path, ignored);
}

// Names of nothing, as inputs may be, replace nothing.
void require_no_input(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (!is_file(input) || !same_file(output, input)) continue;
    fail_option("{}: is an input too; give the output another name", output);
  }
}

}  // namespace

Outputs::Outputs(Session& session, std::vector<std::string> paths, bool json,
                 const std::vector<std::string>& inputs, const std::vector<std::string>& others)
    : session_(session), paths_(std::move(paths)) {
  const auto streams = std::count(paths_.begin(), paths_.end(), kStandardOutput);
  if (streams + (json ? 1 : 0) > 1) {
    fail_option("standard output can take one thing, not {}: give the other a file's name",
                json ? "JSON and a file" : "two files");
  }
  to_stderr_ = streams > 0;
  const std::vector<std::string> files = this->files();
  for (const std::string& file : files) require_folder(file);
  std::vector<std::string> written = others;
  for (const std::string& file : files) {
    for (const std::string& other : written) {
      if (is_device(file) || !same_file(file, other)) continue;
      fail_option("{}: is the name of two outputs; give each its own", file);
    }
    written.push_back(file);
  }
  for (const std::string& file : written) require_no_input(file, inputs);
  for (const std::string& path : files) require_writable(path);
}

void Outputs::print_text(const std::string& text) const {
  if (to_stderr_) {
    say(text);
  } else {
    fmt::print("{}", text);
  }
}

void Outputs::write(const std::string& path, std::string_view content) const {
  if (path.empty()) return;
  if (path == kStandardOutput) {
    fmt::print("{}", content);
    return;
  }
  try {
    write_file(path, content);
  } catch (const Error& error) {
    failed_.push_back(path);
    session_.output_failed = true;
    say(fmt::format("emplace: {}\n", error.what()));
  }
}

std::vector<std::string> Outputs::files() const {
  std::vector<std::string> files;
  for (const std::string& path : paths_) {
    const bool failed = std::find(failed_.begin(), failed_.end(), path) != failed_.end();
    if (!path.empty() && path != kStandardOutput && !failed) files.push_back(path);
  }
  return files;
}

}  // namespace emplace::cli

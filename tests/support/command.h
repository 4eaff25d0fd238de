// Runs the built emplace in a folder of its own, as a person would.
#pragma once

#include <filesystem>
#include <string>

#include "support/testing_names.h"

namespace emplace::testing {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  std::size_t num_files() const;

  // `emplace ARGUMENTS` with this as the working folder.
  CommandResult emplace(const std::string& arguments) const {
    return shell(EMPLACE_BINARY " " + arguments);
  }
  CommandResult shell(const std::string& command) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace emplace::testing

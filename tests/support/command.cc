#include "support/command.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace emplace::testing {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "emplace-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream(folder_ / name, std::ios::binary) << content;
  return path(name);
}

std::string TemporaryFolder::read(const std::string& name) const {
  return read_all(folder_ / name);
}

std::size_t TemporaryFolder::num_files() const {
  const auto entries = std::filesystem::directory_iterator(folder_);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

CommandResult TemporaryFolder::shell(const std::string& command) const {
  const auto out = folder_ / ".out";
  const auto err = folder_ / ".err";
  const std::string line = "cd '" + folder_.string() + "' && { " + command + "\n} >'" +
                           out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(line.c_str());
  CommandResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(out), read_all(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return result;
}

}  // namespace emplace::testing

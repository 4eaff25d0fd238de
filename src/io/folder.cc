#include "io/folder.h"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#include "io/file.h"
#include "io/file_calls.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const fs::path& path, const std::string& why) {
  fail(ErrorKind::kSystem, "{}: cannot be written: {}", path.string(), why);
}

// The marker is of this program, and names everything else in quotes.
bool is_ours(const fs::path& folder, std::string_view marker) {
  constexpr std::string_view kFormat = "\"emplace.";
  if (!fs::is_regular_file(folder / marker)) return false;
  const std::string listed = read_file((folder / marker).string());
  if (listed.find(kFormat) == std::string::npos) return false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == marker) continue;
    if (!entry.is_regular_file() || listed.find('"' + name + '"') == std::string::npos) {
      return false;
    }
  }
  return true;
}

void require_replaceable(const fs::path& path, std::string_view marker) {
  if (!fs::exists(path)) return;
  if (!fs::is_directory(path)) {
    fail(ErrorKind::kSystem, "{}: is a file; expected a folder's name", path.string());
  }
  if (fs::is_empty(path) || is_ours(path, marker)) return;
  fail(ErrorKind::kSystem,
       "{}: is a folder with other files in it; expected a new or empty one, or one of which {} "
       "names all files",
       path.string(), marker);
}

// The folder under its temporary name, which is taken away with what is in it at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& target) : path_(target) {
    static std::atomic<unsigned> counter{0};
    constexpr mode_t kMode = 0777;
    int error = 0;
    std::string problem;
    do {
      path_ = target.string() + fmt::format(".tmp-{}-{}", ::getpid(), counter.fetch_add(1));
      problem = answer_of([&] {
        const int result = file_calls().make_folder(path_.c_str(), kMode);
        error = errno;
        return result;
      });
    } while (!problem.empty() && error == EEXIST);
    if (!problem.empty()) refuse_folder(target, problem);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;  // empty: nothing is to be taken away
};

// One after the other, where the disk cannot do so at once; who is killed in between leaves the
// old folder under a temporary name.
std::string exchange_in_turn(const fs::path& temporary, const fs::path& target) {
  TemporaryFolder old(target);
  const auto rename = [](const fs::path& from, const fs::path& to) {
    return answer_of([&] { return file_calls().rename(from.c_str(), to.c_str()); });
  };
  std::string problem = rename(target, old.path());
  if (!problem.empty()) return problem;
  problem = rename(temporary, target);
  if (!problem.empty() && !rename(old.path(), target).empty()) old.keep();
  return problem;
}

// What is in the way gets the temporary name, if it is more than an empty folder.
std::string give_name(const fs::path& temporary, const fs::path& target) {
  std::error_code ignored;
  if (!fs::exists(target, ignored) || fs::is_empty(target, ignored)) {
    return answer_of([&] { return file_calls().rename(temporary.c_str(), target.c_str()); });
  }
  fs::permissions(temporary, fs::status(target).permissions());
  int error = 0;
  const std::string problem = answer_of([&] {
    const int result = file_calls().exchange(temporary.c_str(), target.c_str());
    error = errno;
    return result;
  });
  const bool unknown = !problem.empty() && (error == EINVAL || error == ENOSYS);
  return unknown ? exchange_in_turn(temporary, target) : problem;
}

void sweep_folders(const fs::path& target) {
  std::error_code ignored;
  for (const std::string& old : left_overs_of(target.string())) fs::remove_all(old, ignored);
}

}  // namespace

void write_folder(const std::string& path, std::string_view marker,
                  const std::function<void(const std::string& folder)>& write) {
  fs::path target(path);
  if (!target.has_filename()) target = target.parent_path();  // "parts/"
  if (target.empty()) fail(ErrorKind::kSystem, "expected a folder's name");
  try {
    require_replaceable(target, marker);
    if (fs::is_symlink(target) && fs::exists(target)) target = fs::canonical(target);
    const TemporaryFolder temporary(target);
    write(temporary.path().string());
    const std::string problem = give_name(temporary.path(), target);
    if (!problem.empty()) refuse_folder(path, problem);
  } catch (const fs::filesystem_error& error) {
    refuse_folder(path, error.code().message());
  }
  // Not before: of a run that was killed, it may be all that there is.
  sweep_folders(target);
}

}  // namespace emplace

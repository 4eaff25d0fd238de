#include "io/file.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/read_bytes.h"

#include "io/file_calls.h"
#include "io/gzip.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& why) {
  fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, why);
}

void write_in_place(const std::string& path, std::string_view bytes) {
  constexpr mode_t kMode = 0666;
  OutputFile file(path, O_WRONLY, kMode);
  if (!file) refuse_to_write(path, file_error());
  std::string problem = file.write(bytes);
  if (problem.empty()) problem = file.close();
  if (!problem.empty()) refuse_to_write(path, problem);
}

constexpr std::string_view kTemporary = ".tmp-";

constexpr mode_t kPermissions = 07777;

// Who may read the file; nothing where there is none.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode & kPermissions;
}

// An empty file beside `target`, under a name that no other file has, process or thread. What is
// to replace a file is nobody else's until it has that one's mode; for a new one the user's umask
// decides, as for any file.
OutputFile open_temporary(const std::string& target, std::string& name) {
  static std::atomic<unsigned> counter{0};
  const mode_t mode = mode_of(target) ? 0600 : 0666;
  while (true) {
    name = fmt::format("{}{}{}-{}", target, kTemporary, ::getpid(), counter.fetch_add(1));
    OutputFile file(name, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (file || errno != EEXIST) return file;
  }
}

// Who may read a file stays as it was.
std::string keep_mode(const std::string& target, const OutputFile& file) {
  const std::optional<mode_t> mode = mode_of(target);
  if (!mode) return {};
  return answer_of([&] { return file_calls().change_mode(file.descriptor(), *mode); });
}

void write_and_rename(const std::string& path, const std::string& target, std::string_view bytes) {
  std::string name;
  OutputFile file = open_temporary(target, name);
  if (!file) refuse_to_write(path, file_error());
  std::string problem = keep_mode(target, file);
  if (problem.empty()) problem = file.write(bytes);
  // Else the name may reach the disk before the content, and a crash leave an empty file.
  if (problem.empty()) problem = file.sync();
  const std::string at_the_end = file.close();
  if (problem.empty()) problem = at_the_end;
  if (problem.empty()) {
    problem = answer_of([&] { return file_calls().rename(name.c_str(), target.c_str()); });
  }
  if (!problem.empty()) {
    file_calls().remove(name.c_str());
    refuse_to_write(path, problem);
  }
}

// Whether the file is what a process that was killed left of writing `target`: no process has the
// number in its name, and it is old enough to be no other machine's on a shared disk.
bool is_left_over(const fs::path& file, std::string_view prefix) {
  constexpr auto kOld = std::chrono::minutes(10);
  const std::string name = file.filename().string();
  if (!name.starts_with(prefix)) return false;
  pid_t writer = 0;
  const auto parsed =
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), writer);
  if (parsed.ec != std::errc{} || writer <= 0 || parsed.ptr == name.data() + name.size() ||
      *parsed.ptr != '-' || ::kill(writer, 0) == 0 || errno != ESRCH) {
    return false;
  }
  std::error_code failure;
  const auto written = fs::last_write_time(file, failure);
  return !failure && fs::file_time_type::clock::now() - written > kOld;
}

// Where a file of this name really is: what a link leads to is replaced, not the link.
std::string behind_links(const std::string& path, const fs::file_status& status) {
  std::error_code failure;
  if (!fs::exists(status) || !fs::is_symlink(fs::symlink_status(path, failure))) return path;
  const std::string target = fs::canonical(path, failure).string();
  return failure ? path : target;
}

// A device or a pipe must be written to, not replaced by a file of its name.
bool written_in_place(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status);
}

fs::file_status status_for_writing(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    fail(ErrorKind::kSystem, "{}: is a directory; expected a file's name", path);
  }
  return status;
}

}  // namespace

std::string read_file(const std::string& path) {
  return unpacked(read_bytes(path), path);
}

std::string unpacked(std::string bytes, const std::string& path) {
  if (!has_gzip_magic(bytes)) return bytes;
  try {
    return gunzip(bytes, path);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kSystem, "{}: is too large for this machine's memory when unpacked", path);
  }
}

void write_file(const std::string& path, std::string_view content) {
  std::string packed;
  if (path.ends_with(".gz")) {
    packed = gzip(content);
    content = packed;
  }
  const fs::file_status status = status_for_writing(path);
  if (written_in_place(status)) return write_in_place(path, content);
  write_and_rename(path, behind_links(path, status), content);
}

void require_folder(const std::string& path) {
  if (path.empty()) return;
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  fail(ErrorKind::kSystem, "{}: cannot be written: there is no folder '{}'", path, folder.string());
}

void require_writable(const std::string& path) {
  const fs::file_status status = status_for_writing(path);
  if (written_in_place(status)) {
    constexpr mode_t kMode = 0666;
    // Opening a pipe waits for its reader: that is for the time when there is something to say.
    if (fs::is_fifo(status)) return;
    const OutputFile file(path, O_WRONLY, kMode);
    if (!file) refuse_to_write(path, file_error());
    return;
  }
  const std::string target = behind_links(path, status);
  std::string name;
  OutputFile file = open_temporary(target, name);
  if (!file) refuse_to_write(path, file_error());
  file.close();
  file_calls().remove(name.c_str());
  for (const std::string& old : left_overs_of(target)) file_calls().remove(old.c_str());
}

std::vector<std::string> left_overs_of(const std::string& target) {
  const fs::path path(target);
  const std::string prefix = path.filename().string() + std::string(kTemporary);
  std::vector<std::string> found;
  std::error_code failure;
  fs::directory_iterator entry(path.has_parent_path() ? path.parent_path() : fs::path("."),
                               failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (is_left_over(entry->path(), prefix)) found.push_back(entry->path().string());
  }
  return found;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code failure;
  if (fs::equivalent(a, b, failure) && !failure) return true;
  // Of a relative path of which nothing is there, it would take "x" and "./x" for two.
  const auto canonical = [&](const std::string& path) {
    const fs::path absolute = fs::absolute(path, failure);
    return failure ? absolute : fs::weakly_canonical(absolute, failure);
  };
  const fs::path first = canonical(a);
  if (failure) return a == b;
  const fs::path second = canonical(b);
  return failure ? a == b : first == second;
}

}  // namespace emplace

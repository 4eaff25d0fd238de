#include "io/folder.h"

#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/error.h"

#include "io/file.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

void write_folder(const std::string& path, std::string_view marker,
                  const std::function<void(const std::string& folder)>& write) {
  fs::path target(path);
  if (!target.has_filename()) target = target.parent_path();  // "parts/"
  if (target.empty()) fail(ErrorKind::kSystem, "expected a folder's name");
  const fs::path temporary = target.string() + fmt::format(".tmp-{}", ::getpid());
  const fs::path old = target.string() + fmt::format(".old-{}", ::getpid());
  try {
    require_replaceable(target, marker);
    fs::create_directory(temporary);
    write(temporary.string());
    const bool replaces = fs::exists(target);
    if (replaces) fs::rename(target, old);
    try {
      fs::rename(temporary, target);
    } catch (const fs::filesystem_error&) {
      if (replaces) fs::rename(old, target);
      throw;
    }
    if (replaces) fs::remove_all(old);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    fail(ErrorKind::kSystem, "{}: cannot be written: {}", path, error.code().message());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
}

}  // namespace emplace

#include "base/loaded_library.h"

#include <string_view>

#include <dlfcn.h>
#include <link.h>

#include "base/error.h"

namespace emplace {
namespace {

constexpr const char* kTorchLibrary = "libemplace_torch.so";
constexpr const char* kMpiLibrary = "libemplace_mpi.so";

// A libtorch that comes with its own BLAS must find that one, and not the one that a solver of this
// library has brought along. Sanitizers cannot do with it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

// Looked for beside this library first, which has that in its run path.
void* find_in_library(const char* name, int flags, const char* entry,
                      const std::string& needed_by) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
  void* found = library != nullptr ? dlsym(library, entry) : nullptr;
  if (found != nullptr) return found;
  const char* reason = dlerror();
  fail(ErrorKind::kUnsupported, "{} needs {}, which could not be loaded: {}", needed_by, name,
       reason != nullptr ? reason : "no reason given");
}

#ifdef EMPLACE_TORCH_SONAME
struct OtherTorch {
  std::string path;  // empty: there is none
};

int note_other_torch(dl_phdr_info* info, std::size_t, void* data) {
  const std::string_view path = info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with("libtorch_cpu.so")) return 0;
  // The loader takes a library that is there under the name that ours asks for.
  void* same = dlopen(EMPLACE_TORCH_SONAME, RTLD_NOW | RTLD_NOLOAD);
  if (same != nullptr) {
    dlclose(same);
    return 0;
  }
  static_cast<OtherTorch*>(data)->path = path;
  return 1;
}

// Two libtorch in one process share names and corrupt each other.
void refuse_second_torch(const std::string& needed_by) {
  OtherTorch other;
  dl_iterate_phdr(&note_other_torch, &other);
  if (other.path.empty()) return;
  fail(ErrorKind::kUnsupported,
       "{} needs {}, but this process has loaded another PyTorch, {}: use a process without it, or "
       "a build of emplace against that PyTorch",
       needed_by, EMPLACE_TORCH_SONAME, other.path);
}
#else
void refuse_second_torch(const std::string&) {}
#endif

}  // namespace

void* find_in_torch_library(const char* entry, const std::string& needed_by) {
  refuse_second_torch(needed_by);
  return find_in_library(kTorchLibrary, kOwnSymbolsFirst, entry, needed_by);
}

void* find_in_mpi_library(const char* entry, const std::string& needed_by) {
  return find_in_library(kMpiLibrary, 0, entry, needed_by);
}

}  // namespace emplace

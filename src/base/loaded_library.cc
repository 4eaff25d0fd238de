#include "base/loaded_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace emplace {
namespace {

constexpr const char* kLibrary = "libemplace_torch.so";

// A libtorch that comes with its own BLAS must find that one, and not the one that a solver of this
// library has brought along. Sanitizers cannot do with it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnSymbolsFirst = 0;
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

[[noreturn]] void fail_to_load(const std::string& needed_by) {
  const char* reason = dlerror();
  fail(ErrorKind::kUnsupported, "{} needs {}, which could not be loaded: {}", needed_by, kLibrary,
       reason != nullptr ? reason : "no reason given");
}

}  // namespace

void* find_in_torch_library(const char* entry, const std::string& needed_by) {
  // Looked for beside this library first, which has that in its run path.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | kOwnSymbolsFirst);
  if (library == nullptr) fail_to_load(needed_by);
  void* found = dlsym(library, entry);
  if (found == nullptr) fail_to_load(needed_by);
  return found;
}

}  // namespace emplace

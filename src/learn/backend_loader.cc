// Part of the library that does not see libtorch.
#include <dlfcn.h>

#include "base/error.h"

#include "learn/backend.h"

namespace emplace::learn {
namespace {

constexpr const char* kLibrary = "libemplace_torch.so";
constexpr const char* kEntry = "emplace_learn_backend";

[[noreturn]] void fail_to_load(const std::string& needed_by) {
  const char* reason = dlerror();
  fail(ErrorKind::kUnsupported, "{} needs {}, which could not be loaded: {}", needed_by, kLibrary,
       reason != nullptr ? reason : "no reason given");
}

const Backend* load(const std::string& needed_by) {
  // Looked for beside this library first, which has that in its run path.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail_to_load(needed_by);
  auto* entry = reinterpret_cast<const Backend* (*)()>(dlsym(library, kEntry));
  if (entry == nullptr) fail_to_load(needed_by);
  return entry();
}

}  // namespace

const Backend& backend(const std::string& needed_by) {
  static const Backend* const loaded = load(needed_by);
  return *loaded;
}

}  // namespace emplace::learn

// Part of the library that does not see libtorch.
#include "base/loaded_library.h"

#include "learn/backend.h"

namespace emplace::learn {
namespace {

const Backend* load(const std::string& needed_by) {
  void* entry = find_in_torch_library("emplace_learn_backend", needed_by);
  return reinterpret_cast<const Backend* (*)()>(entry)();
}

}  // namespace

const Backend& backend(const std::string& needed_by) {
  static const Backend* const loaded = load(needed_by);
  return *loaded;
}

}  // namespace emplace::learn

// Part of the library that does not see libtorch.
#include "base/loaded_library.h"

#include "exec/runtime.h"

namespace emplace::exec {
namespace {

const Backend* load_backend(const std::string& needed_by) {
  void* entry = find_in_torch_library("emplace_exec_backend", needed_by);
  return reinterpret_cast<const Backend* (*)()>(entry)();
}

}  // namespace

const Backend& backend(const std::string& needed_by) {
  static const Backend* const loaded = load_backend(needed_by);
  return *loaded;
}

std::atomic<int>& threads_left_alone() {
  static std::atomic<int> count{0};
  return count;
}

}  // namespace emplace::exec

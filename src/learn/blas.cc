#include "learn/blas.h"

#include <cstdlib>
#include <string_view>

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace emplace::learn {
namespace {

template <class Function>
Function* openblas_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The kernels for this processor by OpenBLAS's names; nothing where it is no better than the
// oldest.
const char* fitting_kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) return "Haswell";
#endif
  return nullptr;
}

// OpenBLAS takes processors newer than itself for ones of 2004, with a fifth of the speed. It
// listens to the environment, but only when it chooses, which is when the program is loaded: so it
// is made to choose again. No product may be under way.
void correct_openblas_kernels() {
  auto* name = openblas_function<char*()>("openblas_get_corename");
  auto* forget = openblas_function<void()>("gotoblas_dynamic_quit");
  auto* choose = openblas_function<void()>("gotoblas_dynamic_init");
  const char* fitting = fitting_kernels();
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (name == nullptr || forget == nullptr || choose == nullptr || fitting == nullptr) return;
  if (std::string_view(name()) != "Prescott" || std::getenv(kVariable) != nullptr) return;
  setenv(kVariable, fitting, /*overwrite=*/0);
  forget();
  choose();
  unsetenv(kVariable);
}

}  // namespace

void prepare_tensor_operations() {
  static const bool done = [] {
    correct_openblas_kernels();
    at::set_num_threads(1);
    // OpenBLAS has threads of its own, whatever libtorch says.
    if (auto* set_threads = openblas_function<void(int)>("openblas_set_num_threads")) {
      set_threads(1);
    }
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace emplace::learn

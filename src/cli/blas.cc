#include "cli/blas.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

namespace emplace::cli {
namespace {

constexpr const char* kKernels = "OPENBLAS_CORETYPE";
constexpr const char* kThreads = "OPENBLAS_NUM_THREADS";

template <class Function>
Function* loaded_function(const char* name) {
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

void set_if_unset(const char* variable, const char* value) {
  setenv(variable, value, /*overwrite=*/0);
}

// Kernels are chosen when OpenBLAS is loaded. Where a solver has brought it along with the program,
// that is before main: it is made to choose again.
void choose_again() {
  auto* forget = loaded_function<void()>("gotoblas_dynamic_quit");
  auto* choose = loaded_function<void()>("gotoblas_dynamic_init");
  if (forget == nullptr || choose == nullptr) return;
  forget();
  choose();
}

// OpenBLAS takes processors newer than itself for ones of 2004, with a fifth of the speed.
void set_kernels() {
  auto* name = loaded_function<char*()>("openblas_get_corename");
  if (std::getenv(kKernels) == nullptr) {
    const char* fitting = fitting_kernels();
    if (fitting == nullptr || (name != nullptr && std::string_view(name()) != "Prescott")) return;
    set_if_unset(kKernels, fitting);
  }
  // The program may have set the variable after OpenBLAS was loaded.
  if (name != nullptr && std::string_view(name()) != std::getenv(kKernels)) choose_again();
}

void set_threads() {
  auto* set = loaded_function<void(int)>("openblas_set_num_threads");
  if (set != nullptr && std::getenv(kThreads) == nullptr) set(1);
  set_if_unset(kThreads, "1");
  set_if_unset("OMP_NUM_THREADS", "1");
}

}  // namespace

void prepare_blas() {
  set_kernels();
  set_threads();
}

}  // namespace emplace::cli

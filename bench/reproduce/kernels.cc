#include "reproduce/kernels.h"

#include <cstdlib>

namespace emplace::bench {
namespace {

bool processor_has_them() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}

std::string pin(const char* variable, const char* value) {
  if (processor_has_them()) setenv(variable, value, /*overwrite=*/0);
  const char* chosen = std::getenv(variable);
  return chosen == nullptr ? "any" : chosen;
}

}  // namespace

std::string pin_kernels() {
  const std::string products = pin("OPENBLAS_CORETYPE", "Haswell");
  const std::string others = pin("ATEN_CPU_CAPABILITY", "avx2");
  return products + "/" + others;
}

}  // namespace emplace::bench

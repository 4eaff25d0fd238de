#include "exec/onednn.h"

#include <dlfcn.h>

namespace emplace::exec {
namespace {

bool limit_instructions() {
  constexpr int kWithoutTiles = 0xe7;  // dnnl_cpu_isa_avx512_core_bf16
  void* library = dlopen("libdnnl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  using SetMaxCpuIsa = int (*)(int);
  const auto set = reinterpret_cast<SetMaxCpuIsa>(dlsym(library, "dnnl_set_max_cpu_isa"));
  const bool limited = set != nullptr && set(kWithoutTiles) == 0;
  dlclose(library);
  return limited;
}

}  // namespace

void keep_onednn_off_tiles() {
  [[maybe_unused]] static const bool limited = limit_instructions();
}

}  // namespace emplace::exec

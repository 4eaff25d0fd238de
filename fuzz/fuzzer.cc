// What libFuzzer calls; EMPLACE_FUZZ_TARGET is the target's name.
#include <algorithm>
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace emplace::fuzz;
  static const Target& target =
      *std::find_if(targets().begin(), targets().end(),
                    [](const Target& one) { return one.name == EMPLACE_FUZZ_TARGET; });
  call(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}

// What libFuzzer calls; EMPLACE_FUZZ_TARGET is the target's name, and EMPLACE_FUZZ_MUTATOR, where
// it is defined, what changes its files by their structure.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fuzz/mutators.h"
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace emplace::fuzz;
  static const Target& target =
      *std::find_if(targets().begin(), targets().end(),
                    [](const Target& one) { return one.name == EMPLACE_FUZZ_TARGET; });
  call(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifdef EMPLACE_FUZZ_MUTATOR
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Two times in three by structure; broken files are worth reading too.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (seed % 3 != 0) {
    const std::string changed = emplace::fuzz::EMPLACE_FUZZ_MUTATOR(
        {reinterpret_cast<const char*>(data), size}, seed, LLVMFuzzerMutate);
    if (!changed.empty() && changed.size() <= most) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}
#endif

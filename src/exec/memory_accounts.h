// Who holds how much of the host's memory. While an instance lives, libtorch's tensors on the CPU
// come from here: every block belongs to the device that the allocating thread works for, and freed
// blocks are kept by size, so that after the first step none is asked of the operating system.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

#include "exec/runtime.h"

namespace emplace::exec {

// Thrown where a device has no more than its limit.
struct OutOfMemory {
  Bytes wanted = 0;
  Bytes held = 0;
  Bytes limit = 0;
};

class MemoryAccounts {
 public:
  static constexpr std::size_t kMostDevices = 64;

  // Limits by device; kUnlimited is allowed. `pinned`: such as GPUs copy from and to without
  // staging. One instance at a time.
  explicit MemoryAccounts(const std::vector<Bytes>& limits, bool pinned = false);
  ~MemoryAccounts();
  MemoryAccounts(const MemoryAccounts&) = delete;
  MemoryAccounts& operator=(const MemoryAccounts&) = delete;

  // For another program: freed blocks go back to the operating system, and peaks start again from
  // what is held now.
  void begin();
  MemoryRecord record(std::size_t device) const;
  // What is held now, and the most that was held since the last call of this.
  Bytes begin_span(std::size_t device);
  Bytes peak_of_span(std::size_t device) const;

  // While it lives, what this thread allocates belongs to the device.
  class For {
   public:
    explicit For(std::size_t device);
    ~For();
    For(const For&) = delete;
    For& operator=(const For&) = delete;

   private:
    std::size_t before_;
  };
};

}  // namespace emplace::exec

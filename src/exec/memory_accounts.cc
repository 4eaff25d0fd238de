#include "exec/memory_accounts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include "base/check.h"

#include "exec/gpu_parts.h"
#include "exec/spin.h"

namespace emplace::exec {
namespace {

// Eight sizes between a power of two and the next: at most an eighth is lost.
constexpr std::size_t kSmallest = 256;
constexpr std::size_t kClasses = 64 * 8;
constexpr std::size_t kHeader = 128;  // in front of what is handed out, which stays aligned
constexpr std::size_t kNobody = MemoryAccounts::kMostDevices;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

SizeClass size_class(std::size_t bytes) {
  bytes = std::max(bytes, kSmallest);
  const auto power = static_cast<std::size_t>(std::bit_width(bytes) - 1);
  const std::size_t base = std::size_t{1} << power;
  const std::size_t part = base / 8;
  const std::size_t parts = (bytes - base + part - 1) / part;
  return {power * 8 + parts, base + parts * part};
}

struct Header {
  std::size_t owner;
  std::size_t size_class;
  std::size_t requested;
  std::size_t allocated;
  bool pinned;
};

std::atomic<bool> pins_memory{false};

// From the operating system, or the GPUs' driver.
void* new_block(std::size_t bytes, bool& pinned) {
  void* block = pins_memory ? allocate_pinned(bytes) : nullptr;
  pinned = block != nullptr;
  if (!pinned && posix_memalign(&block, kHeader, bytes) != 0) throw std::bad_alloc();
  return block;
}

void delete_block(void* block) {
  if (static_cast<Header*>(block)->pinned) {
    free_pinned(block);
  } else {
    std::free(block);
  }
}

struct FreeList {
  SpinLock lock;
  std::vector<void*> blocks;
};

// What one device holds. Outlives the accounts, since tensors may.
struct DevicePool {
  std::atomic<Bytes> alive{0};
  std::atomic<Bytes> peak{0};
  std::atomic<Bytes> span_peak{0};
  std::atomic<Bytes> from_system{0};
  std::atomic<Bytes> limit{kUnlimited};
  std::array<FreeList, kClasses> free;

  void charge(Bytes bytes) {
    const Bytes now = alive.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (const Bytes most = limit.load(std::memory_order_relaxed); now > most) {
      alive.fetch_sub(bytes, std::memory_order_relaxed);
      throw OutOfMemory{bytes, now - bytes, most};
    }
    raise(peak, now);
    raise(span_peak, now);
  }
  static void raise(std::atomic<Bytes>& highest, Bytes value) {
    Bytes known = highest.load(std::memory_order_relaxed);
    while (known < value &&
           !highest.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
    }
  }
  void* reuse(std::size_t index) {
    FreeList& list = free[index];
    const std::lock_guard lock(list.lock);
    if (list.blocks.empty()) return nullptr;
    void* block = list.blocks.back();
    list.blocks.pop_back();
    return block;
  }
  void keep(void* block, const Header& header) {
    alive.fetch_sub(static_cast<Bytes>(header.requested), std::memory_order_relaxed);
    FreeList& list = free[header.size_class];
    const std::lock_guard lock(list.lock);
    list.blocks.push_back(block);
  }
  void give_back() {
    for (FreeList& list : free) {
      const std::lock_guard lock(list.lock);
      for (void* block : list.blocks) {
        from_system.fetch_sub(static_cast<Bytes>(static_cast<Header*>(block)->allocated));
        delete_block(block);
      }
      list.blocks.clear();
    }
  }
};

// Never destroyed: tensors may be freed until the very end of the process.
std::array<DevicePool, kNobody + 1>& pools() {
  static auto* const all = new std::array<DevicePool, kNobody + 1>;
  return *all;
}

thread_local std::size_t current_device = kNobody;

void release_block(void* memory) {
  if (memory == nullptr) return;
  void* block = static_cast<char*>(memory) - kHeader;
  const Header header = *static_cast<Header*>(block);
  pools()[header.owner].keep(block, header);
}

void* take_block(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  DevicePool& pool = pools()[current_device];
  pool.charge(static_cast<Bytes>(bytes));
  const SizeClass size = size_class(bytes);
  void* block = pool.reuse(size.index);
  if (block == nullptr) {
    const std::size_t whole = size.bytes + kHeader;
    bool pinned = false;
    try {
      block = new_block(whole, pinned);
    } catch (const std::bad_alloc&) {
      pool.alive.fetch_sub(static_cast<Bytes>(bytes));
      throw;
    }
    pool.from_system.fetch_add(static_cast<Bytes>(whole));
    new (block) Header{current_device, size.index, bytes, whole, pinned};
  } else {
    static_cast<Header*>(block)->requested = bytes;
  }
  return static_cast<char*>(block) + kHeader;
}

c10::DataPtr as_data(void* memory) {
  return {memory, memory, &release_block, c10::Device(c10::kCPU)};
}

struct CountingAllocator final : c10::Allocator {
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
    return as_data(take_block(bytes));
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
    return as_data(take_block(bytes));
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &release_block;
  }
};

c10::Allocator* counting_allocator() {
  static CountingAllocator allocator;
  return &allocator;
}

std::atomic<c10::Allocator*> allocator_before{nullptr};

}  // namespace

MemoryAccounts::MemoryAccounts(const std::vector<Bytes>& limits, bool pinned) {
  pins_memory = pinned;
  EMPLACE_CHECK(limits.size() <= kMostDevices);
  for (std::size_t i = 0; i < limits.size(); ++i) pools()[i].limit = limits[i];
  c10::Allocator* expected = nullptr;
  EMPLACE_CHECK(allocator_before.compare_exchange_strong(expected, c10::GetCPUAllocator()));
  c10::SetCPUAllocator(counting_allocator());
}

MemoryAccounts::~MemoryAccounts() {
  c10::SetCPUAllocator(allocator_before.exchange(nullptr));
  pins_memory = false;
  for (DevicePool& pool : pools()) {
    pool.give_back();
    pool.limit = kUnlimited;
    pool.peak = 0;
  }
}

void MemoryAccounts::begin() {
  for (DevicePool& pool : pools()) {
    pool.give_back();
    pool.peak = pool.alive.load();
  }
}

MemoryRecord MemoryAccounts::record(std::size_t device) const {
  const DevicePool& pool = pools()[device];
  const Bytes peak = pool.peak;
  return {.peak = peak, .cached = std::max<Bytes>(0, pool.from_system - peak)};
}

Bytes MemoryAccounts::begin_span(std::size_t device) {
  DevicePool& pool = pools()[device];
  const Bytes alive = pool.alive;
  pool.span_peak = alive;
  return alive;
}

Bytes MemoryAccounts::peak_of_span(std::size_t device) const {
  return pools()[device].span_peak;
}

MemoryAccounts::For::For(std::size_t device) : before_(std::exchange(current_device, device)) {}

MemoryAccounts::For::~For() {
  current_device = before_;
}

}  // namespace emplace::exec

// Preloaded into a program (LD_PRELOAD), lets its n-th operator new fail, counted from main on:
// EMPLACE_FAIL_ALLOCATION=n once, n+ from then on. EMPLACE_COUNT_ALLOCATIONS=FILE gets how many
// there were.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <dlfcn.h>

namespace {

std::atomic<bool> in_main{false};
std::atomic<long> count{0};
long fails_at = -1;
bool from_then_on = false;
int (*real_main)(int, char**, char**) = nullptr;

void* allocate(std::size_t size, std::size_t alignment) {
  if (in_main.load(std::memory_order_relaxed)) {
    const long now = count.fetch_add(1);
    if (fails_at >= 0 && (now == fails_at || (from_then_on && now > fails_at))) return nullptr;
  }
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

// As the standard says: whoever has a handler is asked first.
void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  while (true) {
    if (void* const memory = allocate(size, alignment)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void write_count() {
  const char* path = std::getenv("EMPLACE_COUNT_ALLOCATIONS");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", count.load());
  std::fclose(file);
}

int counted_main(int argc, char** argv, char** environment) {
  if (const char* text = std::getenv("EMPLACE_FAIL_ALLOCATION")) {
    char* end = nullptr;
    fails_at = std::strtol(text, &end, 10);
    from_then_on = *end == '+';
  }
  in_main = true;
  const int code = real_main(argc, argv, environment);
  in_main = false;
  write_count();
  return code;
}

}  // namespace

extern "C" int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*end)(), void* stack) {
  real_main = program;
  const auto start =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, argc, argv, init, fini, end, stack);
}

void* operator new(std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

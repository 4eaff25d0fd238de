// Preloaded into a program (LD_PRELOAD), lets its n-th operator new fail, counted from main on:
// EMPLACE_FAIL_ALLOCATION=n once, n+ from then on; EMPLACE_FAIL_NOTHROW=n likewise, of those alone
// that return nullptr, which are few and need not be looked at by who called them, and of zlib's.
// EMPLACE_COUNT_ALLOCATIONS=FILE gets how many there were of all and of these.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <dlfcn.h>
#include <zlib.h>

namespace {

std::atomic<bool> in_main{false};
int (*real_main)(int, char**, char**) = nullptr;

class Failure {
 public:
  void read(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    char* end = nullptr;
    at_ = std::strtol(text, &end, 10);
    from_then_on_ = *end == '+';
  }
  bool due() {
    const long now = count_.fetch_add(1);
    return at_ >= 0 && (now == at_ || (from_then_on_ && now > at_));
  }
  long count() const { return count_.load(); }

 private:
  std::atomic<long> count_{0};
  long at_ = -1;
  bool from_then_on_ = false;
};

Failure of_all;
Failure of_nothrow;

void* allocate(std::size_t size, std::size_t alignment) {
  if (in_main.load(std::memory_order_relaxed) && of_all.due()) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_nothing(std::size_t size) {
  if (in_main.load(std::memory_order_relaxed) && of_nothrow.due()) return nullptr;
  return allocate(size, 1);
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

void* zlib_allocate(void* /*opaque*/, unsigned count, unsigned size) {
  if (in_main.load(std::memory_order_relaxed) && of_nothrow.due()) return nullptr;
  return std::calloc(count, size);
}
void zlib_free(void* /*opaque*/, void* memory) {
  std::free(memory);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void write_count() {
  const char* path = std::getenv("EMPLACE_COUNT_ALLOCATIONS");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld %ld\n", of_all.count(), of_nothrow.count());
  std::fclose(file);
}

int counted_main(int argc, char** argv, char** environment) {
  of_all.read("EMPLACE_FAIL_ALLOCATION");
  of_nothrow.read("EMPLACE_FAIL_NOTHROW");
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
  const auto start = next<decltype(__libc_start_main)>("__libc_start_main");
  return start(counted_main, argc, argv, init, fini, end, stack);
}

extern "C" int inflateInit2_(z_streamp stream, int window, const char* version, int size) {
  stream->zalloc = zlib_allocate;
  stream->zfree = zlib_free;
  return next<decltype(inflateInit2_)>("inflateInit2_")(stream, window, version, size);
}

extern "C" int deflateInit2_(z_streamp stream, int level, int method, int window, int memory,
                             int strategy, const char* version, int size) {
  stream->zalloc = zlib_allocate;
  stream->zfree = zlib_free;
  return next<decltype(deflateInit2_)>("deflateInit2_")(stream, level, method, window, memory,
                                                        strategy, version, size);
}

void* operator new(std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, 1);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_nothing(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_nothing(size);
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

#include "base/parallel.h"

#include <algorithm>
#include <atomic>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace emplace {

int hardware_threads() {
  return std::max(1, tbb::info::default_concurrency());
}

namespace {

// oneTBB starts tasks after what came before the loop, and ends the loop after them; the thread
// sanitizer, which does not look into it, takes that from here. Nothing elsewhere.
class Order {
 public:
#ifdef __SANITIZE_THREAD__
  void loop_begins() {
    begun_.store(true, std::memory_order_release);
  }
  void task_begins() const {
    (void)begun_.load(std::memory_order_acquire);
  }
  void task_ends() {
    ended_.fetch_add(1, std::memory_order_release);
  }
  void loop_ends() const {
    (void)ended_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<std::size_t> ended_{0};
#else
  void loop_begins() {}
  void task_begins() const {}
  void task_ends() {}
  void loop_ends() const {}
#endif
};

}  // namespace

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task) {
  if (threads <= 1 || count <= 1 || hardware_threads() == 1) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }
  // Asked for more than there are, TBB says so on standard error.
  tbb::task_arena arena(std::min(threads, hardware_threads()));
  Order order;
  order.loop_begins();
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          order.task_begins();
          for (std::size_t i = range.begin(); i < range.end(); ++i) task(i);
          order.task_ends();
        },
        tbb::simple_partitioner());
  });
  order.loop_ends();
}

}  // namespace emplace

#include "base/parallel.h"

#include <algorithm>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace emplace {

int hardware_threads() {
  return std::max(1, tbb::info::default_concurrency());
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task) {
  if (threads <= 1 || count <= 1 || hardware_threads() == 1) {
    for (std::size_t i = 0; i < count; ++i) task(i);
    return;
  }
  // Asked for more than there are, TBB says so on standard error.
  tbb::task_arena arena(std::min(threads, hardware_threads()));
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i < range.end(); ++i) task(i);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace emplace

// Loops over independent tasks on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace emplace {

// How many threads this process may run at once.
int hardware_threads();

// Calls task(0), ..., task(count - 1), on up to `threads` threads at once, in no certain order.
// Returns when all are done; an exception of one leaves, and tasks that had not begun do not.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

}  // namespace emplace

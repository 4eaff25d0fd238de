// A job of ranks (dist/crew.h) that one process can do, too.
#pragma once

#include "dist/crew.h"

namespace emplace {

// Without a crew: what the job says, in order; when it is cancelled, the first task at least.
inline void run_job(dist::Crew* crew, const dist::Job& job) {
  if (crew != nullptr) return crew->run(job);
  for (std::size_t task = 0; task < job.tasks; ++task) {
    if (task > 0 && job.cancelled != nullptr && job.cancelled->load()) return;
    const std::string result = job.here(task);
    dist::Reader reader(result);
    job.accept(task, reader);
  }
}

// Those that are there, this one included.
inline std::size_t present_ranks(const dist::Crew* crew) {
  std::size_t present = 1;
  for (int rank = 1; crew != nullptr && rank < crew->size(); ++rank) {
    if (crew->present(rank)) ++present;
  }
  return present;
}

// Of this time, what the task of so many may take where a rank does one after the other.
inline double seconds_of_task(double left, std::size_t task, std::size_t tasks,
                              const dist::Crew* crew) {
  const std::size_t ranks = present_ranks(crew);
  const std::size_t turns = (tasks - task + ranks - 1) / ranks;
  return left / static_cast<double>(turns);
}

}  // namespace emplace

#include "reproduce/jobs.h"

#include <atomic>

#include <fmt/core.h>

#include "base/parallel.h"
#include "base/units.h"

namespace emplace::bench {

std::vector<Job> missing_jobs(const Entrants& entrants, int seeds,
                              std::optional<std::int64_t> evaluations, const RunStore& store) {
  std::vector<Job> jobs;
  for (int seed = 1; seed <= seeds; ++seed) {
    for (const auto& [name, placers] : entrants) {
      for (const std::string& placer : placers) {
        const RunKey key = run_key(workload(name), placer, seed, evaluations);
        const bool repeats = static_cast<std::uint64_t>(seed) != key.seed;
        if (!repeats && store.find(key) == nullptr) jobs.push_back({name, key});
      }
    }
  }
  return jobs;
}

void run_jobs(const std::vector<Job>& jobs, const std::map<std::string, Stage>& stages, int cores,
              RunStore& store) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t) {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      const Job& job = jobs[i];
      store.refresh();
      if (store.find(job.key) != nullptr) continue;  // another process was here
      const LearningRun result = run(stages.at(job.workload), job.key);
      fmt::print(stderr, "[{}/{}] {} by {} with seed {}: {}{} after {:.0f} s\n", i + 1, jobs.size(),
                 job.workload, job.key.placer, job.key.seed, format_time(result.step),
                 result.fits ? "" : " (does not fit)", result.seconds);
      store.add(job.key, result);
    }
  };
  parallel_for(static_cast<std::size_t>(cores), cores, work);
}

}  // namespace emplace::bench

#include "support/candidates.h"

#include <numeric>

#include <fmt/core.h>

#include "base/rng.h"

#include "cluster/runs_on.h"

#include "placer/run.h"

#include "placers/all.h"

namespace emplace::bench {
namespace {

const std::vector<std::string> kClassical = {"heft", "m_etf", "m_sct", "expert", "metis"};

// Groups in the order of their first ops, with the time of each.
struct Line {
  std::vector<GroupId> groups;
  std::vector<double> times;
  double total = 0;
};

Line line_of(const Problem& problem) {
  Line line;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    double time = 0;
    for (const OpId op : problem.group_ops(group)) {
      time += static_cast<double>(problem.duration(op, 0));
    }
    line.groups.push_back(group);
    line.times.push_back(time);
    line.total += time;
  }
  return line;
}

// Device i has the shares[i] of the time that follow those before.
Placement cut(const Problem& problem, const Line& line, const std::vector<double>& shares) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), 0);
  double passed = 0;
  for (std::size_t i = 0; i < line.groups.size(); ++i) {
    double end = 0;
    DeviceId device = 0;
    for (; device + 1U < shares.size(); ++device) {
      end += shares[device] * line.total;
      if (passed < end) break;
    }
    device_of_group[line.groups[i]] = device;
    passed += line.times[i];
  }
  return expand_groups(problem, device_of_group);
}

Placement scatter(const Problem& problem, const Line& line, std::size_t run, Rng& rng) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), 0);
  DeviceId device = 0;
  for (std::size_t i = 0; i < line.groups.size(); ++i) {
    if (i % run == 0) device = static_cast<DeviceId>(rng.below(problem.num_devices()));
    device_of_group[line.groups[i]] = device;
  }
  return expand_groups(problem, device_of_group);
}

Candidate placed(const std::string& name, const std::shared_ptr<const Problem>& problem,
                 const std::string& spec, double seconds, std::uint64_t seed) {
  PlaceContext context(problem);
  Budget budget;
  budget.seconds = seconds;
  const RunResult result =
      run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec), .seed = seed},
                 budget.restarted());
  const bool searched = spec.starts_with("auto");
  return {name, result.result.placement, result.result.schedule,
          searched ? Origin::kSearched : Origin::kClassical};
}

void add_placed(std::vector<Candidate>& all, const std::shared_ptr<const Problem>& problem,
                double seconds) {
  for (const std::string& placer : kClassical) {
    all.push_back(placed(placer, problem, placer, seconds, 1));
  }
  for (const std::uint64_t seed : {1, 2}) {
    all.push_back(placed(fmt::format("auto{}", seed), problem, "auto", seconds, seed));
  }
}

std::vector<Candidate> on_one_device(const Problem& problem) {
  std::vector<Candidate> all;
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    all.push_back({problem.cluster().device(id).name + " alone",
                   Placement(problem.num_ops(), id),
                   {},
                   Origin::kSingle});
  }
  return all;
}

// The time from one share of the whole to another on the CPU, the rest on the GPU.
Placement on_cpu(const Problem& problem, const Line& line, double from, double to) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), 0);
  double passed = 0;
  for (std::size_t i = 0; i < line.groups.size(); ++i) {
    const double share = passed / line.total;
    if (share >= from && share < to) device_of_group[line.groups[i]] = 1;
    passed += line.times[i];
  }
  return expand_groups(problem, device_of_group);
}

// A GPU, which is the first device, and a CPU.
std::vector<Candidate> candidates_beside_gpu(const std::shared_ptr<const Problem>& problem,
                                             double seconds) {
  const Line line = line_of(*problem);
  std::vector<Candidate> all;
  all.push_back({"gpu", Placement(problem->num_ops(), 0), {}, Origin::kSingle});
  for (const double share : {0.02, 0.05, 0.15}) {
    const double percent = 100 * share;
    all.push_back({fmt::format("first{:.0f}%", percent), on_cpu(*problem, line, 0, share)});
    all.push_back({fmt::format("last{:.0f}%", percent), on_cpu(*problem, line, 1 - share, 2)});
  }
  all.push_back({"mid3%", on_cpu(*problem, line, 0.4, 0.43)});
  all.push_back({"mid10%", on_cpu(*problem, line, 0.6, 0.7)});
  Rng rng(5);
  for (const std::uint64_t per_mille : {10, 40}) {
    std::vector<DeviceId> device_of_group(problem->num_groups(), 0);
    for (DeviceId& device : device_of_group) device = rng.below(1000) < per_mille ? 1 : 0;
    all.push_back({fmt::format("scatter{}", per_mille), expand_groups(*problem, device_of_group)});
  }
  add_placed(all, problem, seconds);
  return all;
}

}  // namespace

std::vector<Candidate> candidates(const std::shared_ptr<const Problem>& problem, double seconds,
                                  bool placers_alone) {
  if (placers_alone) {
    std::vector<Candidate> all = on_one_device(*problem);
    add_placed(all, problem, seconds);
    return all;
  }
  if (is_gpu(problem->cluster().device(0)) && problem->num_devices() == 2) {
    return candidates_beside_gpu(problem, seconds);
  }
  const Line line = line_of(*problem);
  const DeviceId devices = problem->num_devices();
  Rng rng(5);
  std::vector<Candidate> all;
  all.push_back({"single", Placement(problem->num_ops(), 0), {}, Origin::kSingle});
  all.push_back({"halves", cut(*problem, line, {0.5, 0.5})});
  all.push_back({"equal", cut(*problem, line, std::vector<double>(devices, 1.0 / devices))});
  for (int i = 0; i < 3; ++i) {
    std::vector<double> shares(devices);
    for (double& share : shares) share = 0.1 + rng.uniform();
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
    all.push_back({fmt::format("cut{}", i + 1), cut(*problem, line, shares)});
  }
  all.push_back({"random8", scatter(*problem, line, 8, rng)});
  all.push_back({"random3", scatter(*problem, line, 3, rng)});
  add_placed(all, problem, seconds);
  return all;
}

}  // namespace emplace::bench

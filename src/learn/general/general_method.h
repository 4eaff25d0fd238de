// A trained policy on a graph that it may never have seen: its proposals at once, then as many
// rounds of fine-tuning as are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"

#include "cost/problem.h"

#include "learn/parts.h"

namespace emplace::learn {

struct GeneralMethodSettings {
  std::string kind;         // the policy must be of it
  std::int64_t rounds = 0;  // of fine-tuning
  // Placements for each number of devices that is tried.
  std::int64_t proposals = 8;
  // Beside them the likeliest placement of a policy that was never trained: slices along the
  // modules, where a trained one begins.
  bool prior = true;
};

// How many of the fastest devices are tried: all, all but the CPUs, and fewer.
std::vector<std::size_t> numbers_of_devices(const Cluster& cluster);

// `policy` is a policy file's bytes, `policy_name` what errors call it.
MethodPtr general_method(const Problem& problem, const std::string& policy,
                         const std::string& policy_name, const GeneralMethodSettings& settings,
                         const std::string& device, Rng& rng);

}  // namespace emplace::learn

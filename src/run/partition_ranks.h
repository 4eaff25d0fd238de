// The search for a partition on several ranks, each with random numbers of its own; the best plan
// of all is the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dist/crew.h"
#include "dist/member.h"
#include "run/partition.h"

namespace emplace {

// `find_partition`, whose search is shared. Under an evaluation budget the ranks have equal parts
// of it, and the answer depends on the seed and the number of islands alone.
PartitionAnswer find_partition_on_ranks(const std::shared_ptr<const Problem>& problem,
                                        const PartitionOptions& options,
                                        const std::function<void(const std::string&)>& on_phase,
                                        dist::Crew& crew);

// On the other ranks.
void serve_partition(const std::shared_ptr<const Problem>& problem, const PartitionOptions& options,
                     dist::Member& member);

// A plan between ranks. Throws an Error when it cannot be one of this input for these workers.
std::string plan_bytes(const Plan& plan);
Plan take_plan(dist::Reader& reader, const PartitionInput& input, const Workers& workers);

}  // namespace emplace

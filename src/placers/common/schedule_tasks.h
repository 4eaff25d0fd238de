// A problem's step as tasks for schedule_program.h: op by op, or in clusters of ops.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/problem.h"

#include "placers/common/schedule_program.h"

namespace emplace {

struct StepTasks {
  ScheduleTasks tasks;                       // memory: what is held for the whole step
  std::vector<std::uint32_t> unit_of_group;  // by group
  std::vector<std::uint32_t> task_of_op;     // by op
  bool exact = true;                         // no step is shorter than the tasks can be
};

// Every op a task, every group a unit.
StepTasks tasks_of_ops(const Problem& problem);

// At most `most` units, which are runs of groups in the order of the model; the forward ops of a
// unit are one task, the others another.
StepTasks tasks_of_clusters(const Problem& problem, std::uint32_t most);

}  // namespace emplace

// The graph that favourite children are sought in (favourite_children.h): ops that take part, and
// the dependencies that can decide when one starts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

struct TaskEdge {
  std::uint32_t from;
  std::uint32_t to;
  Nanoseconds transfer;  // mean over links; 0 where nothing is sent
};

// Vertices in topological order. An op that takes no time and waits for one other only is one with
// that other; ops that float (list_schedule.h) take no part.
struct TaskGraph {
  std::vector<OpId> op;               // by vertex: the op that it starts with
  std::vector<Nanoseconds> duration;  // by vertex, mean over devices
  std::vector<TaskEdge> edges;        // distinct pairs, by (from, to)
};

TaskGraph build_task_graph(const Problem& problem, const std::vector<std::uint8_t>& floating);

// Removes edges that never decide a start, since a path leads beside them through other vertices
// that take at least as long as the transfer. Finds many of them, not all.
void remove_implied_edges(TaskGraph& graph);

// A vertex whose only successor has no other predecessor, with it and so on: chains as single
// tasks.
struct TaskChains {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> next;    // by vertex: its successor in the chain, or kNone
  std::vector<std::uint32_t> task;    // by vertex
  std::vector<Nanoseconds> duration;  // by task
};

TaskChains find_chains(const TaskGraph& graph);

}  // namespace emplace

// This machine, as far as this process may use it: cores, caches, nodes of memory.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace emplace {

struct LocalCore {
  std::vector<int> threads;  // its usable hardware threads, by the operating system's numbers
  int node = 0;              // of memory: an index of LocalMachine::nodes
  int last_cache = 0;        // cores of one number share the cache that is nearest to memory
};

struct LocalNode {
  int number = 0;  // the operating system's
  Bytes memory = 0;
};

struct LocalCache {
  int level = 0;
  Bytes size = 0;
  int count = 0;
};

struct LocalMachine {
  std::vector<LocalCore> cores;  // physical ones; neighbours stand beside each other
  std::vector<LocalNode> nodes;
  std::vector<LocalCache> caches;  // by level
  Bytes memory = 0;                // what the process may use; 0 where nobody says
  std::string processor;           // its name, where it has one
  double gigahertz = 0;
  double float32_per_cycle = 0;  // operations of one core

  int num_threads() const;
};

// Obeys the process's affinity and the limits of its control group.
LocalMachine this_machine();

// A made-up one, in hwloc's notation: "package:2 l3:1 core:4 pu:2". It has the speed of none.
LocalMachine synthetic_machine(const std::string& topology);

// "16 cores with 32 hardware threads, 2 nodes of memory, 119 GiB of memory, 2 x 32.0 MiB of L3".
std::string machine_text(const LocalMachine& machine);

}  // namespace emplace

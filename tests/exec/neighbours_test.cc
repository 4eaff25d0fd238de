// Cores that are left for links, where other processes execute steps next to this one.
#include <algorithm>
#include <regex>

#include <gtest/gtest.h>
#include <sched.h>

#include "exec/machine.h"
#include "support/shared_core.h"

namespace emplace::exec {
namespace {

std::vector<int> usable_cores_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

// As the machine's warning says it: fewer than two links and the program take.
int cores_left(const Neighbours& neighbours) {
  const Machine machine(shared_core_cluster(2), {.neighbours = neighbours});
  const std::regex left("cores left for 2 links and this program: ([0-9]+), expected 3");
  for (const std::string& warning : machine.warnings()) {
    std::smatch found;
    if (std::regex_search(warning, found, left)) return std::stoi(found[1]);
  }
  return -1;
}

TEST(Neighbours, have_their_cores_and_their_share_of_the_rest) {
  const std::vector<int> usable = usable_cores_here();
  const auto few = std::min<std::size_t>(3, usable.size());
  Neighbours neighbours;
  neighbours.cores.assign(usable.begin() + static_cast<std::ptrdiff_t>(few), usable.end());
  const int left = static_cast<int>(few) - 1;  // the devices share one
  EXPECT_EQ(cores_left(neighbours), left);
  neighbours.count = 2;
  EXPECT_EQ(cores_left(neighbours), (left + 1) / 2);
  neighbours.index = 1;
  EXPECT_EQ(cores_left(neighbours), left / 2);
  EXPECT_EQ(cores_left({.cores = usable, .count = 1, .index = 0}), 0);
}

}  // namespace
}  // namespace emplace::exec

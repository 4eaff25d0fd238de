// Dividing the cores of this machine among devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/local_machine.h"

namespace emplace {

// "4x3" is four groups of three cores, "2x4+1x8" two of four and one of eight, "8" one of eight.
// Throws an Error that says what was expected.
std::vector<int> parse_core_groups(std::string_view text);

// The cores of each group, ascending, by the operating system's numbers: hardware threads of
// different physical cores while there are enough of those, and then both of each core. A group is
// kept on one last cache, or else on one node of memory, where one has room; of several, on that
// which has most, so that groups share as little as they can.
// Throws an Error when there are too few. If groups may `share`, they then take cores that others
// have too, but never one core twice.
std::vector<std::vector<int>> divide_cores(const LocalMachine& machine,
                                           const std::vector<int>& sizes, bool share = false);

}  // namespace emplace

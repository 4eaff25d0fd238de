// Where a device is when steps are executed, as a cluster file says it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

struct RunsOn {
  std::vector<int> cores;   // of the operating system, ascending
  std::optional<int> cuda;  // the GPU's number; cores are then those of the thread that drives it

  friend bool operator==(const RunsOn&, const RunsOn&) = default;
};

// "cores 0-3,8", "cuda:1", "cuda:1 cores 2". Throws an Error that says what was expected.
RunsOn parse_runs_on(std::string_view text);
// Whether it is a GPU that steps are executed on.
bool is_gpu(const Device& device);
std::string runs_on_text(const RunsOn& where);
// 0, 1, 2, 5 as "0-2,5".
std::string core_list_text(const std::vector<int>& cores);

}  // namespace emplace

// What one core computes at best, from what Linux says of the processor.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

struct CpuSpeed {
  std::string name = {};         // "AMD EPYC 7B13"
  double gigahertz = 2.5;        // where nothing is said
  double float32_per_cycle = 8;  // two units of four, that multiply or add
};

// The text of /proc/cpuinfo.
CpuSpeed parse_cpu_info(std::string_view text);
CpuSpeed read_cpu_speed();

}  // namespace emplace

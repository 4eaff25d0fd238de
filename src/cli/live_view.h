// A running search, drawn: where it is, how the gap has shrunk, and what each device has to do.
#pragma once

#include <string>
#include <vector>

#include "run/run_status.h"

namespace emplace::cli {

class LiveView {
 public:
  // Lines of at most `columns`; called several times a second.
  std::vector<std::string> draw(const RunView& now, std::size_t columns);

 private:
  void remember(double gap);

  // The gap over time, in equal spans, each as long as need be for all to have room.
  static constexpr std::size_t kMost = 256;
  std::vector<double> gaps_;
  std::size_t every_ = 1;    // so many calls make one
  std::size_t waiting_ = 0;  // calls since the last
};

// Numbers as a row of bars, from 0 to the largest; in ASCII where nothing else can be shown. Where
// there are more than `columns`, neighbours share one.
std::string sparkline(const std::vector<double>& numbers, std::size_t columns);

}  // namespace emplace::cli

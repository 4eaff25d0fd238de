// What a placer that learns is told beside its options, and what it tells while it learns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <emplace/search.h>

namespace emplace {

struct LearningCrew;
struct LearningTask;

// Where a learning placer computes, and where it keeps what it must not lose. Nothing here changes
// what is found on one device.
struct Learning {
  std::string device = "cpu";  // or cuda:0
  std::function<void(const TrainingPoint&)> on_round = {};
  // Takes a checkpoint's bytes to a safe place: every `save_seconds`, and at the end.
  std::function<void(std::string_view)> save = {};
  double save_seconds = 30;
  // A checkpoint's bytes to go on from, and what to call it in errors; empty: from the beginning.
  std::string resume = {};
  std::string resume_name = {};
  // Where there are other ranks (search/learning_ranks.h): those who help, or what to help with.
  const LearningCrew* crew = nullptr;
  LearningTask* task = nullptr;
};

}  // namespace emplace

// The seam between what learns and the ranks that help it. What is said in between is known to
// those who learn alone.
#pragma once

#include <memory>
#include <string>

#include "dist/crew.h"
#include "dist/member.h"

namespace emplace {

class WorkerRanks;  // placer/valuers.h

// Where one that learns may have others do a part of it.
struct LearningCrew {
  dist::Crew* crew = nullptr;
  std::string address = {};  // what a task's description begins with, so that it gets there
  WorkerRanks* workers = nullptr;
};

// On a rank that helps: what the placer is asked to do in place of placing.
struct LearningTask {
  dist::Reader* description = nullptr;  // behind the address
  dist::Line* line = nullptr;
  dist::Notes* notes = nullptr;
  WorkerRanks* workers = nullptr;
  std::string result = {};
  // Whatever the placer wants to find again with the next task.
  std::shared_ptr<void>* kept = nullptr;
};

}  // namespace emplace

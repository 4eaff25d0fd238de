// An answer with the problem that it answers.
#pragma once

#include "bindings.h"

namespace emplace::python {

struct AnswerHandle {
  Answer answer;
  ProblemHandle problem;
  bool interrupted = false;  // by Ctrl-C
};

struct TimelineHandle {
  Timeline timeline;
  ProblemHandle problem;
  Placement placement;
};

}  // namespace emplace::python

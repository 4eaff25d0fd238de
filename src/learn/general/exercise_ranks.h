// The exercises of a training step on several ranks.
//
// A rank is told the parameters once for each epoch in which it works, and answers with the
// gradient of every task: sums of floats depend on their order, so who adds them up adds task by
// task, and the policy does not depend on the ranks. In later epochs tasks stay with the rank that
// has explored them; where that is lost, another explores them again, from the step's first
// parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/crew.h"
#include "learn/general/exercises.h"

namespace emplace::learn {

// Rank 0's side.
class SharedExercises {
 public:
  // Works on some of them itself.
  SharedExercises(dist::Crew& crew, Exercises& here);

  // In the same order. Nothing for those that were not done when the budget was cancelled, which
  // can be in the first epoch alone.
  std::vector<std::optional<ExerciseOutcome>> run(const ExerciseStep& step,
                                                  const std::vector<Exercise>& exercises,
                                                  const Budget& budget);

 private:
  struct Known {              // by another rank
    std::uint64_t first = 0;  // the step whose first parameters it has
    std::uint64_t step = 0;   // of the last parameters that it was told
    std::int64_t epoch = 0;   // likewise
  };

  std::string describe(const ExerciseStep& step, const std::vector<Exercise>& exercises,
                       const Budget& budget, std::size_t part, int rank);

  dist::Crew& crew_;
  Exercises& here_;
  std::vector<Known> known_;   // by rank
  std::size_t part_size_ = 1;  // of this step: exercises that a rank takes at once
  std::vector<int> keepers_;   // of this step: who has explored each part
  std::string first_;          // of this step, as bytes
  std::string now_;            // of this epoch, as bytes
};

// That of the others (`TrainingHelper`).
std::unique_ptr<TrainingHelper> help_with_exercises(std::vector<TrainingTask> tasks,
                                                    const MultiGraphSettings& settings,
                                                    const Rng& rng, int threads);

}  // namespace emplace::learn

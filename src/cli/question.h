// What place and compare are asked: which placements of which problem, for how long, and where the
// answer goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"

namespace emplace::cli {

struct QuestionArguments {
  ProblemArguments problem;
  SubsetArguments subsets;
  ObjectiveArguments objective;
  BudgetArguments budget;
  LearningArguments learning;
  std::uint64_t seed = 1;
  std::string output;
  std::string trace;
  std::string report;
  bool json = false;
};

// The problem, read, with what is known before any search.
class Question {
 public:
  // `format`: of the JSON that answers it; `more`: other answers to begin from.
  Question(const QuestionArguments& arguments, ProblemRequest request, const char* format,
           const Session& session, std::vector<Solution> more = {});

  const ProblemRequest& request() const { return request_; }
  const std::shared_ptr<const Problem>& problem() const { return loaded_.problem; }
  // Where modules are kept whole, the problem op by op.
  const std::shared_ptr<const Problem>& op_by_op() const { return loaded_.op_by_op; }
  const SubsetProblems& problems() const { return problems_; }
  // As it was given, and with its default.
  const Budget& given() const { return given_; }
  const Budget& budget() const { return budget_; }
  JsonHeader header() const;

  // Says why nothing can fit, and what would help, and leaves the exit code, if that is proven.
  bool refuse_hopeless(Session& session) const;
  // What keeping modules whole costs the answer, by a search op by op, with progress.
  WholeModules compare_with_ops(const Assessment& answer, const RunResult& found,
                                const Budget& budget) const;

 private:
  ProblemRequest request_;
  const char* format_;
  bool json_;
  bool page_;
  const Session& session_;
  LoadedProblem loaded_;
  SubsetProblems problems_;
  Budget given_;
  Budget budget_;
};

}  // namespace emplace::cli

// What keeping modules whole costs: the same model placed op by op.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <emplace/granularity.h>
#include <emplace/search.h>

#include "run/assessment.h"
#include "run/portfolio.h"

namespace emplace {

struct WholeModules {
  Granularity granularity = Granularity::kModule;
  std::int64_t parts = 0;  // that were placed
  Evaluation whole = {};   // the answer that keeps them whole
  // The best placement op by op that is known, which is the answer itself where the search found
  // nothing better; and what looked for it. Nothing where no search was made.
  std::optional<Evaluation> op_by_op = std::nullopt;
  std::string placer = {};
  double seconds = 0;
  LowerBound bound = {};  // of placements op by op that fit

  // By how much, as a share of the time op by op. Nothing where either is unknown or does not fit.
  std::optional<double> cost() const;
  // What it is at most, by the bound. Nothing where the answer does not fit or nothing bounds it.
  std::optional<double> most() const;
};

// A budget in two: for the search that keeps modules whole, and for the one op by op.
struct SharedBudget {
  Budget whole;
  Budget op_by_op;
};
SharedBudget share_with_ops(const Budget& budget);

// How `answer`, which keeps modules whole, compares with placements op by op. The search begins
// from it; the placer is that of the answer where that one takes no time, else auto. Nothing is
// searched when cancelled before.
class OpByOp {
 public:
  OpByOp(const std::shared_ptr<const Problem>& problem, const Assessment& answer,
         const RunResult& found);

  const SubsetProblems& problems() const { return problems_; }
  PortfolioRequest request(const Budget& budget) const;
  // `result`: of that request; nothing where it was not run.
  WholeModules compare(Granularity granularity, const PortfolioResult* result) const;

 private:
  const Assessment& answer_;
  const RunResult& found_;
  SubsetProblems problems_;
};

}  // namespace emplace

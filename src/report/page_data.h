// What the page shows of a result (docs/report.md): the answer as --json prints it, and beside it
// the cluster, every op and transfer with its times, memory over time, the map of the model and the
// course of searches, as columns of numbers. All as JSON.
#pragma once

#include <string>
#include <vector>

#include <emplace/train.h>

#include "report/comparison.h"
#include "report/explanation.h"
#include "run/cluster_scale.h"
#include "run/execution.h"
#include "run/partition.h"
#include "run/portfolio.h"

namespace emplace {

// Where a result comes from.
struct PageSource {
  std::string command;      // as it can be typed again
  std::string kind;         // the sub-command
  std::string answer;       // what --json prints
  ClusterScale scale = {};  // of the hardware, which the command asks for
  std::string divide = {};  // the command that divides tensors instead
};

std::string page_of_answer(const PageSource& source, const Assessment& answer,
                           const Explanation& explanation,
                           const std::vector<SearchCourse>& courses = {});
// `best` is what --json would print of the best answer.
std::string page_of_comparison(const PageSource& source, const Comparison& comparison,
                               const std::string& best, const Explanation& explanation,
                               const std::vector<SearchCourse>& courses);
std::string page_of_partition(const PageSource& source, const PartitionAnswer& answer);
// Of one that did not fail; `predicted` is what was predicted, assessed.
std::string page_of_execution(const PageSource& source, const Execution& execution,
                              const Assessment& predicted, const Explanation& explanation);

// A cluster on which it is proven that nothing fits; there is no answer to show.
std::string page_of_nothing(const PageSource& source, const Problem& problem,
                            const std::string& why_nothing_fits);
std::string page_of_training(const PageSource& source, const TrainResult& result);

}  // namespace emplace

// place and compare --rules placeto: placing under the rules of the simulator on which Placeto was
// trained (sim/placeto.h, docs/simulator.md).
#pragma once

#include <string>

#include "cli/question.h"
#include "run/portfolio.h"

namespace emplace::cli {

// All placers that these rules can be asked of.
inline constexpr const char* kPlacersForPlaceto = "learned,heuristic,partition";

// Both throw an Error where something else is wanted than steps in the order in which ops become
// ready, or a placer looks into the program's own simulator, by whose rules it would search. On a
// rank that is not the first they help it.
void place_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                      Session& session);

struct ComparisonOutputs {
  std::string csv;
  bool over_seeds = false;
  bool each_seed = false;
};
void compare_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                        const ComparisonOutputs& shown, Session& session);

}  // namespace emplace::cli

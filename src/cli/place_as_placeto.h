// place --rules placeto: placing under the rules of the simulator on which Placeto was trained.
#pragma once

#include "cli/question.h"
#include "run/portfolio.h"

namespace emplace::cli {

// Throws an Error where a placer is not one that learns: the others look into the program's own
// simulator.
void place_as_placeto(const QuestionArguments& arguments, PortfolioRequest wanted,
                      Session& session);

}  // namespace emplace::cli

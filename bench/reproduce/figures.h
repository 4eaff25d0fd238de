// All drawings, and a page of them.
#pragma once

#include <string>

#include "reproduce/tables.h"

namespace emplace::bench {

// Of what is chosen: FOLDER/KEY-VERSION.svg of every table, -statements.svg of every claim, and of
// both the learning curves: -curves.svg over placements, -curves-agent.svg over the agent's time,
// -curves-real.svg over time with real steps; what has no runs stays as it is. And
// FOLDER/README.md, which shows the figures of all that there is, whenever they were drawn. Throws
// an Error where gnuplot is missing or fails.
void draw_figures(const Program& chosen, const Program& all, const Evidence& evidence,
                  const std::string& folder);

}  // namespace emplace::bench

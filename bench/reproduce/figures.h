// All drawings, and a page of them.
#pragma once

#include <string>

#include "reproduce/tables.h"

namespace emplace::bench {

// FOLDER/KEY-VERSION.svg of every table, -statements.svg of every claim, and of both the learning
// curves: -curves.svg over placements, -curves-agent.svg over the agent's time, -curves-real.svg
// over time with real steps; and FOLDER/README.md, which shows them all. What has no runs stays as
// it is. Throws an Error where gnuplot is missing or fails.
void draw_figures(const Program& program, const Evidence& evidence, const std::string& folder);

}  // namespace emplace::bench

// Drawings of tables and learning curves, by gnuplot.
#pragma once

#include <string>

#include "reproduce/tables.h"

namespace emplace::bench {

// FOLDER/KEY-VERSION.svg of every table, and FOLDER/KEY-VERSION-curves.svg of the learning curves
// of every claim and table: the best step so far over the placements evaluated, the median of the
// seeds; and FOLDER/README.md, which shows them all. Throws an Error where gnuplot is missing or
// fails.
void draw_figures(const Program& program, const Evidence& evidence, const std::string& folder);

}  // namespace emplace::bench

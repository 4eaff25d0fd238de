// Single drawings, by gnuplot. All throw an Error where gnuplot is missing or fails.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reproduce/tables.h"

namespace emplace::bench {

// What a search has spent.
enum class Spent { kPlacements, kAgentSeconds, kMeasuredSeconds };

// The best step so far in parts of one device's, the median of the seeds, at so much spent; from
// where it is of a step that fits, as of more than half of the seeds. Nothing of placers that do
// not spend it.
std::vector<std::pair<double, double>> curve_of(const Evidence& evidence, const std::string& name,
                                                const std::string& entrant, Spent spent);

// A figure says in its last line what runs it is of: `origin`.

// One panel a workload. Whether there was anything to draw.
bool draw_curves(const std::string& path, const Entrants& entrants, const Evidence& evidence,
                 Spent spent, const std::string& origin);
// For gnuplot; empty where there is nothing to draw.
std::string curves_script(const Entrants& entrants, const Evidence& evidence, Spent spent);
// How the lines of a panel are called: without the options that all have.
struct CurveNames {
  std::string common;
  std::vector<std::string> lines;
};
CurveNames curve_names(const std::vector<std::string>& entrants);

// A group of bars a workload, relative to the best of its row.
void draw_grid(const std::string& path, const Grid& grid, Version version, const Evidence& evidence,
               const std::string& origin);
std::string grid_script(const Grid& grid, Version version, const Evidence& evidence);
// All different. Where there are many, those with the same first word are shades of one.
std::vector<std::string> colours_of(const std::vector<std::string>& titles);

// Every statement: its interval, over what is claimed; in grey why there is none. Whether any has
// one.
bool draw_statements(const std::string& path, const Claim& claim, Version version,
                     const Evidence& evidence, const std::string& origin);
// For gnuplot; empty where no statement has an interval.
std::string statements_script(const Claim& claim, Version version, const Evidence& evidence);

// Of a figure that was drawn before; empty where it does not say.
std::string origin_of_figure(const std::string& path);

}  // namespace emplace::bench

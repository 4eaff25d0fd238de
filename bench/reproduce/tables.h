// What the runs show, as a page for people.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reproduce/claims.h"
#include "reproduce/verdicts.h"

namespace emplace::bench {

// The claims and tables of one version.
struct Part {
  Version version;
  std::vector<Claim> claims = {};
  std::vector<Grid> grids = {};
};
using Program = std::vector<Part>;

// Who runs on what, each once however many statements ask for it. Throws an Error where a spec is
// wrong.
using Entrants = std::map<std::string, std::set<std::string>>;
Entrants entrants_of(const Program& program);

// Verdicts first, then every statement, every table and every run, in Markdown. Of what has not run
// it says so.
std::string to_markdown(const Program& program, const Entrants& entrants, const Evidence& evidence);

}  // namespace emplace::bench

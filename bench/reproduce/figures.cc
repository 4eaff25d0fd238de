#include "reproduce/figures.h"

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "placers/all.h"

#include "io/file.h"
#include "reproduce/plots.h"

namespace emplace::bench {
namespace {

std::string file_name(const std::string& key, Version version) {
  std::string name = key + (version == Version::kPaper ? "-paper" : "-emplace");
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      result += '-';
    }
  }
  return result;
}

// How many seeds, of which code; nothing where a run is missing.
std::string origin_of(const Entrants& entrants, const Evidence& evidence) {
  std::set<int> seeds;
  std::set<std::string> codes;
  for (const auto& [name, placers] : entrants) {
    for (const std::string& placer : placers) {
      if (!evidence.has(name, placer)) return "";
      codes.merge(evidence.codes(name, placer));
      const bool chance = all_placers().info(parse_entrant(placer).placer.key).randomized;
      if (chance) seeds.insert(evidence.seeds(name, placer));
    }
  }
  if (seeds.empty()) seeds.insert(1);
  return fmt::format("Seeds: {}. Code: {}.", fmt::join(seeds, ", "), fmt::join(codes, ", "));
}

// Of the statements that were judged.
std::string origin_of(const Claim& claim, const Evidence& evidence) {
  std::set<std::string> codes;
  for (const Statement& statement : claim.statements) {
    if (evidence.has(statement)) codes.merge(evidence.codes(statement));
  }
  return codes.empty() ? "" : fmt::format("Code: {}.", fmt::join(codes, ", "));
}

struct CurveFigure {
  Spent spent;
  std::string ending;
  std::string over;
};

const std::vector<CurveFigure>& curve_figures() {
  static const std::vector<CurveFigure> all{
      {Spent::kPlacements, "-curves", "placements"},
      {Spent::kAgentSeconds, "-curves-agent", "the agent's time"},
      {Spent::kMeasuredSeconds, "-curves-real", "time with real steps"}};
  return all;
}

// More lines than these nobody can tell apart.
bool has_curves(const Grid& grid) {
  return grid.columns.size() <= 6;
}

// Where the figures of one version are.
class FigureFiles {
 public:
  FigureFiles(std::string folder, Version version)
      : folder_(std::move(folder)), version_(version) {}

  std::string name(const std::string& key, const std::string& ending) const {
    return file_name(key, version_) + ending + ".svg";
  }
  std::string path(const std::string& key, const std::string& ending) const {
    return fmt::format("{}/{}", folder_, name(key, ending));
  }

 private:
  std::string folder_;
  Version version_;
};

void draw_part(const Part& part, const Evidence& evidence, const FigureFiles& files) {
  const auto curves = [&](const std::string& key, const Entrants& entrants) {
    const std::string origin = origin_of(entrants, evidence);
    if (origin.empty()) return;
    for (const CurveFigure& one : curve_figures()) {
      draw_curves(files.path(key, one.ending), entrants, evidence, one.spent, origin);
    }
  };
  for (const Grid& grid : part.grids) {
    const Entrants entrants = entrants_of({{part.version, {}, {grid}}});
    const std::string origin = origin_of(entrants, evidence);
    if (!origin.empty()) {
      draw_grid(files.path(grid.key, ""), grid, part.version, evidence, origin);
    }
    if (has_curves(grid)) curves(grid.key, entrants);
  }
  for (const Claim& claim : part.claims) {
    draw_statements(files.path(claim.key, "-statements"), claim, part.version, evidence,
                    origin_of(claim, evidence));
    curves(claim.key, entrants_of({{part.version, {claim}, {}}}));
  }
}

// What is in the folder, whenever it was drawn.
std::string page_of_part(const Part& part, const FigureFiles& files) {
  std::string page;
  const auto show = [&](const std::string& key, const std::string& ending,
                        const std::string& what) {
    const std::string path = files.path(key, ending);
    if (!std::filesystem::exists(path)) return;
    const std::string title = fmt::format("{}, {}{}", key, to_string(part.version), what);
    page += fmt::format("\n## {}\n![{}]({})\n", title, title, files.name(key, ending));
    const std::string origin = origin_of_figure(path);
    if (!origin.empty()) page += fmt::format("\n{}\n", origin);
  };
  const auto show_curves = [&](const std::string& key) {
    for (const CurveFigure& one : curve_figures()) {
      show(key, one.ending, fmt::format(": learning curves over {}", one.over));
    }
  };
  for (const Grid& grid : part.grids) {
    show(grid.key, "", "");
    if (has_curves(grid)) show_curves(grid.key);
  }
  for (const Claim& claim : part.claims) {
    show(claim.key, "-statements", ": statements");
    show_curves(claim.key);
  }
  return page;
}

}  // namespace

// Figures whose runs are not all there stay as they are.
void draw_figures(const Program& chosen, const Program& all, const Evidence& evidence,
                  const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const Part& part : chosen) draw_part(part, evidence, {folder, part.version});
  std::string page =
      "# Figures: the papers' claims\n\nDrawn by `build/bench/reproduce --figures`. Curves are the "
      "best step so far, over that of one device; the median of the seeds. Statements are ratios "
      "with their intervals. Where no code is named, the figure is an earlier one whose runs are "
      "not "
      "kept. [What was found](../../reproduction.md).\n";
  for (const Part& part : all) page += page_of_part(part, {folder, part.version});
  write_file(fmt::format("{}/README.md", folder), page);
}

}  // namespace emplace::bench

#include "reproduce/figures.h"

#include <filesystem>
#include <set>
#include <tuple>

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

}  // namespace

// Figures whose runs are not all there stay as they are.
void draw_figures(const Program& program, const Evidence& evidence, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string page =
      "# Figures: the papers' claims\n\nDrawn by `build/bench/reproduce --figures`. Curves are the "
      "best step so far, over that of one device; the median of the seeds. Statements are ratios "
      "with their intervals. Where no code is named, "
      "the figure is an earlier one whose runs are not kept. [What was "
      "found](../../reproduction.md).\n";
  const auto show = [&](const std::string& title, const std::string& file,
                        const std::string& origin) {
    if (!std::filesystem::exists(fmt::format("{}/{}", folder, file))) return;
    page += fmt::format("\n## {}\n![{}]({})\n", title, title, file);
    if (!origin.empty()) page += fmt::format("\n{}\n", origin);
  };
  for (const Part& part : program) {
    const auto file = [&](const std::string& key, const std::string& ending) {
      return file_name(key, part.version) + ending + ".svg";
    };
    const auto path = [&](const std::string& name) { return fmt::format("{}/{}", folder, name); };
    const auto curves = [&](const std::string& key, const Entrants& entrants) {
      const std::string origin = origin_of(entrants, evidence);
      for (const auto& [spent, ending, over] :
           {std::tuple{Spent::kPlacements, "-curves", "placements"},
            std::tuple{Spent::kAgentSeconds, "-curves-agent", "the agent's time"},
            std::tuple{Spent::kMeasuredSeconds, "-curves-real", "time with real steps"}}) {
        const std::string name = file(key, ending);
        const bool drawn = !origin.empty() && draw_curves(path(name), entrants, evidence, spent);
        show(fmt::format("{}, {}: learning curves over {}", key, to_string(part.version), over),
             name, drawn ? origin : "");
      }
    };
    for (const Grid& grid : part.grids) {
      const std::string origin = origin_of(entrants_of({{part.version, {}, {grid}}}), evidence);
      const std::string name = file(grid.key, "");
      if (!origin.empty()) draw_grid(path(name), grid, part.version, evidence);
      show(fmt::format("{}, {}", grid.key, to_string(part.version)), name, origin);
      // More lines than these nobody can tell apart.
      if (grid.columns.size() <= 6) curves(grid.key, entrants_of({{part.version, {}, {grid}}}));
    }
    for (const Claim& claim : part.claims) {
      const Entrants entrants = entrants_of({{part.version, {claim}, {}}});
      const std::string name = file(claim.key, "-statements");
      const bool drawn = draw_statements(path(name), claim, part.version, evidence);
      show(fmt::format("{}, {}: statements", claim.key, to_string(part.version)), name,
           drawn ? origin_of(claim, evidence) : "");
      curves(claim.key, entrants);
    }
  }
  write_file(fmt::format("{}/README.md", folder), page);
}

}  // namespace emplace::bench

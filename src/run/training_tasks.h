// Lists of graphs and clusters, and every graph on every cluster.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/problem.h"

namespace emplace {

// The models that a list names, at commas or spaces: files; every model file of a folder; zoo
// models; families, "family:ptb:seed=0..31" being 32 graphs. Throws an Error where there is none.
std::vector<std::string> list_models(const std::vector<std::string>& texts);
// The same for cluster files and presets.
std::vector<std::string> list_clusters(const std::vector<std::string>& texts);

struct NamedProblem {
  std::string name;
  std::shared_ptr<const Problem> problem;
};

// Each graph on each cluster: as it is, or with as much memory on every device as each of these
// shares of what all ops need on one, but enough for an even spread to fit with room. Reads and
// compiles on `threads` threads.
std::vector<NamedProblem> cross(const std::vector<std::string>& models,
                                const std::vector<std::string>& clusters,
                                const std::vector<double>& memory_shares, int threads);

}  // namespace emplace

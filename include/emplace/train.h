// Policies that are trained once on many graphs and clusters and then place what they never saw.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/search.h>

namespace emplace {

struct TrainOptions {
  std::string policy = "gdp";         // or mars, placeto
  std::vector<std::string> graphs;    // files, folders, zoo models, "family:ptb:seed=0..31"
  std::vector<std::string> clusters;  // files or presets
  std::vector<double> memory = {};  // of what a graph needs on one device, on each; empty: as it is
  std::string imitate = "none";     // a placer whose answers are imitated first
  std::int64_t imitate_evaluations = 5000;  // that it may spend on each task
  OptionValues settings = {};               // of the trainer: see train_settings
  std::string from = {};                    // a policy file to begin with
  std::string device = "cpu";               // where networks compute
  std::string curves = {};      // a folder for the course of the training; empty: none is kept
  std::string checkpoint = {};  // a file that keeps its state; empty: none is written
  std::optional<double> checkpoint_seconds = {};  // how often
  bool resume = false;                            // go on from the checkpoint
  std::uint64_t seed = 1;
  Budget budget = {};
  ProgressListener on_progress = {};
  // Given a policy file's bytes every minute or so; may be empty.
  std::function<void(std::string_view)> on_save = {};
};

// A step of a training.
struct PolicyPoint {
  std::int64_t step = 0;  // of all phases, those before a resumed run included
  std::int64_t evaluations = 0;
  double seconds = 0;
  std::string phase;                                   // encoder, imitation or practice
  std::optional<double> likelihood = std::nullopt;     // of the examples (imitation)
  std::optional<double> relative_time = std::nullopt;  // of samples to the reference (practice)
  std::optional<double> fitting_share = std::nullopt;  // of samples (practice)
};

struct TrainResult {
  std::string policy;  // a policy file's bytes: write them, and use "gdp(policy=FILE)"
  std::size_t tasks = 0;
  std::int64_t evaluations = 0;
  std::int64_t steps = 0;  // of all phases, those before a resumed run included
  bool finished = true;    // else the budget was spent first
  // Of the last step of practice; 0 where there was none. How long the sampled placements' steps
  // are, in multiples of those of the placer `expert` (the geometric mean over tasks), and which
  // share of them fits.
  double relative_time = 0;
  double fitting_share = 0;
  std::vector<PolicyPoint> points = {};  // every step of this run
  // Of files that could not be written, for people.
  std::vector<std::string> warnings = {};
};

// Throws an Error when an option is wrong or a graph or cluster cannot be used.
TrainResult train(const TrainOptions& options);

// What `settings` may hold.
std::vector<OptionInfo> train_settings();

// What a policy file says of itself.
std::string describe_policy(const std::string& path);

}  // namespace emplace

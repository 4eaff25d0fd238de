// A problem in the words of a person: a model's and a cluster's names, and how op times are known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <emplace/granularity.h>

#include "io/placement_file.h"
#include "io/readers.h"
#include "run/cluster_scale.h"
#include "run/prices.h"
#include "run/subset_problems.h"

namespace emplace {

// How a model becomes a training step, and in which precision it computes.
struct TrainingRequest {
  bool training = false;  // turn a forward model into its training step
  std::string optimizer = {};
  bool colocate_gradients = false;
  std::vector<std::string> recompute = {};
  std::string precision = {};  // of a forward pass, too; empty: the model's own

  // The first setting that only a training step has; empty when there is none.
  std::string first_given() const;
};

struct ProblemRequest {
  std::string model;       // a file, or zoo:NAME[:key=value,...]
  std::string cluster;     // a file or a preset; may be empty where the model brings one
  std::string kinds = {};  // a cluster file whose device kinds replace those of the same names
  CostMode cost = CostMode::kAuto;
  bool fuse = false;
  InPlace in_place = InPlace::kSums;
  std::map<std::string, std::int64_t, std::less<>> dims = {};  // symbolic ONNX dimensions
  std::vector<DeviceRule> rules = {};
  TrainingRequest training = {};
  std::optional<std::int64_t> batch = std::nullopt;  // samples of a step, where it can be set
  ClusterScale scale = {};                           // of the cluster: what if
  Prices prices = {};
  Granularity granularity = Granularity::kOp;

  // Whether recomputation could still be asked for.
  bool could_recompute() const;
  // What a placement file says of how its model was read.
  MadeWith made_with() const;
};

// Throws an Error when a setting is for training steps and the model is none.
Model load_model(const std::string& model, const TrainingRequest& training,
                 ReadOptions options = {});

Model load_model(const ProblemRequest& request);

// Throws an Error that names the file or setting that is wrong. What the model's user should know
// goes into `notes`.
std::shared_ptr<const Problem> load_problem(const ProblemRequest& request,
                                            std::vector<std::string>* notes = nullptr);

// What its step is worth: samples and tokens where they are known (run/batch.h), FLOPs, prices.
// Throws an Error when only some of the devices have a price.
StepTerms terms_of(const ProblemRequest& request, const Problem& problem);

// The same, and, where modules are kept whole, the problem op by op.
struct LoadedProblem {
  std::shared_ptr<const Problem> problem;
  std::shared_ptr<const Problem> op_by_op = nullptr;
};
LoadedProblem load_problem_and_ops(const ProblemRequest& request,
                                   std::vector<std::string>* notes = nullptr);

// A placement file, in the order of ops that it gives, or in that of a scheduler: given (the file's
// priorities), fifo, pct, msr; empty: given where the file has priorities, else fifo.
PlacementFile load_placement(const std::string& path, const Problem& problem,
                             const std::string& scheduler = {});
// The same of such a file's content.
PlacementFile parse_placement(const std::string& text, const Problem& problem,
                              const std::string& scheduler = {});

}  // namespace emplace

// What comes before the first step of a training, on every rank: reading the graphs, and for each
// task the expert's step time and a placement to imitate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <emplace/train.h>

#include "placer/context.h"
#include "placer/run.h"

#include "dist/crew.h"
#include "dist/member.h"
#include "learn/backend.h"
#include "run/training_tasks.h"

namespace emplace {

class TrainingPreparation {
 public:
  // Throws an Error when an option is wrong or the policy to begin from cannot be used: what would
  // only be noticed after long preparations. The options outlive it.
  explicit TrainingPreparation(const TrainOptions& options);

  const learn::MultiGraphSettings& settings() const { return settings_; }
  const std::string& begin_from() const { return begin_from_; }  // a policy file's bytes
  const learn::Backend& backend() const { return backend_; }

  // Every graph on every cluster, as tasks without examples.
  std::vector<learn::TrainingTask> read() const;
  // Whoever computes the same has read the same, and is asked for the same.
  std::uint64_t fingerprint(const std::vector<learn::TrainingTask>& tasks) const;

  // Adds references and examples, where there is a crew with its help. Where the budget is
  // cancelled, some are missing.
  void prepare(std::vector<learn::TrainingTask>& tasks, dist::Crew* crew) const;
  // A part of that on another rank.
  std::string help(dist::Reader& reader, dist::Line& line,
                   std::vector<learn::TrainingTask>& tasks) const;

 private:
  void check() const;
  // The reference is what the expert does; the example, what the placer to imitate does.
  void prepare(learn::TrainingTask& task, const Budget& budget) const;
  // Several of them, as bytes.
  std::string prepared(std::vector<learn::TrainingTask>& tasks, std::size_t begin, std::size_t end,
                       const Budget& budget) const;
  RunResult run_on(const std::shared_ptr<const Simulator>& simulator, const std::string& spec,
                   const Budget& budget) const;

  const TrainOptions& options_;
  learn::MultiGraphSettings settings_;
  const learn::Backend& backend_;
  std::string begin_from_;
};

// A task's reference and example between ranks. Throws an Error when they cannot be those of it.
void put_prepared(dist::Writer& writer, const learn::TrainingTask& task);
void take_prepared(dist::Reader& reader, learn::TrainingTask& task);

}  // namespace emplace

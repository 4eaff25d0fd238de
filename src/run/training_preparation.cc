#include "run/training_preparation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/fingerprint.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/read_bytes.h"

#include "cost/problem_fingerprint.h"

#include "placer/placement_messages.h"

#include "placers/all.h"

namespace emplace {
namespace {

// From `policy`, `settings` and `device` of the options.
learn::MultiGraphSettings trainer_settings(const TrainOptions& options) {
  OptionValues values = options.settings;
  values.emplace_back("policy", options.policy);
  values.emplace_back("device", options.device);
  return learn::MultiGraphSettings::schema().read(values);
}

}  // namespace

TrainingPreparation::TrainingPreparation(const TrainOptions& options)
    : options_(options),
      settings_(trainer_settings(options)),
      backend_(learn::backend("training a policy")) {
  check();
  if (options_.from.empty()) return;
  begin_from_ = read_bytes(options_.from);
  const learn::PolicyDescription start = backend_.describe_policy(begin_from_, options_.from);
  if (start.kind != settings_.kind) {
    fail_input("{}: a policy of {}; expected one of {}", options_.from, start.kind, settings_.kind);
  }
  settings_.network = start.network;
}

void TrainingPreparation::check() const {
  if (options_.graphs.empty() || options_.clusters.empty()) {
    fail_option("graphs and clusters are missing: expected what to train on");
  }
  if (settings_.network.width % 2 != 0) {
    fail_option("width {}: expected an even number", settings_.network.width);
  }
  if ((options_.imitate == "none") != (settings_.imitation_steps == 0)) {
    fail_option("a placer to imitate and steps of imitation: expected both or neither");
  }
  if (options_.imitate != "none") all_placers().make(MethodSpec::parse(options_.imitate));
  backend_.require_device(settings_.device);
}

std::vector<learn::TrainingTask> TrainingPreparation::read() const {
  const std::vector<NamedProblem> problems =
      cross(list_models(options_.graphs), list_clusters(options_.clusters), options_.memory,
            options_.budget.threads);
  std::vector<learn::TrainingTask> tasks(problems.size());
  parallel_for(problems.size(), options_.budget.threads, [&](std::size_t i) {
    tasks[i].name = problems[i].name;
    tasks[i].context = std::make_shared<PlaceContext>(problems[i].problem);
  });
  return tasks;
}

std::uint64_t TrainingPreparation::fingerprint(
    const std::vector<learn::TrainingTask>& tasks) const {
  Fingerprint all;
  all.add(options_.policy).add(options_.imitate).add(options_.seed).add(begin_from_);
  all.add(static_cast<std::uint64_t>(options_.imitate_evaluations));
  for (const auto& [name, value] : options_.settings) all.add(name).add(value);
  all.add(tasks.size());
  for (const learn::TrainingTask& task : tasks) add_problem(all, task.context->problem());
  return all.value();
}

RunResult TrainingPreparation::run_on(const std::shared_ptr<const Simulator>& simulator,
                                      const std::string& spec, const Budget& budget) const {
  PlaceContext context(simulator);
  return run_placer(all_placers(), context,
                    {.placer = MethodSpec::parse(spec), .seed = options_.seed}, budget);
}

void TrainingPreparation::prepare(learn::TrainingTask& task, const Budget& budget) const {
  task.context->evaluator().count(-task.context->evaluations());  // where it is done again
  Budget own = budget;
  own.threads = 1;
  const auto& simulator = task.context->evaluator().simulator();
  task.reference_seconds =
      static_cast<double>(run_on(simulator, "expert", own).evaluation.step) * 1e-9;
  if (options_.imitate == "none" || settings_.imitation_steps == 0) return;
  own.evaluations = options_.imitate_evaluations;
  const RunResult result =
      with_context(task.name, [&] { return run_on(simulator, options_.imitate, own); });
  if (!result.evaluation.fits()) return;
  const Placement ordered = backend_.in_order(task.context->problem(), result.result.placement);
  // Where links differ, devices that are alike are not quite.
  Evaluator& evaluator = task.context->evaluator();
  const bool worse = evaluator.evaluate(result.result.placement) < evaluator.evaluate(ordered);
  task.example = worse ? result.result.placement : ordered;
}

void TrainingPreparation::prepare(std::vector<learn::TrainingTask>& tasks, dist::Crew* crew) const {
  const Budget& budget = options_.budget;
  if (crew == nullptr) {
    parallel_for(tasks.size(), budget.threads, [&](std::size_t i) { prepare(tasks[i], budget); });
    return;
  }
  // A rank takes as many at a time as it has threads, but no more than leaves some for all.
  const auto ranks = static_cast<std::size_t>(crew->size());
  const std::size_t size = std::clamp<std::size_t>((tasks.size() + ranks - 1) / ranks, 1,
                                                   static_cast<std::size_t>(budget.threads));
  const auto end_of = [&](std::size_t part) { return std::min((part + 1) * size, tasks.size()); };
  std::optional<Error> failure;
  dist::Job job;
  job.tasks = (tasks.size() + size - 1) / size;
  job.describe = [&](std::size_t part) {
    return dist::Writer()
        .number(static_cast<std::uint8_t>(learn::TrainingRankTask::kPreparation))
        .number<std::uint64_t>(part * size)
        .number<std::uint64_t>(end_of(part))
        .number(budget.seconds ? std::max(0.0, *budget.seconds - budget.elapsed_seconds()) : -1.0)
        .take();
  };
  job.here = [&](std::size_t part) { return prepared(tasks, part * size, end_of(part), budget); };
  job.accept = [&](std::size_t part, dist::Reader& reader) {
    for (std::size_t i = part * size; i < end_of(part); ++i) take_prepared(reader, tasks[i]);
    reader.end();
  };
  job.failed = [&](std::size_t, const Error& error) {
    if (!failure) failure = error;
  };
  job.cancelled = budget.cancelled;
  crew->run(job);
  if (failure) throw *failure;
}

std::string TrainingPreparation::prepared(std::vector<learn::TrainingTask>& tasks,
                                          std::size_t begin, std::size_t end,
                                          const Budget& budget) const {
  parallel_for(end - begin, budget.threads,
               [&](std::size_t i) { prepare(tasks[begin + i], budget); });
  dist::Writer writer;
  for (std::size_t i = begin; i < end; ++i) put_prepared(writer, tasks[i]);
  return writer.take();
}

std::string TrainingPreparation::help(dist::Reader& reader, dist::Line& line,
                                      std::vector<learn::TrainingTask>& tasks) const {
  const auto begin = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const auto end = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const auto seconds = reader.number<double>();
  reader.end();
  if (begin > end || end > tasks.size()) {
    fail_input("tasks {} to {} are to be prepared of {}", begin, end, tasks.size());
  }
  Budget budget;
  if (seconds >= 0) budget.seconds = seconds;
  budget.cancelled = &line.stopped();
  budget.threads = options_.budget.threads;
  return prepared(tasks, begin, end, budget);
}

void put_prepared(dist::Writer& writer, const learn::TrainingTask& task) {
  writer.number(task.reference_seconds)
      .number(task.context->evaluations())
      .flag(task.example.has_value());
  if (task.example) put_placement(writer, *task.example, task.context->problem());
}

void take_prepared(dist::Reader& reader, learn::TrainingTask& task) {
  const auto reference = reader.number<double>();
  const auto evaluations = reader.number<std::int64_t>();
  if (!std::isfinite(reference) || reference < 0 || evaluations < 0) {
    fail_input("a reference takes {} s after {} evaluations", reference, evaluations);
  }
  std::optional<Placement> example;
  if (reader.flag()) example = take_placement(reader, task.context->problem());
  task.reference_seconds = reference;
  task.example = std::move(example);
  task.context->evaluator().count(evaluations - task.context->evaluations());
}

}  // namespace emplace

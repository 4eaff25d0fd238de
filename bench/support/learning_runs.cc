#include "support/learning_runs.h"

#include <ctime>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <pthread.h>

#include "base/check.h"
#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "io/file.h"
#include "io/readers.h"
#include "support/workloads.h"

namespace emplace::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const RunKey& key, const LearningRun& run) {
  Json json{{"workload", key.workload},
            {"placer", key.placer},
            {"seed", key.seed},
            {"budget", key.evaluations},
            {"step_ns", run.step},
            {"fits", run.fits},
            {"evaluations", run.evaluations},
            {"seconds", run.seconds},
            {"agent_seconds", run.agent_seconds},
            {"policy_seconds", run.policy_seconds},
            {"learner_seconds", run.learner_seconds},
            {"evaluation_seconds", run.evaluation_seconds},
            {"waiting_seconds", run.waiting_seconds},
            {"history", Json::array()}};
  for (const Progress& point : run.history) {
    json["history"].push_back({point.evaluations, point.agent_seconds, point.step, point.fits});
  }
  return json;
}

std::pair<RunKey, LearningRun> from_json(const Json& json) {
  const RunKey key{json.at("workload"), json.at("placer"), json.at("seed"), json.at("budget")};
  LearningRun run{json.at("step_ns"),         json.at("fits"),
                  json.at("evaluations"),     json.at("seconds"),
                  json.at("agent_seconds"),   json.at("policy_seconds"),
                  json.at("learner_seconds"), json.at("evaluation_seconds"),
                  json.at("waiting_seconds"), {}};
  for (const Json& point : json.at("history")) {
    run.history.push_back({point.at(0), point.at(1), point.at(2), point.at(3)});
  }
  return {key, std::move(run)};
}

// Processor time of the thread that made it, readable from any.
class ThreadClock {
 public:
  ThreadClock() {
    EMPLACE_CHECK(pthread_getcpuclockid(pthread_self(), &clock_) == 0);
    begin_ = now();
  }
  double seconds() const { return now() - begin_; }

 private:
  double now() const {
    timespec time{};
    EMPLACE_CHECK(clock_gettime(clock_, &time) == 0);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  clockid_t clock_{};
  double begin_ = 0;
};

}  // namespace

RunKey run_key(const Workload& workload, const std::string& placer, int seed,
               std::int64_t evaluations) {
  const bool chance = all_placers().info(MethodSpec::parse(placer).key).randomized;
  return {workload.description(), placer, static_cast<std::uint64_t>(chance ? seed : 1),
          evaluations};
}

Stage make_stage(const Workload& workload) {
  const auto graph = read_model(workload.model).graph;
  const auto cluster = equal_devices(graph, workload.devices, workload.memory_percent);
  Stage stage{std::make_shared<const Simulator>(compile(graph, cluster))};
  Evaluator evaluator(stage.simulator);
  stage.single = evaluator.evaluate(Placement(graph->num_ops(), DeviceId{0})).step;
  return stage;
}

LearningRun run(const Stage& stage, const RunKey& key) {
  PlaceContext context(stage.simulator);
  Budget budget;
  budget.evaluations = key.evaluations;
  budget.threads = 1;
  LearningRun result;
  const ThreadClock clock;
  const auto listening = context.incumbent().listen([&](const Incumbent& incumbent) {
    const auto value = incumbent.value();
    if (!value) return;
    const bool same = !result.history.empty() && result.history.back().step == value->step &&
                      result.history.back().fits == value->fits();
    if (same) return;  // a higher bound
    result.history.push_back({context.evaluations(), clock.seconds(), value->step, value->fits()});
  });
  context.learning().on_round = [&](const TrainingPoint& point) {
    result.policy_seconds += point.policy_seconds;
    result.learner_seconds += point.learner_seconds;
    result.evaluation_seconds += point.evaluation_seconds;
    result.waiting_seconds += point.waiting_seconds;
  };
  const RunResult found =
      run_placer(all_placers(), context,
                 {MethodSpec::parse(key.placer), std::string(kOwnSchedule), key.seed}, budget);
  result.step = found.evaluation.step;
  result.fits = found.evaluation.fits();
  result.evaluations = found.evaluations;
  result.seconds = found.seconds;
  result.agent_seconds = clock.seconds();
  return result;
}

RunStore::RunStore(const std::string& path) {
  if (path.empty()) return;
  const bool exists = std::filesystem::exists(path);
  std::string whole_lines;
  if (exists) {
    const std::string text = read_file(path);
    // The last line may be half a line, of a run that was interrupted.
    whole_lines = text.substr(0, text.rfind('\n') + 1);
    for (std::size_t begin = 0; begin < whole_lines.size();) {
      const std::size_t end = whole_lines.find('\n', begin);
      try {
        runs_.insert(from_json(Json::parse(whole_lines.substr(begin, end - begin))));
      } catch (const Json::exception& error) {
        fail_input("{}: is not a file of results: {}", path, error.what());
      }
      begin = end + 1;
    }
  }
  write_file(path, whole_lines);
  file_.emplace(path, AppendFile::Open::kExisting);
}

const LearningRun* RunStore::find(const RunKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : &found->second;
}

void RunStore::add(const RunKey& key, LearningRun run) {
  const std::lock_guard lock(mutex_);
  if (file_) file_->append(to_json(key, run).dump() + "\n");
  runs_.insert_or_assign(key, std::move(run));
}

}  // namespace emplace::bench

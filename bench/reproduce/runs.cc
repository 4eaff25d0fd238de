#include "reproduce/runs.h"

#include <cmath>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>

#include "base/check.h"
#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "io/append_file.h"
#include "io/file.h"
#include "io/file_lock.h"
#include "io/readers.h"

namespace emplace::bench {
namespace {

using Json = nlohmann::ordered_json;

// Of seconds: the file is kept, and more digits say nothing.
double to_milliseconds(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

Json to_json(const RunKey& key, const LearningRun& run) {
  Json json{{"workload", key.workload},
            {"placer", key.placer},
            {"seed", key.seed},
            {"budget", key.evaluations},
            {"step_ns", run.step},
            {"fits", run.fits},
            {"evaluations", run.evaluations},
            {"seconds", to_milliseconds(run.seconds)},
            {"agent_seconds", to_milliseconds(run.agent_seconds)},
            {"measured_seconds", to_milliseconds(run.measured_seconds)},
            {"groups_used", run.groups_used},
            {"code", run.code},
            {"kernels", run.kernels},
            {"history", Json::array()}};
  for (const RunProgress& point : run.history) {
    json["history"].push_back({point.evaluations, to_milliseconds(point.agent_seconds),
                               to_milliseconds(point.measured_seconds), point.step, point.fits});
  }
  return json;
}

std::pair<RunKey, LearningRun> from_json(const Json& json) {
  const RunKey key{json.at("workload"), json.at("placer"), json.at("seed"), json.at("budget")};
  LearningRun run{.step = json.at("step_ns"),
                  .fits = json.at("fits"),
                  .evaluations = json.at("evaluations"),
                  .seconds = json.at("seconds"),
                  .agent_seconds = json.at("agent_seconds"),
                  .measured_seconds = json.at("measured_seconds"),
                  .groups_used = json.at("groups_used"),
                  .code = json.at("code"),
                  .kernels = json.value("kernels", ""),  // older rows do not say
                  .history = {}};
  for (const Json& point : json.at("history")) {
    run.history.push_back({point.at(0), point.at(1), point.at(2), point.at(3), point.at(4)});
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

RunKey run_key(const Workload& workload, const std::string& entrant, int seed,
               std::optional<std::int64_t> evaluations) {
  const bool chance = all_placers().info(parse_entrant(entrant).placer.key).randomized;
  return {workload.description(), entrant, static_cast<std::uint64_t>(chance ? seed : 1),
          evaluations.value_or(workload.evaluations)};
}

PlacerRun parse_entrant(const std::string& text) {
  const std::size_t at = text.rfind('@');
  PlacerRun result{.placer = MethodSpec::parse(text.substr(0, at))};
  if (at != std::string::npos) result.scheduler = text.substr(at + 1);
  return result;
}

Stage make_stage(const Workload& workload) {
  const auto graph = read_model(workload.model).graph;
  Stage stage{std::make_shared<const Simulator>(compile(graph, cluster_of(workload, graph)))};
  // An accelerator, which "one device" means to people.
  const Cluster& cluster = stage.simulator->problem().cluster();
  DeviceId first = 0;
  while (first + 1 < cluster.num_devices() && cluster.is_cpu(first)) ++first;
  Evaluator evaluator(stage.simulator);
  stage.single = evaluator.evaluate(Placement(graph->num_ops(), first)).step;
  return stage;
}

LearningRun run(const Stage& stage, const RunKey& key) {
  PlaceContext context(stage.simulator);
  Budget budget;
  budget.evaluations = key.evaluations;
  budget.threads = 1;
  LearningRun result;
  const ThreadClock clock;
  double steps_seconds = 0;
  std::size_t timed = 0;  // points of the history whose round has ended
  const auto listening = context.incumbent().listen([&](const Incumbent& incumbent) {
    const auto value = incumbent.value();
    if (!value) return;
    const bool same = !result.history.empty() && result.history.back().step == value->step &&
                      result.history.back().fits == value->fits();
    if (same) return;  // a higher bound
    result.history.push_back({context.evaluations(), clock.seconds(),
                              clock.seconds() + steps_seconds, value->step, value->fits()});
  });
  context.learning().on_round = [&](const TrainingPoint& point) {
    // What was found in this round had waited for all of its placements.
    for (; timed < result.history.size(); ++timed) {
      result.history[timed].measured_seconds =
          result.history[timed].agent_seconds + point.simulated_seconds;
    }
    steps_seconds = point.simulated_seconds;
    result.groups_used = point.groups_used.value_or(0);
  };
  PlacerRun chosen = parse_entrant(key.placer);
  chosen.seed = key.seed;
  const RunResult found = run_placer(all_placers(), context, chosen, budget);
  result.step = found.evaluation.step;
  result.fits = found.evaluation.fits();
  result.evaluations = found.evaluations;
  result.seconds = found.seconds;
  result.agent_seconds = clock.seconds();
  if (steps_seconds > 0) result.measured_seconds = result.agent_seconds + steps_seconds;
  return result;
}

std::string LearningRun::origin() const {
  return kernels.empty() ? code : fmt::format("{} ({})", code, kernels);
}

RunStore::RunStore(std::string path, std::string code, std::string kernels)
    : path_(std::move(path)), code_(std::move(code)), kernels_(std::move(kernels)) {
  refresh();
}

void RunStore::refresh() {
  const std::lock_guard lock(mutex_);
  read_new_lines();
}

void RunStore::read_new_lines() {
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  const std::string text = read_file(path_);
  const bool goes_on = read_ == 0 || (read_ <= text.size() && text[read_ - 1] == '\n');
  if (!goes_on) read_ = 0;
  // The last line may be half a line, of a run that was interrupted or is being added.
  const std::size_t whole = text.rfind('\n') + 1;
  while (read_ < whole) {
    const std::size_t end = text.find('\n', read_);
    try {
      runs_.insert(from_json(Json::parse(text.substr(read_, end - read_))));
    } catch (const Json::exception& error) {
      fail_input("{}: is not a file of results: {}", path_, error.what());
    }
    read_ = end + 1;
  }
}

const LearningRun* RunStore::find(const RunKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : &found->second;
}

void RunStore::add(const RunKey& key, LearningRun run) {
  run.code = code_;
  run.kernels = kernels_;
  keep(key, std::move(run));
}

void RunStore::keep(const RunKey& key, LearningRun run) {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) {
    runs_.insert_or_assign(key, std::move(run));
    return;
  }
  const FileLock alone(path_);
  read_new_lines();
  const auto [added, is_new] = runs_.emplace(key, std::move(run));
  if (is_new) append(to_json(key, added->second).dump() + "\n");
}

// Opened anew each time: the file may have been replaced since.
void RunStore::append(const std::string& line) {
  const bool exists = std::filesystem::exists(path_);
  // Nobody else writes now: half a line has nobody who ends it.
  if (exists && std::filesystem::file_size(path_) > read_) {
    std::filesystem::resize_file(path_, read_);
  }
  AppendFile file(path_, exists ? AppendFile::Open::kExisting : AppendFile::Open::kNew);
  file.append(line);
  read_ += line.size();
}

}  // namespace emplace::bench

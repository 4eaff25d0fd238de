// Runs are done one after the other, each on every subset of devices that may be used; the best of
// those is the run's result, and its bound is the lowest of the subsets' (a placement may be on any
// of them), if they stand for all. A scheduler that is asked for holds from the beginning of a run,
// so that runs under different ones have different placements. Time is shared: what a run leaves,
// later ones get. One placer that cannot cope is a warning as long as another can. The order of
// results does not depend on speed: by value, then by the order of the runs.
//
// With several ranks, one that searches is an island on each of them (run/islands.h); where each
// run has the time for itself, whole runs are shared instead.
#include "run/portfolio.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "placers/all.h"

#include "run/islands.h"
#include "run/rank_messages.h"
#include "run/rank_valuers.h"
#include "run/search_checkpoint.h"
#include "run/team_valuers.h"
#include "search/learning_ranks.h"

namespace emplace {
namespace {

// Under an evaluation budget every island has so many for each group at least, unless it was said
// how many islands there are: with fewer, several short searches find less than a long one.
constexpr std::int64_t kEvaluationsPerGroup = 400;

bool better(const RunResult& a, const RunResult& b) {
  return a.evaluation < b.evaluation;
}

}  // namespace

class Portfolio::Runner {
 public:
  Runner(const SubsetProblems& problems, PortfolioRequest request)
      : problems_(problems),
        request_(std::move(request)),
        runs_(request_.runs),
        objective_(problems.objective()),
        budget_(request_.budget.or_default()),
        status_(runs_.size(), problems.list().size() == 1,
                request_.measure ? 0 : problems.bound().step,
                request_.time_for == TimeFor::kEachRun) {
    check_learning(request_.learning, runs_, problems.list().size());
    for (std::size_t i = 0; request_.islands > 0 && budget_.evaluations && i < runs_.size(); ++i) {
      if (!has_islands(i)) continue;
      check_islands(request_.islands,
                    *budget_.evaluations / static_cast<std::int64_t>(problems_.list().size()));
    }
    files_ = open_learning_files(request_.learning, runs_, request_.time_for == TimeFor::kEachRun);
    if (keeps_search(request_.learning, runs_)) {
      const SearchCheckpoint::Islands islands{.count = budget_.evaluations ? num_islands() : 0,
                                              .asked_for = request_.islands > 0,
                                              .evaluations = budget_.evaluations};
      checkpoint_ =
          std::make_unique<SearchCheckpoint>(request_.learning, problems_, runs_.front(), islands);
    }
  }

  RunStatus& status() { return status_; }

  std::size_t idle_ranks() const {
    if (request_.crew == nullptr || !budget_.evaluations || shares_runs()) return 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const bool searches = all_placers().info(runs_[i].placer.key).randomized;
      if (!can_be_named(i) || !searches || learns(runs_[i])) return 0;
    }
    const auto ranks = static_cast<std::size_t>(request_.crew->size());
    return ranks - std::min(ranks, num_islands());
  }

  PortfolioResult run() {
    done_.assign(runs_.size(), false);
    if (request_.crew != nullptr) {
      request_.crew->expect(fingerprint(problems_, runs_, request_.measure != nullptr));
      if (shares_runs()) share_runs();
    }
    for (const std::size_t i : order_of_runs()) {
      if (done_[i]) continue;
      ++position_;
      const bool time_is_up =
          request_.time_for == TimeFor::kAllRuns && request_.budget.seconds && time_left() <= 0;
      if (!results_.empty() && (time_is_up || gives_up_on(i))) break;
      if (runs_[i].placer == failed_) continue;
      try {
        keep(i, run_one(i));
      } catch (const Error& error) {
        if (!can_do_without(i)) throw;
        failed_ = runs_[i].placer;
        failures_.push_back(error.what());
      }
    }
    if (request_.crew != nullptr) request_.crew->check();
    if (results_.empty()) fail_input("{}", fmt::join(failures_, "; "));
    return {
        sorted_results(),
        std::move(failures_),
        {std::make_move_iterator(runners_up_.begin()), std::make_move_iterator(runners_up_.end())},
        std::move(courses_)};
  }

  void serve(dist::Member& member) {
    const struct Forget {  // before the member is gone
      Runner& runner;
      ~Forget() {
        runner.kept_learning_.reset();
        runner.kept_workers_.reset();
      }
    } forget{*this};
    // Of controllers, which ask past rank 0.
    KeptPlace asked;
    const SampleService service(
        member,
        [&](const SampleQuestion& question) -> Evaluator& {
          keep_place(asked, question.run, question.problem);
          return asked.place.context->evaluator();
        },
        budget_.threads);
    budget_.cancelled = &member.stopped();
    const std::uint64_t own = fingerprint(problems_, runs_, request_.measure != nullptr);
    member.serve(own, [&](dist::Reader& task, dist::Line& line) {
      switch (static_cast<RankTask>(task.number<std::uint8_t>())) {
        case RankTask::kIsland:
          return serve_island(task, line);
        case RankTask::kRun:
          return serve_run(task);
        case RankTask::kSamples:
          return serve_samples(task);
        case RankTask::kLearning:
          return serve_learning(task, line, member);
      }
      fail_input("a task is of no known kind");
    });
  }

 private:
  void keep(std::size_t index, RunResult result) {
    status_.note(result.evaluation);
    status_.raise(result.bound.step);
    results_.push_back(std::move(result));
    index_of_result_.push_back(index);
  }

  // One of several placers that cannot cope, as with missing links, does not stop the others. Nor
  // does a checkpoint that is not this run's pass for one that was gone on from.
  bool can_do_without(std::size_t index) const {
    const bool others = std::any_of(runs_.begin(), runs_.end(), [&](const PlacerRun& other) {
      return other.placer != runs_[index].placer;
    });
    return others && !(request_.learning.resume && learns(runs_[index]));
  }

  bool shares_runs() const {
    return request_.crew != nullptr && request_.time_for == TimeFor::kEachRun && runs_.size() > 1;
  }
  // Files and courses are written here, and what was made here cannot be named elsewhere.
  bool can_be_named(std::size_t index) const {
    return !runs_[index].make && (!request_.measure || request_.ranks_measure);
  }
  bool can_be_shared(std::size_t index) const {
    if (!can_be_named(index)) return false;
    if (request_.keep_courses && all_placers().info(runs_[index].placer.key).randomized)
      return false;
    return !learns(runs_[index]) || request_.learning.curves.empty();
  }
  // Whether a run is an island on every rank. What learns is, as long as there is time: rounds
  // would make it forget.
  bool has_islands(std::size_t index) const {
    const bool several = budget_.evaluations ? num_islands() > 1 || checkpoint_ != nullptr
                                             : request_.crew != nullptr;
    return several && !shares_runs() && can_be_named(index) &&
           all_placers().info(runs_[index].placer.key).randomized &&
           (!learns(runs_[index]) || !(budget_.evaluations || has_controllers(runs_[index])));
  }

  std::size_t num_islands() const {
    if (request_.islands > 0) return request_.islands;
    if (checkpoint_ != nullptr && checkpoint_->islands() > 0) return checkpoint_->islands();
    if (request_.crew == nullptr) return 1;
    const auto ranks = static_cast<std::int64_t>(request_.crew->size());
    if (!budget_.evaluations) return static_cast<std::size_t>(ranks);
    const std::int64_t enough = kEvaluationsPerGroup * problems_.whole()->problem().num_groups();
    return static_cast<std::size_t>(std::clamp<std::int64_t>(
        *budget_.evaluations / std::max<std::int64_t>(1, enough), 1, ranks));
  }

  // Every rank takes one run after the other. What cannot be shared is left for later.
  void share_runs() {
    std::vector<std::size_t> shared;
    for (const std::size_t i : order_of_runs()) {
      if (can_be_shared(i)) shared.push_back(i);
    }
    const Problem& whole = problems_.whole()->problem();
    Evaluator evaluator(problems_.whole(), objective_);
    evaluator.measure_with(request_.measure);
    std::optional<Error> failure;
    dist::Job job;
    job.tasks = shared.size();
    job.cancelled = budget_.cancelled;
    job.describe = [&](std::size_t task) {
      return dist::Writer()
          .number(static_cast<std::uint8_t>(RankTask::kRun))
          .number<std::uint64_t>(shared[task])
          .take();
    };
    job.here = [&](std::size_t task) {
      ++position_;
      dist::Writer writer;
      put(writer, run_one(shared[task]), whole);
      return writer.take();
    };
    job.accept = [&](std::size_t task, dist::Reader& reader) {
      RunResult result = take_result(reader, whole, runs_[shared[task]]);
      reader.end();
      const Solution found{result.result.placement, result.result.schedule, result.evaluation};
      check_value(found, evaluator);
      check_bound(result.bound, result.evaluation);
      keep(shared[task], std::move(result));
      done_[shared[task]] = true;
    };
    job.failed = [&](std::size_t task, const Error& error) {
      done_[shared[task]] = true;
      if (!can_do_without(shared[task])) failure = error;
      note_failure(error.what());
    };
    request_.crew->run(job);
    if (failure) throw *failure;
    remove_repeated_failures();
  }

  // Of runs here and of others', which may end at the same time.
  void note_failure(std::string text) {
    const std::lock_guard lock(failures_mutex_);
    failures_.push_back(std::move(text));
  }

  // Of a placer under several schedulers or seeds, which say the same.
  void remove_repeated_failures() {
    std::set<std::string> seen;
    std::erase_if(failures_, [&](const std::string& text) { return !seen.insert(text).second; });
  }

  std::string serve_run(dist::Reader& task) {
    const auto index = task.number<std::uint64_t>();
    task.end();
    if (index >= runs_.size()) fail_input("a task is of run {} of {}", index, runs_.size());
    ++position_;
    dist::Writer writer;
    put(writer, run_one(static_cast<std::size_t>(index)), problems_.whole()->problem());
    return writer.take();
  }

  std::string serve_island(dist::Reader& task, dist::Line& line) {
    return do_island_task(task, line, std::bind_front(&Runner::find_place, this), budget_.threads);
  }

  // What a task is about, on another rank.
  IslandPlace find_place(std::size_t run, std::size_t problem) const {
    if (run >= runs_.size() || problem >= problems_.list().size()) {
      fail_input("a task is of run {} on problem {}", run, problem);
    }
    const SubsetProblem& subset = problems_.list()[problem];
    const bool measures = request_.measure != nullptr;
    // Starts would be measured, and nobody begins from them here.
    IslandPlace place{&runs_[run], std::make_unique<PlaceContext>(
                                       subset.simulator, objective_,
                                       measures ? std::vector<Solution>{} : subset.starts)};
    if (!measures) place.context->incumbent().raise(subset.bound);
    if (measures) place.context->measure_with(measured_on(subset, request_.measure));
    const std::string& device = request_.learning.device;
    if (!device.empty()) place.context->learning().device = device;
    return place;
  }

  // Kept from one task to the next: they are many, and small.
  struct KeptPlace {
    IslandPlace place;
    std::pair<std::size_t, std::size_t> is_for;
  };
  void keep_place(KeptPlace& kept, std::size_t run, std::size_t problem) const {
    if (kept.place.context != nullptr && kept.is_for == std::pair(run, problem)) return;
    kept.place = find_place(run, problem);
    kept.is_for = {run, problem};
    order_by_scheduler(*kept.place.context, *kept.place.run);
  }

  IslandPlace& keep_place(dist::Reader& task) {
    const auto run = static_cast<std::size_t>(task.number<std::uint64_t>());
    const auto problem = static_cast<std::size_t>(task.number<std::uint64_t>());
    // What is kept of the one before refers to it.
    if (kept_.is_for != std::pair(run, problem)) {
      kept_learning_.reset();
      kept_workers_.reset();
    }
    keep_place(kept_, run, problem);
    return kept_.place;
  }

  std::string serve_samples(dist::Reader& task) {
    PlaceContext& context = *keep_place(task).context;
    return value_for_others(task, context.evaluator(), budget_.threads);
  }

  std::string serve_learning(dist::Reader& description, dist::Line& line, dist::Member& member) {
    IslandPlace& place = keep_place(description);
    if (kept_workers_ == nullptr) {
      kept_workers_ =
          std::make_unique<TeamValuers>(member, kept_.is_for.first, kept_.is_for.second,
                                        *place.context, request_.least_shared_seconds, budget_);
    }
    LearningTask task{.description = &description,
                      .line = &line,
                      .notes = &member,
                      .workers = kept_workers_.get(),
                      .kept = &kept_learning_};
    place.context->learning().task = &task;
    all_placers().make(place.run->placer)->place(*place.context, budget_, Rng(place.run->seed));
    return task.result;
  }

  // When interrupted. Whoever stops a comparison has the heuristics all the same, those of a
  // second.
  bool gives_up_on(std::size_t index) {
    if (!cancelled()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!cancelled_at_) cancelled_at_ = now;
    return !takes_no_time(index) || now - *cancelled_at_ > std::chrono::seconds(1);
  }
  bool takes_no_time(std::size_t index) const {
    constexpr OpId kFewOps = 200'000;
    return request_.time_for == TimeFor::kEachRun && !runs_[index].make &&
           problems_.whole()->problem().num_ops() <= kFewOps &&
           all_placers().info(runs_[index].placer.key).family == "heuristic";
  }

  std::vector<std::size_t> order_of_runs() const {
    std::vector<std::size_t> order(runs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return takes_no_time(i); });
    return order;
  }

  // By value, then by the order in which they were asked for.
  std::vector<RunResult> sorted_results() {
    std::vector<std::size_t> order(results_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (better(results_[a], results_[b])) return true;
      return !better(results_[b], results_[a]) && index_of_result_[a] < index_of_result_[b];
    });
    std::vector<RunResult> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(results_[i]));
    return sorted;
  }

  double time_left() const {
    return budget_.seconds ? *budget_.seconds - budget_.elapsed_seconds() : 1;
  }
  bool cancelled() const { return budget_.cancelled != nullptr && budget_.cancelled->load(); }

  RunResult run_one(std::size_t index) {
    if (request_.keep_courses) courses_.push_back({runs_[index]});
    std::optional<RunResult> best;
    LowerBound lowest;
    std::optional<Error> failure;
    std::int64_t evaluations = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < problems_.list().size(); ++i) {
      if (best && cancelled()) {
        lowest.step = 0;
        break;
      }
      if (best && best->evaluation.fits() && problems_.list()[i].last_resort) break;
      try {
        RunResult result = run_on(problems_.list()[i], index, i);
        evaluations += result.evaluations;
        seconds += result.seconds;
        if (i == 0 || result.bound.step < lowest.step) lowest = result.bound;
        if (!best || better(result, *best)) best = std::move(result);
      } catch (const Error& error) {
        if (problems_.list().size() == 1) throw;
        failure = error;
        lowest = {};
      }
    }
    if (!best) throw *failure;
    best->bound = problems_.complete() && !failure ? lowest : LowerBound{};
    best->evaluations = evaluations;
    best->seconds = seconds;
    end_course(*best);
    return std::move(*best);
  }

  RunResult run_on(const SubsetProblem& problem, std::size_t index, std::size_t problem_index) {
    // Rounds of islands begin from the same wherever they are done, and go on from their elites.
    const bool in_rounds = has_islands(index) && budget_.evaluations;
    PlaceContext context(problem.simulator, objective_,
                         in_rounds ? problem.starts : starts_on(problem, problem_index));
    if (!request_.measure) context.incumbent().raise(problem.bound);
    if (checkpoint_ != nullptr) {
      const auto& known = checkpoint_->kept(problem_index);
      context.incumbent().hear(known.bound);
      // Other ranks are told of it with what they are to do.
      if (has_islands(index) && known.best) context.incumbent().offer(*known.best);
    }
    const Budget own = share(index, problems_.list().size() - problem_index);
    status_.begin(position_, runs_[index], context, own);
    const struct End {
      RunStatus& status;
      ~End() { status.end(); }
    } end{status_};
    LearningFiles* files = files_[index].get();
    if (files != nullptr) {
      files->attach(context.learning(), [this](const TrainingPoint& point) {
        status_.learned(point);
        if (request_.keep_courses) courses_.back().rounds.push_back(point);
      });
    }
    const auto kept = keep_runners_up(context, problem);
    const auto course = keep_course(context, own);
    if (request_.measure) context.measure_with(measured_on(problem, request_.measure));
    RunResult result = search(context, index, problem_index, own);
    result.result.placement = to_whole(result.result.placement, problem.devices);
    if (files != nullptr && files->failure()) note_failure(*files->failure());
    if (checkpoint_ != nullptr && checkpoint_->failure()) note_failure(*checkpoint_->failure());
    return result;
  }

  RunResult search(PlaceContext& context, std::size_t index, std::size_t problem_index,
                   const Budget& budget) {
    std::optional<SearchCheckpoint::Watch> watch;
    IslandOptions islands{.crew = request_.crew, .islands = num_islands()};
    if (checkpoint_ != nullptr) {
      islands.resumed = checkpoint_->kept(problem_index).islands;
      islands.on_round = [&](const IslandState& state) {
        checkpoint_->note_round(problem_index, state);
      };
      watch.emplace(*checkpoint_, problem_index, context);
    }
    if (!has_islands(index)) {
      return run_with_help(context, index, problem_index, budget);
    }
    return run_islands({.run_index = index,
                        .problem_index = problem_index,
                        .run = &runs_[index],
                        .context = &context,
                        .budget = budget},
                       islands);
  }

  // One that learns has its samples valued by the ranks, or its controllers there.
  RunResult run_with_help(PlaceContext& context, std::size_t index, std::size_t problem_index,
                          const Budget& budget) {
    std::optional<RankValuers> valuers;
    std::optional<TeamValuers> workers;
    LearningCrew crew{.crew = request_.crew};
    if (request_.crew != nullptr && !shares_runs() && !runs_[index].make) {
      if (has_controllers(runs_[index])) {
        crew.address = dist::Writer()
                           .number(static_cast<std::uint8_t>(RankTask::kLearning))
                           .number<std::uint64_t>(index)
                           .number<std::uint64_t>(problem_index)
                           .take();
        crew.workers = &workers.emplace(*request_.crew, index, problem_index, context,
                                        request_.least_shared_seconds, budget);
        context.learning().crew = &crew;
      } else {
        valuers.emplace(*request_.crew, index, problem_index, context,
                        request_.least_shared_seconds, budget);
        context.value_with(&*valuers);
      }
    }
    return run_placer(all_placers(), context, runs_[index], budget);
  }

  std::vector<Solution> starts_on(const SubsetProblem& problem, std::size_t index) const {
    std::vector<Solution> starts = problem.starts;
    if (checkpoint_ != nullptr && checkpoint_->kept(index).best) {
      starts.push_back(*checkpoint_->kept(index).best);
    }
    return starts;
  }

  // As long as what it returns lives.
  Incumbent::Subscription keep_runners_up(PlaceContext& context, const SubsetProblem& problem) {
    if (!request_.keep_runners_up) return nullptr;
    return context.incumbent().listen([&](const Incumbent& incumbent) {
      constexpr std::size_t kMost = 64;
      auto best = incumbent.best();
      if (!best) return;
      best->schedule = context.evaluator().schedule_of(best->placement, std::move(best->schedule));
      best->placement = to_whole(best->placement, problem.devices);
      runners_up_.push_front(std::move(*best));
      if (runners_up_.size() > kMost) runners_up_.pop_back();
    });
  }

  // As long as what it returns lives. The times and evaluations of a run's problems follow each
  // other.
  Incumbent::Subscription keep_course(PlaceContext& context, const Budget& began) {
    if (!request_.keep_courses) return nullptr;
    std::vector<CoursePoint>& points = courses_.back().points;
    const CoursePoint before = points.empty() ? CoursePoint{} : points.back();
    return context.incumbent().listen([&, began, before](const Incumbent& incumbent) {
      points.push_back({before.seconds + began.elapsed_seconds(),
                        before.evaluations + context.evaluator().evaluations(), incumbent.value(),
                        problems_.list().size() == 1 ? incumbent.bound().step : 0});
      if (before.best && points.back().best && *before.best < *points.back().best) {
        points.back().best = before.best;
      }
    });
  }
  void end_course(const RunResult& result) {
    if (!request_.keep_courses) return;
    courses_.back().points.push_back(
        {result.seconds, result.evaluations, result.evaluation, result.bound.step});
  }

  // A run's problems have equal parts of its budget; a part of the time that one leaves is for the
  // others.
  Budget share(std::size_t index, std::size_t problems_left) const {
    Budget own = budget_.restarted();
    const std::size_t num_problems = problems_.list().size();
    if (own.evaluations && num_problems > 1) {
      const auto parts = static_cast<std::int64_t>(num_problems);
      own.evaluations = std::max<std::int64_t>(1, *own.evaluations / parts);
    }
    if (!own.seconds) return own;
    if (request_.time_for == TimeFor::kEachRun) {
      own.seconds = *own.seconds / static_cast<double>(num_problems);
    } else {
      const std::size_t parts = (runs_.size() - index - 1) * num_problems + problems_left;
      own.seconds = std::max(0.0, time_left()) / static_cast<double>(parts);
    }
    return own;
  }

  const SubsetProblems& problems_;
  PortfolioRequest request_;
  const std::vector<PlacerRun>& runs_;
  Objective objective_;
  Budget budget_;
  RunStatus status_;
  std::vector<std::unique_ptr<LearningFiles>> files_;  // by run
  std::unique_ptr<SearchCheckpoint> checkpoint_;       // of the one run, where it searches
  std::vector<RunResult> results_;
  std::vector<std::size_t> index_of_result_;
  std::deque<Solution> runners_up_;
  std::vector<SearchCourse> courses_;
  std::vector<bool> done_;    // by run: by ranks that shared them
  std::size_t position_ = 0;  // of the run that is under way, from 1
  // On another rank: what its last task was about.
  KeptPlace kept_;
  std::shared_ptr<void> kept_learning_;
  std::unique_ptr<TeamValuers> kept_workers_;
  std::optional<std::chrono::steady_clock::time_point> cancelled_at_;
  MethodSpec failed_;
  std::mutex failures_mutex_;
  std::vector<std::string> failures_;
};

Portfolio::Portfolio(const SubsetProblems& problems, PortfolioRequest request)
    : runner_(std::make_unique<Runner>(problems, std::move(request))) {}

Portfolio::~Portfolio() = default;

RunStatus& Portfolio::status() {
  return runner_->status();
}

std::size_t Portfolio::idle_ranks() const {
  return runner_->idle_ranks();
}

PortfolioResult Portfolio::run() {
  return runner_->run();
}

void Portfolio::serve(dist::Member& member) {
  runner_->serve(member);
}

}  // namespace emplace

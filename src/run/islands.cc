// Rounds: with I islands and R rounds, a budget of E evaluations is cut into I * R parts. A round
// of island i begins from what it has itself, what its neighbour i - 1 has and the best of all,
// which are known when the round before is over on all islands, with random numbers of (seed, i,
// round), and does its quarter of one search (SearchPart): it does not look for starts again, and
// cools on from where the round before has ended. So a task is all that its outcome depends on, and
// which rank does it, when and how often makes no difference.
#include "run/islands.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"

#include "placers/all.h"

#include "run/exchange.h"
#include "run/rank_messages.h"
#include "run/shared_job.h"

namespace emplace {
namespace {

constexpr int kRounds = 4;

// The first island is what one process would do.
std::uint64_t island_seed(std::uint64_t seed, std::size_t island, int round) {
  if (island == 0 && round == 0) return seed;
  return Rng(seed).split(1 + island).split(static_cast<std::uint64_t>(round)).next();
}

// What is said of a task beside which run and problem it is about.
struct IslandTask {
  std::uint64_t seed = 1;
  int round = 0;
  bool live = false;
  bool proves = false;  // bounds: one island alone, since all would prove the same
  std::optional<double> seconds = std::nullopt;
  std::optional<std::int64_t> evaluations = std::nullopt;
  LowerBound bound = {};
  std::vector<Solution> starts = {};  // beside those that everybody has
};

void put_task(dist::Writer& writer, const IslandTask& task, const Problem& problem) {
  writer.number(task.seed).number<std::int32_t>(task.round);
  writer.flag(task.live).flag(task.proves);
  writer.number(task.seconds.value_or(-1)).number(task.evaluations.value_or(-1));
  put(writer, task.bound);
  writer.number<std::uint64_t>(task.starts.size());
  for (const Solution& start : task.starts) put(writer, start, problem);
}

IslandTask take_task(dist::Reader& reader, const Problem& problem) {
  IslandTask task;
  task.seed = reader.number<std::uint64_t>();
  task.round = reader.number<std::int32_t>();
  if (task.round < 0 || task.round >= kRounds) fail_input("a task is of round {}", task.round);
  task.live = reader.flag();
  task.proves = reader.flag();
  const auto seconds = reader.number<double>();
  const auto evaluations = reader.number<std::int64_t>();
  if (seconds >= 0) task.seconds = seconds;
  if (evaluations >= 0) task.evaluations = evaluations;
  task.bound = take_bound(reader);
  const std::size_t starts = reader.count(sizeof(std::uint64_t));
  for (std::size_t i = 0; i < starts; ++i) task.starts.push_back(take_solution(reader, problem));
  reader.end();
  return task;
}

RunResult search_island(const PlacerRun& run, std::uint64_t seed, PlaceContext& context,
                        const Budget& budget) {
  PlacerRun own = run;
  own.seed = seed;
  RunResult result = run_placer(all_placers(), context, own, budget);
  result.run.seed = run.seed;
  return result;
}

// The better of two, with the evaluations of both.
void merge(std::optional<RunResult>& into, RunResult result) {
  if (!into) {
    into = std::move(result);
    return;
  }
  const std::int64_t evaluations = into->evaluations + result.evaluations;
  const double seconds = std::max(into->seconds, result.seconds);
  if (result.evaluation < into->evaluation) into = std::move(result);
  into->evaluations = evaluations;
  into->seconds = seconds;
}

// Of a lost rank too, which has told of it.
void take_incumbent(RunResult& result, const PlacerRun& run, PlaceContext& context) {
  std::optional<Solution> best = context.incumbent().best();
  if (!best || !(best->value < result.evaluation)) return;
  RunResult known = result;
  known.result = {.placement = std::move(best->placement), .schedule = std::move(best->schedule)};
  if (run.scheduler != kBestSchedule) known.run.scheduler = run.scheduler;
  known = with_scheduler(known, known.run.scheduler, context.evaluator());
  if (known.evaluation < result.evaluation) result = std::move(known);
}

class IslandSearch {
 public:
  IslandSearch(const IslandQuestion& question, const IslandOptions& options)
      : question_(question),
        options_(options),
        run_(*question.run),
        context_(*question.context),
        problem_(question.context->problem()),
        state_(options.resumed) {}

  RunResult search() {
    order_by_scheduler(context_, run_);
    if (question_.budget.evaluations) {
      search_in_rounds();
    } else {
      search_live();
    }
    EMPLACE_CHECK(best_.has_value());
    take_incumbent(*best_, run_, context_);
    best_->bound = context_.incumbent().bound();
    return std::move(*best_);
  }

 private:
  std::string described(const IslandTask& task) const {
    dist::Writer writer;
    writer.number(static_cast<std::uint8_t>(RankTask::kIsland))
        .number<std::uint64_t>(question_.run_index)
        .number<std::uint64_t>(question_.problem_index);
    put_task(writer, task, problem_);
    return writer.take();
  }

  std::string bytes_of(const RunResult& result) const {
    dist::Writer writer;
    put(writer, result, problem_);
    return writer.take();
  }

  RunResult take_checked(dist::Reader& reader) const {
    RunResult result = take_result(reader, problem_, run_);
    reader.end();
    const Solution found{result.result.placement, result.result.schedule, result.evaluation};
    check_value(found, context_.evaluator());
    check_bound(result.bound, result.evaluation);
    return result;
  }

  // So that the incumbent knows what everybody has found and proven.
  Solution take_over(const RunResult& result) {
    Solution found{result.result.placement, result.result.schedule, result.evaluation,
                   run_.placer.key};
    context_.incumbent().hear(result.bound);
    context_.incumbent().offer(found);
    return found;
  }

  void search_live() {
    NewsExchange exchange(context_, NewsExchange::To::kOthers,
                          [this](const std::string& news) { options_.crew->tell(news); });
    const Budget& budget = question_.budget;
    dist::Job job;
    job.one_each = true;
    job.tasks = options_.crew != nullptr ? static_cast<std::size_t>(options_.crew->size()) : 1;
    job.describe = [&](std::size_t rank) {
      IslandTask task{.seed = island_seed(run_.seed, rank, 0),
                      .live = true,
                      .bound = context_.incumbent().bound()};
      if (budget.seconds) task.seconds = std::max(0.0, *budget.seconds - budget.elapsed_seconds());
      if (auto best = context_.incumbent().best()) task.starts.push_back(std::move(*best));
      return described(task);
    };
    job.here = [&](std::size_t) {
      return bytes_of(search_island(run_, run_.seed, context_, budget));
    };
    job.accept = [&](std::size_t, dist::Reader& reader) {
      RunResult result = take_checked(reader);
      take_over(result);
      merge(best_, std::move(result));
    };
    // What cannot be done here cannot be done there.
    job.failed = [&](std::size_t rank, const Error& error) {
      if (rank == 0) failure_ = error;
    };
    job.on_news = [&](dist::Reader& news) { exchange.hear(news); };
    job.on_tick = [&] { exchange.tick(); };
    job.cancelled = budget.cancelled;
    run_job(options_.crew, job);
    if (failure_) throw *failure_;
  }

  void search_in_rounds() {
    const std::size_t islands = options_.islands > 0 ? options_.islands : num_ranks();
    if (state_.elites.size() != islands) state_ = {};
    for (const Solution& elite : state_.elites) context_.incumbent().offer(elite);
    context_.evaluator().count(state_.evaluations);
    for (int round = state_.rounds_done; round < kRounds; ++round) {
      if (best_ && (question_.budget.spent(0) || context_.incumbent().optimal())) break;
      // What was cut short is done again when the search is resumed.
      if (!do_round(islands, round) || cancelled()) break;
      state_.rounds_done = round + 1;
      state_.evaluations = context_.evaluations();
      if (options_.on_round) options_.on_round(state_);
    }
    if (!best_) take_elites();
    best_->evaluations = context_.evaluations();
    best_->seconds = question_.budget.elapsed_seconds();
  }

  // Whether all of it could be done.
  bool do_round(std::size_t islands, int round) {
    std::vector<std::optional<RunResult>> results(islands);
    begin_time_of_round(round);
    const LowerBound bound = context_.incumbent().bound();
    dist::Job job;
    job.tasks = islands;
    job.describe = [&](std::size_t island) { return described(task_of(island, round, bound)); };
    job.here = [&](std::size_t island) { return bytes_of(do_here(task_of(island, round, bound))); };
    job.accept = [&](std::size_t island, dist::Reader& reader) {
      RunResult result = take_checked(reader);
      context_.evaluator().count(result.evaluations);
      results[island] = std::move(result);
    };
    job.failed = [&](std::size_t, const Error& error) { failure_ = error; };
    job.cancelled = question_.budget.cancelled;
    run_job(options_.crew, job);
    if (failure_) throw *failure_;
    bool complete = true;
    state_.elites.resize(islands);
    for (std::size_t i = 0; i < islands; ++i) {
      if (!results[i]) {
        complete = false;
        continue;
      }
      RunResult& result = *results[i];
      Solution elite = take_over(result);
      if (state_.elites[i].placement.empty() || elite.value < state_.elites[i].value) {
        state_.elites[i] = std::move(elite);
      }
      merge(best_, std::move(result));
    }
    return complete;
  }

  // All of it is known when the round begins.
  IslandTask task_of(std::size_t island, int round, const LowerBound& bound) const {
    const auto islands = static_cast<std::int64_t>(
        std::max<std::size_t>(1, options_.islands > 0 ? options_.islands : num_ranks()));
    const std::int64_t parts = islands * kRounds;
    const std::int64_t part = static_cast<std::int64_t>(island) * kRounds + round;
    const std::int64_t all = *question_.budget.evaluations;
    IslandTask task{.seed = island_seed(run_.seed, island, round),
                    .round = round,
                    .proves = island == 0,
                    .bound = bound};
    task.evaluations = std::max<std::int64_t>(1, all / parts + (part < all % parts ? 1 : 0));
    task.seconds = seconds_of(island, static_cast<std::size_t>(islands));
    if (state_.elites.empty()) return task;
    const auto best =
        std::min_element(state_.elites.begin(), state_.elites.end(),
                         [](const Solution& a, const Solution& b) { return a.value < b.value; });
    const std::size_t neighbour = (island + state_.elites.size() - 1) % state_.elites.size();
    for (const Solution* start : {&*best, &state_.elites[island], &state_.elites[neighbour]}) {
      const bool there =
          std::any_of(task.starts.begin(), task.starts.end(),
                      [&](const Solution& other) { return other.placement == start->placement; });
      if (!there && !start->placement.empty()) task.starts.push_back(*start);
    }
    return task;
  }

  // Rounds are parts of one search, so that none may take the time of those after it.
  void begin_time_of_round(int round) {
    const Budget& budget = question_.budget;
    if (!budget.seconds) return;
    const double now = budget.elapsed_seconds();
    round_end_ = now + std::max(0.0, *budget.seconds - now) / (kRounds - round);
  }

  std::optional<double> seconds_of(std::size_t island, std::size_t islands) const {
    if (!question_.budget.seconds) return std::nullopt;
    const double left = std::max(0.0, round_end_ - question_.budget.elapsed_seconds());
    return seconds_of_task(left, island, islands, options_.crew);
  }

  bool cancelled() const {
    return question_.budget.cancelled != nullptr && question_.budget.cancelled->load();
  }

  std::size_t num_ranks() const {
    return options_.crew != nullptr ? static_cast<std::size_t>(options_.crew->size()) : 1;
  }

  RunResult do_here(const IslandTask& task) const;

  // Of a run that was resumed when it was done.
  void take_elites() {
    const auto best =
        std::min_element(state_.elites.begin(), state_.elites.end(),
                         [](const Solution& a, const Solution& b) { return a.value < b.value; });
    RunResult result{.run = run_,
                     .result = {.placement = best->placement, .schedule = best->schedule},
                     .evaluation = best->value,
                     .bound = context_.incumbent().bound()};
    best_ = std::move(result);
  }

  const IslandQuestion& question_;
  const IslandOptions& options_;
  const PlacerRun& run_;
  PlaceContext& context_;
  const Problem& problem_;
  IslandState state_;
  double round_end_ = 0;  // where there is a limit, in seconds of the budget
  std::optional<RunResult> best_;
  std::optional<Error> failure_;
};

// The starts that everybody has, and those of the task.
std::vector<Solution> all_starts(const PlaceContext& context, const IslandTask& task) {
  std::vector<Solution> starts = task.starts;
  starts.insert(starts.end(), context.starts().begin(), context.starts().end());
  return starts;
}

RunResult search_round(const PlacerRun& run, const IslandTask& task, const PlaceContext& whole,
                       const std::atomic<bool>* cancelled, int threads) {
  PlaceContext context(whole.evaluator(), whole.objective(), all_starts(whole, task));
  context.incumbent().hear(task.bound);
  if (!task.proves) context.leave_bounds_to_others();
  context.set_part({.index = task.round, .count = kRounds});
  Budget budget;
  budget.seconds = task.seconds;
  budget.evaluations = task.evaluations;
  budget.cancelled = cancelled;
  budget.threads = threads;
  return search_island(run, task.seed, context, budget);
}

RunResult IslandSearch::do_here(const IslandTask& task) const {
  return search_round(run_, task, context_, question_.budget.cancelled, question_.budget.threads);
}

}  // namespace

void order_by_scheduler(PlaceContext& context, const PlacerRun& run) {
  context.order_by(run.scheduler == kBestSchedule ? std::string(kOwnSchedule) : run.scheduler);
}

RunResult run_islands(const IslandQuestion& question, const IslandOptions& options) {
  return IslandSearch(question, options).search();
}

std::string do_island_task(dist::Reader& reader, dist::Line& line, const FindIsland& find,
                           int threads) {
  const auto run_index = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const auto problem_index = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const IslandPlace place = find(run_index, problem_index);
  PlaceContext& context = *place.context;
  order_by_scheduler(context, *place.run);
  const IslandTask task = take_task(reader, context.problem());
  std::optional<RunResult> result;
  if (task.live) {
    if (!task.proves) context.leave_bounds_to_others();
    context.incumbent().hear(task.bound);
    for (const Solution& start : task.starts) context.incumbent().offer(start);
    NewsExchange exchange(context, NewsExchange::To::kFirst,
                          [&](const std::string& news) { line.tell(news); });
    line.listen([&](dist::Reader& news) { exchange.hear(news); }, [&] { exchange.tick(); });
    const struct Hush {
      dist::Line& line;
      ~Hush() { line.hush(); }
    } hush{line};
    Budget budget;
    budget.seconds = task.seconds;
    budget.cancelled = &line.stopped();
    budget.threads = threads;
    result = search_island(*place.run, task.seed, context, budget);
  } else {
    result = search_round(*place.run, task, context, &line.stopped(), threads);
  }
  dist::Writer writer;
  put(writer, *result, context.problem());
  return writer.take();
}

}  // namespace emplace

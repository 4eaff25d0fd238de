// Rounds: with I islands and R rounds, a budget of E evaluations is cut into I * R parts. A round
// of island i begins from what it has itself, what its neighbour i - 1 has and the best of all,
// which are known when the round before is over on all islands, with random numbers of (seed, i,
// round), and does its quarter of one search (SearchPart): it does not look for starts again, and
// cools on from where the round before has ended. So a task is all that its outcome depends on, and
// which rank does it, when and how often makes no difference.
//
// What a round finds on its way is offered to the whole search's incumbent, for those who look at
// it and for checkpoints: rounds do not read that, and the answer is taken from what the rounds
// have ended with. A checkpoint may know of something better where a search was cut short alone.
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
#include "run/ticker.h"

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

void take_better(RunResult& result, const PlacerRun& run, Evaluator& evaluator,
                 const Solution& other) {
  if (!(other.value < result.evaluation)) return;
  RunResult known = result;
  known.result = {.placement = other.placement, .schedule = other.schedule};
  if (run.scheduler != kBestSchedule) known.run.scheduler = run.scheduler;
  known = with_scheduler(known, known.run.scheduler, evaluator);
  if (known.evaluation < result.evaluation) result = std::move(known);
}

// Of those that there are: an island that was cut short in its first round has none.
const Solution& best_elite(const std::vector<Solution>& elites) {
  return *std::min_element(elites.begin(), elites.end(), [](const Solution& a, const Solution& b) {
    if (a.placement.empty() || b.placement.empty()) return !a.placement.empty();
    return a.value < b.value;
  });
}

// Searches for streams have estimates, which may be below what they stand for.
void offer_exactly_here(PlaceContext& context, Solution solution) {
  context.objective().match([](const StepTime&) {},
                            [&](const StreamPeriod&) {
                              solution.value = context.evaluator().evaluate_exactly(
                                  solution.placement, solution.schedule);
                              context.evaluator().count(-1);
                            });
  context.incumbent().offer(std::move(solution));
}

// While it lives, the whole search knows what a round here has found; and what it has proven, where
// that is one round's alone.
class RoundNews {
 public:
  RoundNews(PlaceContext& whole, const PlaceContext& round, bool bounds)
      : whole_(whole), round_(round), bounds_(bounds), ticker_([this] { tell(); }) {}

 private:
  void tell() {
    if (bounds_) whole_.incumbent().hear(round_.incumbent().bound());
    const std::uint64_t version = round_.incumbent().version();
    if (version == std::exchange(told_, version)) return;
    if (auto best = round_.incumbent().best()) offer_exactly_here(whole_, std::move(*best));
  }

  PlaceContext& whole_;
  const PlaceContext& round_;
  bool bounds_;
  std::uint64_t told_ = 0;
  Ticker ticker_;  // whose thread ends first
};

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
    const bool settled = question_.budget.evaluations ? search_in_rounds() : search_live();
    EMPLACE_CHECK(best_.has_value());
    // Of a lost rank too, which has told of it; unless the answer is to be the same whatever was
    // lost, and heard meanwhile.
    const std::optional<Solution> known = context_.incumbent().best();
    if (known && !settled) take_better(*best_, run_, context_.evaluator(), *known);
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

  // Whether what the answer is taken from does not depend on anybody's speed: never.
  bool search_live() {
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
    return false;
  }

  // The same: unless it was cut short.
  bool search_in_rounds() {
    const std::size_t islands = num_islands();
    if (state_.elites.size() != islands) state_ = {};
    for (const Solution& elite : state_.elites) context_.incumbent().offer(elite);
    context_.evaluator().count(state_.evaluations);
    bool complete = true;
    for (int round = has_rounds(islands) ? state_.rounds_done : kRounds; round < kRounds; ++round) {
      if (best_ && (question_.budget.spent(0) || context_.incumbent().optimal())) break;
      complete = do_round(islands, round) && !cancelled();
      // What was cut short is done again when the search is resumed.
      if (!complete) break;
      state_.rounds_done = round + 1;
      state_.evaluations = context_.evaluations();
      if (options_.on_round) options_.on_round(state_);
    }
    if (!best_) take_elites();
    const std::int64_t evaluations = context_.evaluations();
    // Of a round before it was resumed.
    if (!state_.elites.empty() && !best_elite(state_.elites).placement.empty()) {
      take_better(*best_, run_, context_.evaluator(), best_elite(state_.elites));
    }
    best_->evaluations = evaluations;
    best_->seconds = question_.budget.elapsed_seconds();
    return complete && !cancelled() && !question_.budget.seconds;
  }

  std::int64_t evaluations_left() const {
    return *question_.budget.evaluations - state_.evaluations_before;
  }
  // One that was done before under another budget may leave less than an evaluation for each.
  bool has_rounds(std::size_t islands) const {
    return state_.elites.empty() ||
           evaluations_left() >= static_cast<std::int64_t>(islands) * kRounds;
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
    job.on_news = [&](dist::Reader& news) { hear_of_round(news); };
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

  // A bound is taken when the round is over, since which rank proves it first, and how, is no
  // part of the answer.
  void hear_of_round(dist::Reader& news) {
    std::optional<Solution> found;
    if (news.flag()) found = take_solution(news, problem_);
    take_bound(news);
    news.end();
    if (!found) return;
    const std::optional<Evaluation> known = context_.incumbent().value();
    if (known && !(found->value < *known)) return;
    check_value(*found, context_.evaluator());
    offer_exactly_here(context_, std::move(*found));
  }

  // All of it is known when the round begins.
  IslandTask task_of(std::size_t island, int round, const LowerBound& bound) const {
    const auto islands = static_cast<std::int64_t>(num_islands());
    const std::int64_t parts = islands * kRounds;
    const std::int64_t part = static_cast<std::int64_t>(island) * kRounds + round;
    const std::int64_t all = evaluations_left();
    IslandTask task{.seed = island_seed(seed_of_rounds(), island, round),
                    .round = round,
                    .proves = island == 0,
                    .bound = bound};
    task.evaluations = std::max<std::int64_t>(1, all / parts + (part < all % parts ? 1 : 0));
    task.seconds = seconds_of(island, static_cast<std::size_t>(islands));
    if (state_.elites.empty()) return task;
    const Solution& best = best_elite(state_.elites);
    const std::size_t neighbour = (island + state_.elites.size() - 1) % state_.elites.size();
    for (const Solution* start : {&best, &state_.elites[island], &state_.elites[neighbour]}) {
      const bool there =
          std::any_of(task.starts.begin(), task.starts.end(),
                      [&](const Solution& other) { return other.placement == start->placement; });
      if (!there && !start->placement.empty()) task.starts.push_back(*start);
    }
    return task;
  }

  // One that goes on under another budget must not try again what it has tried.
  std::uint64_t seed_of_rounds() const {
    if (state_.evaluations_before == 0) return run_.seed;
    return Rng(run_.seed).split(static_cast<std::uint64_t>(state_.evaluations_before)).next();
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

  std::size_t num_islands() const {
    return std::max<std::size_t>(1, options_.islands > 0 ? options_.islands : num_ranks());
  }

  RunResult do_here(const IslandTask& task) const;

  // Of a run that was resumed when it was done.
  void take_elites() {
    const Solution& best = best_elite(state_.elites);
    RunResult result{.run = run_,
                     .result = {.placement = best.placement, .schedule = best.schedule},
                     .evaluation = best.value,
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

// Of its own: nothing that others find meanwhile reaches a round.
std::unique_ptr<PlaceContext> context_of_round(const PlaceContext& whole, const IslandTask& task) {
  auto context =
      std::make_unique<PlaceContext>(whole.evaluator(), whole.objective(), all_starts(whole, task));
  context->incumbent().hear(task.bound);
  if (!task.proves) context->leave_bounds_to_others();
  context->set_part({.index = task.round, .count = kRounds});
  return context;
}

Budget budget_of(const IslandTask& task, const std::atomic<bool>* cancelled, int threads) {
  Budget budget;
  budget.seconds = task.seconds;
  budget.evaluations = task.evaluations;
  budget.cancelled = cancelled;
  budget.threads = threads;
  return budget;
}

RunResult IslandSearch::do_here(const IslandTask& task) const {
  const std::unique_ptr<PlaceContext> own = context_of_round(context_, task);
  const RoundNews news(context_, *own, task.proves);
  const Budget& whole = question_.budget;
  return search_island(run_, task.seed, *own, budget_of(task, whole.cancelled, whole.threads));
}

}  // namespace

void order_by_scheduler(PlaceContext& context, const PlacerRun& run) {
  context.order_by(run.scheduler == kBestSchedule ? std::string(kOwnSchedule) : run.scheduler);
}

void check_islands(std::size_t islands, std::int64_t evaluations) {
  const auto least = static_cast<std::int64_t>(islands) * kRounds;
  if (evaluations >= least) return;
  fail_input(
      "{} islands, each of which searches {} times, share {} evaluations; expected {} or "
      "more, or fewer islands",
      islands, kRounds, evaluations, least);
}

RunResult run_islands(const IslandQuestion& question, const IslandOptions& options) {
  return IslandSearch(question, options).search();
}

std::string do_island_task(dist::Reader& reader, dist::Line& line, const FindIsland& find,
                           int threads) {
  const auto run_index = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const auto problem_index = static_cast<std::size_t>(reader.number<std::uint64_t>());
  const IslandPlace place = find(run_index, problem_index);
  PlaceContext& whole = *place.context;
  order_by_scheduler(whole, *place.run);
  const IslandTask task = take_task(reader, whole.problem());
  std::unique_ptr<PlaceContext> round;
  if (!task.live) {
    round = context_of_round(whole, task);
  } else {
    if (!task.proves) whole.leave_bounds_to_others();
    whole.incumbent().hear(task.bound);
    for (const Solution& start : task.starts) whole.incumbent().offer(start);
  }
  PlaceContext& context = round != nullptr ? *round : whole;
  NewsExchange exchange(context, NewsExchange::To::kFirst,
                        [&](const std::string& news) { line.tell(news); });
  line.listen(
      [&](dist::Reader& news) {
        if (task.live) exchange.hear(news);
      },
      [&] { exchange.tick(); });
  const struct Hush {
    dist::Line& line;
    ~Hush() { line.hush(); }
  } hush{line};
  const RunResult result =
      search_island(*place.run, task.seed, context, budget_of(task, &line.stopped(), threads));
  dist::Writer writer;
  put(writer, result, context.problem());
  return writer.take();
}

}  // namespace emplace

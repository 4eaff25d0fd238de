#include "run/search_checkpoint.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/fingerprint.h"

#include "run/rank_messages.h"

namespace emplace {
namespace {

constexpr std::string_view kCheckpointFormat = "emplace.search-checkpoint/3";

// At the end of the file.
std::uint64_t checksum_of(std::string_view bytes) {
  return Fingerprint().add(bytes).value();
}

void require_checksum(std::string_view bytes) {
  constexpr std::size_t kSize = sizeof(std::uint64_t);
  if (bytes.size() >= kSize) {
    dist::Reader last(bytes.substr(bytes.size() - kSize));
    if (last.number<std::uint64_t>() == checksum_of(bytes.substr(0, bytes.size() - kSize))) return;
  }
  fail_input("is damaged, or not all of it is there");
}

void put_kept(dist::Writer& writer, const SearchCheckpoint::Kept& kept, const Problem& problem) {
  writer.flag(kept.best.has_value());
  if (kept.best) put(writer, *kept.best, problem);
  put(writer, kept.bound);
  writer.number<std::int32_t>(kept.islands.rounds_done);
  writer.number(kept.islands.evaluations).number(kept.islands.evaluations_before);
  writer.number<std::uint64_t>(kept.islands.elites.size());
  for (const Solution& elite : kept.islands.elites) put(writer, elite, problem);
}

SearchCheckpoint::Kept take_kept(dist::Reader& reader, const Problem& problem) {
  SearchCheckpoint::Kept kept;
  if (reader.flag()) kept.best = take_solution(reader, problem);
  kept.bound = take_bound(reader);
  kept.islands.rounds_done = reader.number<std::int32_t>();
  kept.islands.evaluations = reader.number<std::int64_t>();
  kept.islands.evaluations_before = reader.number<std::int64_t>();
  if (kept.islands.rounds_done < 0 || kept.islands.evaluations < 0) {
    fail_input("says that {} rounds and {} evaluations are done; expected 0 or more",
               kept.islands.rounds_done, kept.islands.evaluations);
  }
  if (kept.islands.evaluations_before < 0 ||
      kept.islands.evaluations_before > kept.islands.evaluations) {
    fail_input("says that {} of {} evaluations are of another budget",
               kept.islands.evaluations_before, kept.islands.evaluations);
  }
  const std::size_t elites = reader.count(sizeof(std::uint64_t));
  for (std::size_t i = 0; i < elites; ++i) {
    kept.islands.elites.push_back(take_solution(reader, problem));
  }
  return kept;
}

}  // namespace

SearchCheckpoint::SearchCheckpoint(const LearningSettings& settings, const SubsetProblems& problems,
                                   const PlacerRun& run, const Islands& islands)
    : problems_(problems),
      run_(run),
      islands_(islands),
      file_(settings),
      kept_(problems.list().size()) {
  if (!settings.resume) return;
  with_context(file_.path(), [&] { read(file_.resumed()); });
}

std::string SearchCheckpoint::header() const {
  dist::Writer writer;
  writer.text(kCheckpointFormat).number(fingerprint(problems_));
  writer.text(run_.placer.to_string()).text(run_.scheduler).number(run_.seed);
  writer.number<std::uint64_t>(islands_.count).number(islands_.evaluations.value_or(-1));
  return writer.take();
}

void SearchCheckpoint::read(const std::string& bytes) {
  dist::Reader reader(bytes);
  if (reader.text() != kCheckpointFormat) fail_input("expected the checkpoint of a search");
  require_checksum(bytes);
  if (reader.number<std::uint64_t>() != fingerprint(problems_)) {
    fail_input("is the checkpoint of another model, cluster or objective");
  }
  const std::string placer = reader.text();
  const std::string scheduler = reader.text();
  const auto seed = reader.number<std::uint64_t>();
  const auto islands = reader.number<std::uint64_t>();
  const auto evaluations = reader.number<std::int64_t>();
  const auto kind_of_budget = [](bool counted) { return counted ? "evaluations" : "time"; };
  const bool was_counted = evaluations >= 0;
  if (was_counted != islands_.evaluations.has_value()) {
    fail_input("was written under a budget of {}; expected one of {}", kind_of_budget(was_counted),
               kind_of_budget(!was_counted));
  }
  const bool any_number =
      !islands_.asked_for && islands_.count > 0 && islands > 0 && islands <= kMostIslands;
  if (any_number) islands_.count = islands;
  if (placer != run_.placer.to_string() || scheduler != run_.scheduler || seed != run_.seed ||
      islands != islands_.count) {
    fail_input(
        "is the checkpoint of {} with {} order, seed {} and {} islands; expected {}, {}, {} and {}",
        placer, scheduler, seed, islands, run_.placer.to_string(), run_.scheduler, run_.seed,
        islands_.count);
  }
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    kept_[i] = take_kept(reader, problems_.list()[i].simulator->problem());
    const std::size_t elites = kept_[i].islands.elites.size();
    if (elites > 0 && elites != islands) {
      fail_input("has the best of {} islands; expected {}", elites, islands);
    }
    check(kept_[i], problems_.list()[i]);
    if (was_counted && evaluations != *islands_.evaluations) {
      begin_rounds(kept_[i], problems_.list()[i]);
    }
  }
  reader.number<std::uint64_t>();  // the sum
  reader.end();
}

// What the program that wrote it may have computed in another way.
void SearchCheckpoint::check(const Kept& kept, const SubsetProblem& problem) const {
  if (kept.best) check_bound(kept.bound, kept.best->value);
  PlaceContext context(problem.simulator, problems_.objective());
  order_by_scheduler(context, run_);
  if (kept.best) check_value(*kept.best, context.evaluator());
  for (const Solution& elite : kept.islands.elites) {
    check_value(elite, context.evaluator());
  }
}

// With what is known, for what another budget leaves. The best may be of a round that was not over.
void SearchCheckpoint::begin_rounds(Kept& kept, const SubsetProblem& problem) const {
  IslandState& state = kept.islands;
  state.rounds_done = 0;
  state.evaluations_before = state.evaluations;
  if (!kept.best) return;
  Solution best = *kept.best;
  PlaceContext context(problem.simulator, problems_.objective());
  order_by_scheduler(context, run_);
  best.value = context.evaluator().evaluate_exactly(best.placement, best.schedule);
  if (state.elites.empty()) {
    state.elites.assign(islands_.count, best);
    return;
  }
  const bool is_best = std::all_of(state.elites.begin(), state.elites.end(),
                                   [&](const Solution& elite) { return best.value < elite.value; });
  if (is_best) state.elites.front() = std::move(best);
}

void SearchCheckpoint::note_round(std::size_t problem, const IslandState& state) {
  {
    const std::lock_guard lock(mutex_);
    kept_[problem].islands = state;
  }
  save();
}

void SearchCheckpoint::take_incumbent(std::size_t problem, const PlaceContext& context) {
  std::optional<Solution> best = context.incumbent().best();
  const std::lock_guard lock(mutex_);
  Kept& kept = kept_[problem];
  if (best && (!kept.best || best->value < kept.best->value)) kept.best = std::move(best);
  kept.bound = context.incumbent().bound();
}

void SearchCheckpoint::save() {
  const std::lock_guard lock(mutex_);
  dist::Writer writer;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    put_kept(writer, kept_[i], problems_.list()[i].simulator->problem());
  }
  const std::string bytes = header() + writer.take();
  file_.save(bytes + dist::Writer().number(checksum_of(bytes)).take());
}

SearchCheckpoint::Watch::Watch(SearchCheckpoint& owner, std::size_t problem,
                               const PlaceContext& context)
    : owner_(owner), problem_(problem), context_(context), thread_([this] { work(); }) {}

SearchCheckpoint::Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_one();
  thread_.join();
  owner_.take_incumbent(problem_, context_);
  owner_.save();
}

void SearchCheckpoint::Watch::work() {
  const std::chrono::duration<double> interval(owner_.file_.seconds());
  using Known = std::pair<std::uint64_t, Nanoseconds>;
  Known saved;
  std::unique_lock lock(mutex_);
  while (!ending_changed_.wait_for(lock, interval, [&] { return ending_; })) {
    const Known known{context_.incumbent().version(), context_.incumbent().bound().step};
    if (known == saved) continue;
    saved = known;
    owner_.take_incumbent(problem_, context_);
    owner_.save();
  }
}

}  // namespace emplace

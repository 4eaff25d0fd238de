// emplace/simulate.h and emplace/place.h over run and report.
#include <utility>

#include <emplace/place.h>

#include "base/error.h"
#include "base/parallel.h"

#include "placers/all.h"

#include "tensor/methods/all.h"

#include "api/own_placer.h"
#include "io/trace_json.h"
#include "report/assessment_report.h"
#include "report/explanation.h"
#include "run/portfolio.h"
#include "run/problem_request.h"
#include "run/ticker.h"

namespace emplace {

struct Answer::State {
  Assessment assessment;
  RunResult run;
  std::vector<RunResult> tried;
  bool found = true;  // by a placer, rather than given
};

namespace {

std::vector<MethodInfo> copies(const std::vector<const MethodInfo*>& infos) {
  std::vector<MethodInfo> result;
  for (const MethodInfo* info : infos) result.push_back(*info);
  return result;
}

std::vector<Solution> solutions_of(const std::vector<SavedPlacement>& starts,
                                   const Problem& problem) {
  std::vector<Solution> solutions;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::string name = fmt::format("start {}", i + 1);
    with_context(name, [&] { check_placement(problem, starts[i].placement); });
    solutions.push_back({starts[i].placement, starts[i].schedule, {}, name});
  }
  return solutions;
}

StepTerms terms_of(const Problem& problem, std::int64_t samples) {
  StepTerms terms{.work = work_of(problem.graph())};
  terms.work.samples = samples;
  terms.work.tokens = count_tokens(problem.graph());
  return terms;
}

SubsetProblems problems_of(const std::shared_ptr<const Problem>& problem,
                           const PlaceOptions& options) {
  SubsetProblems problems(problem, options.objective, options.most_devices,
                          solutions_of(options.starts, *problem),
                          options.use_cpu ? CpuUse::kAlways : CpuUse::kIfNeeded);
  problems.set_terms(terms_of(*problem, options.samples));
  if (problems.why_nothing_fits()) {
    fail_input("no placement of '{}' fits: {}", problem->graph().name(),
               *problems.why_nothing_fits());
  }
  return problems;
}

std::vector<PlacerRun> runs_of(const PlaceOptions& options, int seeds) {
  std::vector<PlacerRun> runs;
  if (!options.placer.empty() || options.functions.empty()) {
    runs = make_runs(options.placer, options.scheduler, options.seed, seeds);
  }
  const std::vector<PlacerRun> own = own_runs(options, seeds);
  runs.insert(runs.end(), own.begin(), own.end());
  return runs;
}

PortfolioResult search(const SubsetProblems& problems, const PlaceOptions& options, TimeFor time,
                       int seeds, bool best_order) {
  PlaceOptions asked = options;
  if (best_order && asked.scheduler == "all") asked.scheduler = std::string(kBestSchedule);
  Portfolio portfolio(problems, {.runs = runs_of(asked, seeds),
                                 .budget = options.budget,
                                 .time_for = time,
                                 .learning = options.learning});
  const Ticker ticker(options.on_progress, [&] { return portfolio.status().line(); });
  return portfolio.run();
}

// What is wrong beside the placement, such as a checkpoint that could not be written.
void add_warnings(const PortfolioResult& found, RunResult& result) {
  std::vector<std::string>& notes = result.result.notes;
  notes.insert(notes.end(), found.warnings.begin(), found.warnings.end());
}

}  // namespace

std::vector<MethodInfo> list_placers() {
  return copies(all_placers().list());
}

std::vector<MethodInfo> list_partition_methods() {
  return copies(all_partition_methods().list());
}

Timeline simulate(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                  const Schedule& schedule) {
  check_placement(*problem, placement);
  return Simulator(problem).run(placement, schedule);
}

std::vector<StepValue> simulate_all(const std::shared_ptr<const Problem>& problem,
                                    const std::vector<Placement>& placements, int threads) {
  for (std::size_t i = 0; i < placements.size(); ++i) {
    with_context(fmt::format("placement {}", i), [&] { check_placement(*problem, placements[i]); });
  }
  Evaluator evaluator(problem);
  std::vector<StepValue> values(placements.size());
  parallel_for(placements.size(), threads, [&](std::size_t i) {
    const Evaluation value = evaluator.evaluate(placements[i]);
    values[i] = {value.step, value.overflow};
  });
  return values;
}

SavedPlacement read_placement(const std::string& path, const Problem& problem) {
  PlacementFile file = load_placement(path, problem);
  return {std::move(file.placement), std::move(file.schedule)};
}

std::string trace_json(const Problem& problem, const Placement& placement,
                       const Timeline& timeline) {
  return write_trace_json(problem, placement, timeline);
}

Answer place(const std::shared_ptr<const Problem>& problem, const PlaceOptions& options) {
  const SubsetProblems problems = problems_of(problem, options);
  PortfolioResult found = search(problems, options, TimeFor::kAllRuns, 1, true);
  RunResult best = found.best();
  add_warnings(found, best);
  return Answer(std::make_shared<const Answer::State>(Answer::State{
      assess(assessor_of(problems, found), problems, best), best, std::move(found.results)}));
}

Answer assess(const std::shared_ptr<const Problem>& problem, const Placement& placement,
              const Schedule& schedule, const Objective& objective, std::int64_t samples) {
  check_placement(*problem, placement);
  const Assessor assessor(std::make_shared<const Simulator>(problem), objective, {},
                          terms_of(*problem, samples));
  return Answer(std::make_shared<const Answer::State>(
      Answer::State{assessor.assess(placement, schedule), {}, {}, false}));
}

std::vector<Answer> compare(const std::shared_ptr<const Problem>& problem,
                            const CompareOptions& options) {
  const SubsetProblems problems = problems_of(problem, options);
  PortfolioResult found =
      search(problems, options, TimeFor::kEachRun, options.seeds, options.best_orders);
  if (options.best_orders) keep_best_orders(found.results);
  const Assessor assessor = assessor_of(problems, found);
  std::vector<Answer> answers;
  for (RunResult& result : found.results) {
    if (answers.empty()) add_warnings(found, result);
    Assessment assessment = assess(assessor, problems, result);
    answers.emplace_back(
        std::make_shared<const Answer::State>(Answer::State{std::move(assessment), result, {}}));
  }
  return answers;
}

const Placement& Answer::placement() const {
  return state_->assessment.placement;
}
const Schedule& Answer::schedule() const {
  return state_->assessment.schedule;
}
const Timeline& Answer::timeline() const {
  return state_->assessment.timeline;
}
Nanoseconds Answer::time() const {
  return state_->assessment.time();
}
bool Answer::fits() const {
  return state_->assessment.fits();
}
const LowerBound& Answer::bound() const {
  return state_->assessment.bound;
}
double Answer::gap() const {
  return state_->assessment.ratio_to_bound() - 1;
}
bool Answer::optimal() const {
  return state_->assessment.optimal();
}
Bytes Answer::used(DeviceId device) const {
  return state_->assessment.used(device);
}
Nanoseconds Answer::latency() const {
  const auto& stream = state_->assessment.throughput;
  return stream && stream->in_flight > 0 ? stream->latency : timeline().step;
}
int Answer::in_flight() const {
  const auto& stream = state_->assessment.throughput;
  return stream ? stream->in_flight : 1;
}
std::optional<double> Answer::samples_per_second() const {
  return state_->assessment.rates.samples_per_second;
}
std::optional<double> Answer::tokens_per_second() const {
  return state_->assessment.rates.tokens_per_second;
}
std::optional<double> Answer::utilisation() const {
  return state_->assessment.rates.utilisation;
}
std::string Answer::placer() const {
  return state_->run.run.placer.to_string();
}
std::uint64_t Answer::seed() const {
  return state_->run.run.seed;
}
std::int64_t Answer::evaluations() const {
  return state_->run.evaluations;
}
double Answer::search_seconds() const {
  return state_->run.seconds;
}
const std::vector<std::string>& Answer::notes() const {
  return state_->run.result.notes;
}

std::string Answer::to_text() const {
  return emplace::to_text(state_->assessment);
}

std::string Answer::explanation() const {
  return emplace::to_text(explain(state_->assessment, state_->tried), state_->assessment);
}

std::string Answer::to_json() const {
  const Explanation explanation = explain(state_->assessment, state_->tried);
  return emplace::to_json(state_->assessment, state_->found ? &state_->run : nullptr, &explanation);
}

std::string Answer::placement_json() const {
  return emplace::placement_json(state_->assessment, state_->run);
}

std::string Answer::trace_json() const {
  return emplace::trace_json(state_->assessment);
}

}  // namespace emplace

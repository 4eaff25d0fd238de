#include "run/rank_messages.h"

#include <utility>

#include "base/error.h"
#include "base/fingerprint.h"

#include "cost/problem_fingerprint.h"

namespace emplace {
namespace {

Schedule take_schedule(dist::Reader& reader, const Problem& problem) {
  Schedule schedule{reader.numbers<std::int64_t>()};
  if (!schedule.fifo() && schedule.priorities.size() != problem.num_ops()) {
    fail_input("an order is of {} ops; expected {}", schedule.priorities.size(), problem.num_ops());
  }
  return schedule;
}

}  // namespace

std::uint64_t fingerprint(const SubsetProblems& problems) {
  Fingerprint all;
  add_problem(all, problems.whole()->problem());
  all.add(problems.list().size());
  for (const SubsetProblem& subset : problems.list()) {
    all.add(subset.devices.size());
    for (const DeviceId device : subset.devices) all.add(device);
  }
  problems.objective().match([&](const StepTime&) { all.add(0); },
                             [&](const StreamPeriod& stream) {
                               all.add(1).add(static_cast<std::uint64_t>(stream.overlap));
                             });
  return all.value();
}

std::uint64_t fingerprint(const SubsetProblems& problems, const std::vector<PlacerRun>& runs,
                          bool measures) {
  Fingerprint all;
  all.add(fingerprint(problems)).add(measures ? 1 : 0).add(problems.starts().size());
  for (const Solution& start : problems.starts()) {
    for (const DeviceId device : start.placement) all.add(device);
    all.add(start.schedule.priorities.size());
    for (const std::int64_t priority : start.schedule.priorities) {
      all.add(static_cast<std::uint64_t>(priority));
    }
  }
  for (const PlacerRun& run : runs) {
    all.add(run.placer.to_string()).add(run.scheduler).add(run.seed);
  }
  return all.value();
}

void put(dist::Writer& writer, const Solution& solution, const Problem& problem) {
  put_placement(writer, solution.placement, problem);
  writer.numbers(solution.schedule.priorities);
  put(writer, solution.value);
  writer.text(solution.origin);
}

Solution take_solution(dist::Reader& reader, const Problem& problem) {
  Solution solution;
  solution.placement = take_placement(reader, problem);
  solution.schedule = take_schedule(reader, problem);
  solution.value = take_value(reader);
  solution.origin = reader.text();
  return solution;
}

void put(dist::Writer& writer, const LowerBound& bound) {
  writer.number(bound.step).text(bound.reason);
}

LowerBound take_bound(dist::Reader& reader) {
  LowerBound bound;
  bound.step = reader.number<Nanoseconds>();
  bound.reason = reader.text();
  if (bound.step < 0) fail_input("a bound is negative");
  return bound;
}

void put(dist::Writer& writer, const RunResult& result, const Problem& problem) {
  writer.text(result.run.scheduler);
  put_placement(writer, result.result.placement, problem);
  writer.numbers(result.result.schedule.priorities);
  writer.number<std::uint64_t>(result.result.notes.size());
  for (const std::string& note : result.result.notes) writer.text(note);
  put(writer, result.evaluation);
  put(writer, result.bound);
  writer.number(result.evaluations).number(result.seconds);
}

RunResult take_result(dist::Reader& reader, const Problem& problem, const PlacerRun& run) {
  RunResult result{.run = run, .result = {}, .evaluation = {}, .bound = {}};
  result.run.scheduler = reader.text();
  result.result.placement = take_placement(reader, problem);
  result.result.schedule = take_schedule(reader, problem);
  const std::size_t notes = reader.count(sizeof(std::uint64_t));
  for (std::size_t i = 0; i < notes; ++i) result.result.notes.push_back(reader.text());
  result.evaluation = take_value(reader);
  result.bound = take_bound(reader);
  result.evaluations = reader.number<std::int64_t>();
  result.seconds = reader.number<double>();
  return result;
}

void check_value(const Solution& solution, Evaluator& evaluator) {
  const bool exact =
      evaluator.evaluate_exactly(solution.placement, solution.schedule) == solution.value;
  // Where streams are searched by an estimate.
  const bool estimated =
      !exact && evaluator.evaluate(solution.placement, solution.schedule) == solution.value;
  evaluator.count(-(exact ? 1 : 2));
  if (exact || estimated) return;
  fail_input("it values a placement at {} ns, which takes another time here", solution.value.step);
}

void check_bound(const LowerBound& bound, const Evaluation& value) {
  if (!value.fits() || bound.step <= value.step) return;
  fail_input("its bound, {} ns, is above a placement that takes {} ns", bound.step, value.step);
}

}  // namespace emplace

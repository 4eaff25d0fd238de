#include "run/rank_valuers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

#include "run/rank_messages.h"

namespace emplace {
namespace {

// Of each rank, so that a slow one does not keep the others waiting.
constexpr std::size_t kTasksOfARank = 3;
// How fast the estimate of an evaluation's time follows.
constexpr double kFollow = 0.3;

std::vector<ValuedSample> value_all(Evaluator& evaluator, const std::vector<Placement>& placements,
                                    std::size_t first, std::size_t count, bool with_starts,
                                    bool all_linked, int threads) {
  std::vector<ValuedSample> samples(count);
  parallel_for(count, threads, [&](std::size_t i) {
    samples[i] = value_sample(evaluator, placements[first + i], with_starts, all_linked);
  });
  return samples;
}

std::string bytes_of_samples(const std::vector<ValuedSample>& samples) {
  dist::Writer writer;
  for (const ValuedSample& sample : samples) {
    writer.flag(sample.valid);
    put(writer, sample.value);
    writer.numbers(sample.starts);
  }
  return writer.take();
}

}  // namespace

RankValuers::RankValuers(dist::Crew& crew, std::size_t run_index, std::size_t problem_index,
                         PlaceContext& context, double least_seconds)
    : crew_(crew),
      run_index_(run_index),
      problem_index_(problem_index),
      context_(context),
      least_seconds_(least_seconds),
      all_linked_(context.problem().cluster().fully_linked()) {}

std::vector<ValuedSample> RankValuers::value(const std::vector<Placement>& placements,
                                             bool with_starts, int threads) {
  const std::lock_guard lock(one_at_a_time_);
  const std::size_t all = placements.size();
  const double alone = seconds_each_ * static_cast<double>(all) / threads;
  const bool too_short = seconds_each_ >= 0 && alone < least_seconds_;
  if (all < 2 || too_short) return value_here(placements, 0, all, with_starts, threads);
  const std::size_t parts = std::min(all, kTasksOfARank * static_cast<std::size_t>(crew_.size()));
  const auto begin_of = [&](std::size_t task) { return task * all / parts; };
  const auto count_of = [&](std::size_t task) { return begin_of(task + 1) - begin_of(task); };
  std::vector<ValuedSample> samples(all);
  dist::Job job;
  job.tasks = parts;
  job.describe = [&](std::size_t task) {
    dist::Writer writer;
    writer.number(static_cast<std::uint8_t>(RankTask::kSamples))
        .number<std::uint64_t>(run_index_)
        .number<std::uint64_t>(problem_index_)
        .flag(with_starts)
        .number<std::uint64_t>(count_of(task));
    for (std::size_t i = begin_of(task); i < begin_of(task + 1); ++i) {
      put_placement(writer, placements[i], context_.problem());
    }
    return writer.take();
  };
  // What is valued here need not go through bytes.
  std::vector<std::uint8_t> is_own(parts, 0);
  job.here = [&](std::size_t task) {
    is_own[task] = 1;
    std::vector<ValuedSample> own =
        value_here(placements, begin_of(task), count_of(task), with_starts, threads);
    std::move(own.begin(), own.end(),
              samples.begin() + static_cast<std::ptrdiff_t>(begin_of(task)));
    return std::string();
  };
  job.accept = [&](std::size_t task, dist::Reader& reader) {
    if (is_own[task] != 0) return;
    take(reader, placements, begin_of(task), count_of(task), with_starts, samples);
  };
  std::optional<Error> failure;
  job.failed = [&](std::size_t, const Error& error) { failure = error; };
  crew_.run(job);
  if (failure) throw *failure;
  return samples;
}

std::vector<ValuedSample> RankValuers::value_here(const std::vector<Placement>& placements,
                                                  std::size_t first, std::size_t count,
                                                  bool with_starts, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<ValuedSample> samples =
      value_all(context_.evaluator(), placements, first, count, with_starts, all_linked_, threads);
  if (count == 0) return samples;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double each =
      seconds * std::min<double>(threads, static_cast<double>(count)) / static_cast<double>(count);
  seconds_each_ = seconds_each_ < 0 ? each : (1 - kFollow) * seconds_each_ + kFollow * each;
  return samples;
}

void RankValuers::take(dist::Reader& reader, const std::vector<Placement>& placements,
                       std::size_t first, std::size_t count, bool with_starts,
                       std::vector<ValuedSample>& samples) {
  const std::size_t num_ops = context_.problem().num_ops();
  const std::size_t num_starts = with_starts ? num_ops : 0;
  std::vector<ValuedSample> taken(count);
  std::size_t best = count;
  for (std::size_t i = 0; i < count; ++i) {
    taken[i].valid = reader.flag();
    taken[i].value = take_value(reader);
    taken[i].starts = reader.numbers<Nanoseconds>();
    if (taken[i].starts.size() != num_starts) {
      fail_input("it says when {} ops start; expected {}", taken[i].starts.size(), num_starts);
    }
    if (taken[i].valid && (best == count || taken[i].value < taken[best].value)) best = i;
  }
  reader.end();
  // The answer must be one, whoever found it.
  const std::optional<Evaluation> known = context_.incumbent().value();
  if (best < count && (!known || taken[best].value < *known)) {
    const ValuedSample own =
        value_sample(context_.evaluator(), placements[first + best], false, all_linked_);
    if (!own.valid || !(own.value == taken[best].value)) {
      fail_input("it values a placement at {} ns, which takes another time here",
                 taken[best].value.step);
    }
  }
  std::move(taken.begin(), taken.end(), samples.begin() + static_cast<std::ptrdiff_t>(first));
}

std::string value_for_others(dist::Reader& task, Evaluator& evaluator, int threads) {
  const Problem& problem = evaluator.problem();
  const bool with_starts = task.flag();
  const std::size_t count = task.count(1);
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < count; ++i) placements.push_back(take_sample(task, problem));
  task.end();
  return bytes_of_samples(value_all(evaluator, placements, 0, count, with_starts,
                                    problem.cluster().fully_linked(), threads));
}

}  // namespace emplace

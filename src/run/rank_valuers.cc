#include "run/rank_valuers.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

#include "run/rank_messages.h"

namespace emplace {

RankValuers::RankValuers(dist::Crew& crew, std::size_t run_index, std::size_t problem_index,
                         PlaceContext& context, double least_seconds, const Budget& budget)
    : crew_(crew), valuer_(run_index, problem_index, context, least_seconds, budget) {}

std::vector<ValuedSample> RankValuers::value(const std::vector<Placement>& placements,
                                             bool with_starts, int threads) {
  const std::lock_guard lock(one_at_a_time_);
  const std::size_t all = placements.size();
  if (!valuer_.worth_sharing(all, threads)) {
    return valuer_.value_here({&placements, 0, all, with_starts}, threads);
  }
  const std::size_t parts = valuer_.pieces_of(all, threads, static_cast<std::size_t>(crew_.size()));
  const auto piece = [&](std::size_t task) {
    const std::size_t first = task * all / parts;
    return SampleValuer::Piece{&placements, first, (task + 1) * all / parts - first, with_starts};
  };
  std::vector<ValuedSample> samples(all);
  const auto keep = [&](std::size_t task, std::vector<ValuedSample> found) {
    std::move(found.begin(), found.end(),
              samples.begin() + static_cast<std::ptrdiff_t>(piece(task).first));
  };
  dist::Job job;
  job.tasks = parts;
  job.describe = [&](std::size_t task) {
    dist::Writer writer;
    writer.number(static_cast<std::uint8_t>(RankTask::kSamples));
    valuer_.put(writer, piece(task));
    return writer.take();
  };
  // What is valued here need not go through bytes.
  enum class Known : std::uint8_t { kNot, kHere, kThere };
  std::vector<Known> known(parts, Known::kNot);
  job.here = [&](std::size_t task) {
    known[task] = Known::kHere;
    keep(task, valuer_.value_here(piece(task), threads));
    return std::string();
  };
  job.accept = [&](std::size_t task, dist::Reader& reader) {
    if (known[task] == Known::kHere) return;
    keep(task, valuer_.take(reader, piece(task)));
    known[task] = Known::kThere;
  };
  std::optional<Error> failure;
  job.failed = [&](std::size_t, const Error& error) { failure = error; };
  std::atomic<bool> enough{false};
  job.cancelled = &enough;
  job.on_tick = [&] {
    if (valuer_.gives_up()) enough = true;
  };
  crew_.run(job);
  if (failure) throw *failure;
  for (std::size_t task = 0; task < parts; ++task) {
    if (known[task] == Known::kNot) keep(task, valuer_.given_up(piece(task)));
  }
  return samples;
}

}  // namespace emplace

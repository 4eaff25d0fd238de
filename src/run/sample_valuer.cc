#include "run/sample_valuer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/error.h"
#include "base/parallel.h"

#include "placer/placement_messages.h"

namespace emplace {
namespace {

// How fast the estimate of an evaluation's time follows.
constexpr double kFollow = 0.3;
// Of each rank, so that a slow one does not keep the others waiting.
constexpr std::size_t kPiecesOfARank = 3;

std::vector<ValuedSample> value_all(Evaluator& evaluator, const SampleValuer::Piece& piece,
                                    bool all_linked, int threads) {
  std::vector<ValuedSample> samples(piece.count);
  parallel_for(piece.count, evaluator.measures() ? 1 : threads, [&](std::size_t i) {
    samples[i] =
        value_sample(evaluator, (*piece.batch)[piece.first + i], piece.with_starts, all_linked);
  });
  return samples;
}

}  // namespace

SampleValuer::SampleValuer(std::size_t run_index, std::size_t problem_index, PlaceContext& context,
                           double least_seconds, const Budget& budget)
    : run_index_(run_index),
      problem_index_(problem_index),
      context_(context),
      least_seconds_(least_seconds),
      budget_(budget),
      all_linked_(context.problem().cluster().fully_linked()),
      measures_(context.evaluator().measures()) {}

bool SampleValuer::worth_sharing(std::size_t samples, int threads) const {
  if (samples < 2) return false;
  return measures_ || seconds_each_ < 0 ||
         seconds_each_ * static_cast<double>(samples) / threads >= least_seconds_;
}

std::size_t SampleValuer::pieces_of(std::size_t samples, int threads, std::size_t ranks) const {
  if (measures_) return samples;
  const auto width = static_cast<std::size_t>(std::max(1, threads));
  return std::min(std::max<std::size_t>(1, (samples + width - 1) / width), kPiecesOfARank * ranks);
}

std::vector<ValuedSample> SampleValuer::given_up(const Piece& piece) const {
  ValuedSample sample{.valid = false};
  if (piece.with_starts) sample.starts.assign(context_.problem().num_ops(), 0);
  return std::vector<ValuedSample>(piece.count, sample);
}

void SampleValuer::put(dist::Writer& writer, const Piece& piece) const {
  writer.number<std::uint64_t>(run_index_)
      .number<std::uint64_t>(problem_index_)
      .flag(piece.with_starts)
      .number<std::uint64_t>(piece.count);
  for (std::size_t i = 0; i < piece.count; ++i) {
    put_placement(writer, (*piece.batch)[piece.first + i], context_.problem());
  }
}

std::vector<ValuedSample> SampleValuer::take(dist::Reader& reader, const Piece& piece) {
  const std::size_t num_ops = context_.problem().num_ops();
  const std::size_t num_starts = piece.with_starts ? num_ops : 0;
  std::vector<ValuedSample> taken(piece.count);
  for (ValuedSample& sample : taken) {
    sample.valid = reader.flag();
    sample.value = take_value(reader);
    sample.starts = reader.numbers<Nanoseconds>();
    if (sample.starts.size() != num_starts) {
      fail_input("it says when {} ops start; expected {}", sample.starts.size(), num_starts);
    }
    if (measures_ && sample.valid) check_measured(sample.value);
  }
  reader.end();
  if (!measures_) verify_best(taken, piece);
  return taken;
}

// The answer must be one, whoever found it.
void SampleValuer::verify_best(const std::vector<ValuedSample>& taken, const Piece& piece) {
  std::size_t best = piece.count;
  for (std::size_t i = 0; i < piece.count; ++i) {
    if (taken[i].valid && (best == piece.count || taken[i].value < taken[best].value)) best = i;
  }
  if (best == piece.count) return;
  std::optional<Evaluation> known = context_.incumbent().value();
  if (verified_ && (!known || *verified_ < *known)) known = verified_;
  if (known && !(taken[best].value < *known)) return;
  const ValuedSample own =
      value_sample(context_.evaluator(), (*piece.batch)[piece.first + best], false, all_linked_);
  if (!own.valid || !(own.value == taken[best].value)) {
    fail_input("it values a placement at {} ns, which takes another time here",
               taken[best].value.step);
  }
  verified_ = own.value;
}

std::vector<ValuedSample> SampleValuer::value_here(const Piece& piece, int threads) {
  if (gives_up()) return given_up(piece);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<ValuedSample> samples = value_all(context_.evaluator(), piece, all_linked_, threads);
  if (piece.count == 0) return samples;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto count = static_cast<double>(piece.count);
  const double width = measures_ ? 1 : std::min<double>(threads, count);
  const double each = seconds * width / count;
  seconds_each_ = seconds_each_ < 0 ? each : (1 - kFollow) * seconds_each_ + kFollow * each;
  return samples;
}

SampleQuestion take_sample_question(dist::Reader& reader) {
  SampleQuestion question;
  question.run = static_cast<std::size_t>(reader.number<std::uint64_t>());
  question.problem = static_cast<std::size_t>(reader.number<std::uint64_t>());
  return question;
}

std::string value_for_others(dist::Reader& reader, Evaluator& evaluator, int threads) {
  const Problem& problem = evaluator.problem();
  const bool with_starts = reader.flag();
  const std::size_t count = reader.count(1);
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < count; ++i) placements.push_back(take_sample(reader, problem));
  reader.end();
  dist::Writer writer;
  for (const ValuedSample& sample : value_all(evaluator, {&placements, 0, count, with_starts},
                                              problem.cluster().fully_linked(), threads)) {
    writer.flag(sample.valid);
    put(writer, sample.value);
    writer.numbers(sample.starts);
  }
  return writer.take();
}

}  // namespace emplace

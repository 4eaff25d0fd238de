// What those who have samples valued by other ranks have in common: messages, what is valued here,
// and whether others' word can be true.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "placer/context.h"
#include "placer/valuers.h"

#include "dist/wire.h"

namespace emplace {

class SampleValuer {
 public:
  // Messages name the run and the problem by these numbers. `least_seconds`: what is valued sooner
  // than that is not worth them. `budget`: when it is spent, what steps are executed for is given
  // up.
  SampleValuer(std::size_t run_index, std::size_t problem_index, PlaceContext& context,
               double least_seconds, const Budget& budget);

  // A piece of a batch.
  struct Piece {
    const std::vector<Placement>* batch = nullptr;
    std::size_t first = 0;
    std::size_t count = 0;
    bool with_starts = false;
  };

  bool worth_sharing(std::size_t samples, int threads) const;
  // Into how many pieces a batch is cut: each keeps all threads busy, as long as every rank has
  // several. Where steps are executed, one after the other, a sample is a piece.
  std::size_t pieces_of(std::size_t samples, int threads, std::size_t ranks) const;
  // Whether nobody waits for what is not valued yet, as executing steps takes long.
  bool gives_up() const { return measures_ && budget_.spent(0); }
  bool measures() const { return measures_; }
  // In the place of what was given up.
  std::vector<ValuedSample> given_up(const Piece& piece) const;
  // That a placement takes; less than 0: not known yet.
  double seconds_each() const { return seconds_each_; }

  void put(dist::Writer& writer, const Piece& piece) const;
  // The answer. Throws an Error when it makes no sense: the best of it is simulated here, too,
  // where it would be the best so far. One call at a time.
  std::vector<ValuedSample> take(dist::Reader& reader, const Piece& piece);
  // One call at a time.
  std::vector<ValuedSample> value_here(const Piece& piece, int threads);

 private:
  void verify_best(const std::vector<ValuedSample>& taken, const Piece& piece);

  std::size_t run_index_;
  std::size_t problem_index_;
  PlaceContext& context_;
  double least_seconds_;
  Budget budget_;
  bool all_linked_;
  bool measures_;
  double seconds_each_ = -1;
  std::optional<Evaluation> verified_;  // the best that others found and is true
};

// What a rank is asked to value: of which run and problem, and the rest for `value_for_others`.
struct SampleQuestion {
  std::size_t run = 0;
  std::size_t problem = 0;
};
SampleQuestion take_sample_question(dist::Reader& reader);
std::string value_for_others(dist::Reader& reader, Evaluator& evaluator, int threads);

}  // namespace emplace

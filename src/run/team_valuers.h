// The workers of a controller: ranks that value its samples, past rank 0. It values samples itself
// meanwhile, and what a worker does not answer in time, so that a lost one costs a piece of a
// batch and no more. What comes out is what one process would have found.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "placer/valuers.h"

#include "dist/notes.h"
#include "run/sample_valuer.h"

namespace emplace {

class TeamValuers final : public WorkerRanks {
 public:
  // The rest is a SampleValuer's.
  TeamValuers(dist::Notes& notes, std::size_t run_index, std::size_t problem_index,
              PlaceContext& context, double least_seconds, const Budget& budget = {});
  ~TeamValuers() override;
  TeamValuers(const TeamValuers&) = delete;
  TeamValuers& operator=(const TeamValuers&) = delete;

  void choose(std::vector<std::int32_t> ranks) override;
  std::vector<ValuedSample> value(const std::vector<Placement>& placements, bool with_starts,
                                  int threads) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { kWaiting, kAsked, kTaken, kDone };
  struct Part {
    SampleValuer::Piece piece;
    Stage stage = Stage::kWaiting;
    Clock::time_point asked = {};
  };
  struct Batch {
    std::vector<Part> parts;
    std::vector<ValuedSample> samples;

    bool done() const;
    void keep(Part& part, std::vector<ValuedSample> found);
  };

  void hear(int from, dist::Reader& body);
  // With the lock, as the next three.
  void ask(Batch& batch);
  void give_up(Batch& batch) const;
  // What is to be valued here: what nobody was asked, else what is not answered in time.
  Part* next_part(Batch& batch) const;
  std::chrono::duration<double> patience(const Part& part) const;

  dist::Notes& notes_;
  std::mutex one_at_a_time_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  SampleValuer valuer_;
  std::vector<std::int32_t> workers_;
  std::set<int> liars_;
  std::map<int, Clock::time_point> busy_;  // until when; those that have not answered
  std::uint64_t ticket_ = 0;               // of the batch
  Batch* batch_ = nullptr;
};

// The worker's side: values what it is asked, on a thread of its own.
class SampleService {
 public:
  // `find` is called on that thread alone; an Error says that there is no such problem.
  using Find = std::function<Evaluator&(const SampleQuestion& question)>;
  SampleService(dist::Notes& notes, Find find, int threads);
  ~SampleService();
  SampleService(const SampleService&) = delete;
  SampleService& operator=(const SampleService&) = delete;

 private:
  void work();

  dist::Notes& notes_;
  Find find_;
  int threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int, std::string>> questions_;  // and who asks
  bool closing_ = false;
  std::thread thread_;  // last, as it uses the others
};

}  // namespace emplace

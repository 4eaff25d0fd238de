// Where a rank does rounds, and what it keeps from one to the next; and ranks that are threads of
// this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dist/crew.h"
#include "dist/member.h"
#include "learn/controllers/round.h"

namespace emplace::learn {

class Desk {
 public:
  Desk(const SamplingSystem& system, PlaceContext& context, const std::string& key, Rng weights)
      : seat_(system, context, key, weights), problem_(context.problem()) {}

  void work_with(WorkerRanks* workers) { seat_.work_with(workers); }

  // Where parameters are divided: this rank's part of them, from now on.
  ParameterShards& open_shards(dist::Notes& notes, std::uint64_t run, std::size_t shards);
  // Before the run's notes end.
  void close_shards() { shards_.reset(); }

  // On rank 0.
  std::string run(const RoundTask& task, const Budget& budget, dist::Notes& notes);
  // On another.
  std::string run(dist::Reader& description, dist::Line& line, dist::Notes& notes, Budget budget);

 private:
  void hear_owners(dist::Reader& news);

  ControllerSeat seat_;
  const Problem& problem_;
  std::unique_ptr<ParameterShards> shards_;
  std::uint64_t run_ = 0;  // that they are of
};

class LocalCrew {
 public:
  LocalCrew(int size, const std::function<std::unique_ptr<Desk>()>& make_desk,
            const Budget& budget);
  ~LocalCrew() { end(); }
  LocalCrew(const LocalCrew&) = delete;
  LocalCrew& operator=(const LocalCrew&) = delete;

  dist::Crew& crew() { return *crew_; }

 private:
  void end();

  std::unique_ptr<dist::Crew> crew_;
  std::vector<std::unique_ptr<dist::Member>> members_;
  std::vector<std::thread> threads_;
};

}  // namespace emplace::learn

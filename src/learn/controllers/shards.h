// A parameter server that is divided over ranks. Every tensor of a policy is in a shard, every
// shard with a rank, its owner, which takes a step along each gradient as it comes, whatever the
// parameters have become since the gradient's own were fetched: gradients are stale.
//
// Rank 0 has all shards at first and hands them over. It hears of each now and then, so that when
// an owner is lost, its shards go on from there: some steps are lost with it, and nothing else.
//
// Each rank has one of these, with a thread of its own that takes the steps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dist/notes.h"
#include "learn/nn/module.h"
#include "learn/nn/optimizer.h"

namespace emplace::learn {

class ParameterShards {
 public:
  // So many shards, of about the same size, fewer where there are fewer tensors. `run` tells these
  // notes from those of other runs; `like` has names and shapes.
  ParameterShards(dist::Notes& notes, std::uint64_t run, std::size_t shards, const Parameters& like,
                  const OptimizerSettings& steps);
  ~ParameterShards();
  ParameterShards(const ParameterShards&) = delete;
  ParameterShards& operator=(const ParameterShards&) = delete;

  // Who has which shard, as far as this rank knows.
  std::vector<std::int32_t> owners() const;

  // Of rank 0: everybody begins with these values, and with what the optimizer, of all parameters,
  // knows of the steps before. An epoch is larger than that before, and gradients of earlier ones
  // are of no use.
  void begin(const Parameters& values, std::uint64_t epoch, const Optimizer& steps);
  // Of rank 0: puts in the values ("policy.", by name) and what the optimizers know ("optimizer",
  // as one of all parameters), as far as it has heard of them; their epoch. Waits for the thread.
  std::uint64_t save(StateWriter& state);
  // Gives the rank the shard, where there is such a one and it is still here.
  void hand_over(std::size_t shard, int rank);
  // The rank is lost. Whether it had a shard: then the others are to be told of the owners.
  bool take_back(int rank);
  // Of the others: what rank 0 says.
  void set_owners(std::vector<std::int32_t> owners);

  // Puts the values of all shards into the parameters; each shard's epoch. Calls `wait` now and
  // then, which may throw to give up.
  std::vector<std::uint64_t> fetch(Parameters& into, const std::function<void()>& wait);
  // Gradients at what was fetched in these epochs, by parameter, clipped.
  void push(const std::vector<std::uint64_t>& epochs, const std::vector<torch::Tensor>& gradients);

  // Steps that were taken here, over all shards.
  std::int64_t steps_taken() const;

 private:
  enum class Word : std::uint8_t { kFetch, kValues, kPush, kAdopt, kBackup, kOver };
  struct Shard {
    std::uint64_t epoch = 0;
    std::uint64_t version = 0;  // steps since it began
    std::uint64_t told = 0;     // the version that rank 0 has heard of
    Parameters parameters;
    std::unique_ptr<Optimizer> optimizer;
  };
  struct Fetching {
    std::uint64_t ticket = 0;
    std::vector<std::optional<std::uint64_t>> epochs;  // by shard, as they come
    std::vector<std::vector<torch::Tensor>> values;
  };

  void work();
  void enqueue(std::function<void()> task);
  void hear(int from, dist::Reader& body);
  // On the thread.
  void answer(std::size_t shard, std::uint64_t ticket, int requester);
  void step(std::size_t shard, std::uint64_t epoch, const std::string& gradient);
  void adopt(std::size_t shard, const std::string& state);
  void back_up();
  void deliver(std::size_t shard, std::uint64_t ticket, std::uint64_t epoch, dist::Reader& values);

  void ask(std::size_t shard, std::uint64_t ticket, int of);
  std::string state_of(const Shard& shard) const;
  std::uint64_t checked_epoch(std::size_t shard, const std::string& bytes) const;
  std::unique_ptr<Shard> make_shard(std::size_t shard) const;
  std::vector<torch::Tensor> part_of(std::size_t shard,
                                     const std::vector<torch::Tensor>& all) const;
  dist::Writer word(Word kind, std::size_t shard) const;
  void say(int to, dist::Writer& writer);
  bool is_first() const { return notes_.rank() == 0; }

  dist::Notes& notes_;
  std::uint64_t run_;
  OptimizerSettings steps_;
  std::vector<std::string> names_;
  std::vector<torch::Tensor> like_;
  std::vector<std::vector<std::size_t>> tensors_of_;   // by shard
  std::map<std::size_t, std::unique_ptr<Shard>> own_;  // of the thread

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::vector<std::int32_t> owners_;
  std::vector<std::string> backups_;  // by shard, on rank 0
  std::uint64_t epoch_ = 0;           // that these are of, likewise
  std::set<int> lost_;
  Fetching fetching_;
  std::deque<std::function<void()>> queue_;
  std::int64_t steps_taken_ = 0;
  std::exception_ptr failure_;  // of the thread
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace emplace::learn

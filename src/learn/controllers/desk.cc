#include "learn/controllers/desk.h"

#include <utility>

#include "dist/local_transport.h"
#include "learn/nn/single_thread.h"

namespace emplace::learn {

ParameterShards& Desk::open_shards(dist::Notes& notes, std::uint64_t run, std::size_t shards) {
  shards_.reset();  // it listens to the same notes
  shards_ =
      std::make_unique<ParameterShards>(notes, run, shards, seat_.parameters(), seat_.steps());
  run_ = run;
  return *shards_;
}

std::string Desk::run(const RoundTask& task, const Budget& budget, dist::Notes& notes) {
  RoundResult result = seat_.run(task, budget, task.owners.empty() ? nullptr : shards_.get());
  result.rank = notes.rank();
  dist::Writer writer;
  put(writer, result, problem_);
  return writer.take();
}

std::string Desk::run(dist::Reader& description, dist::Line& line, dist::Notes& notes,
                      Budget budget) {
  const RoundTask task = take_round_task(description);
  budget.cancelled = &line.stopped();
  // Before anybody listens to news of the owners.
  if (!task.owners.empty()) {
    if (shards_ == nullptr || run_ != task.run) open_shards(notes, task.run, task.owners.size());
    shards_->set_owners(task.owners);
  }
  line.listen([&](dist::Reader& news) { hear_owners(news); }, [] {});
  return run(task, budget, notes);
}

void Desk::hear_owners(dist::Reader& news) {
  std::vector<std::int32_t> owners = news.numbers<std::int32_t>();
  news.end();
  if (shards_ != nullptr) shards_->set_owners(std::move(owners));
}

LocalCrew::LocalCrew(int size, const std::function<std::unique_ptr<Desk>()>& make_desk,
                     const Budget& budget) {
  // Nobody is lost here; and what is waited for is quick.
  constexpr double kForEver = 1e9;
  const dist::PostOptions options{.lost_after = kForEver,
                                  .nap = std::chrono::microseconds(100),
                                  .longest_nap = std::chrono::microseconds(1'000)};
  dist::LocalRanks ranks(size);
  std::vector<std::unique_ptr<Desk>> desks;
  for (int rank = 1; rank < size; ++rank) desks.push_back(make_desk());
  crew_ = std::make_unique<dist::Crew>(ranks.take(0), options);
  try {
    for (int rank = 1; rank < size; ++rank) {
      members_.push_back(std::make_unique<dist::Member>(ranks.take(rank), options, [] {}));
      threads_.emplace_back([member = members_.back().get(),
                             desk = std::move(desks[static_cast<std::size_t>(rank - 1)]), budget] {
        const SingleThread single_thread;
        member->serve(0, [&](dist::Reader& description, dist::Line& line) {
          return desk->run(description, line, *member, budget);
        });
        desk->close_shards();
      });
    }
  } catch (...) {
    end();
    throw;
  }
}

void LocalCrew::end() {
  crew_->dismiss();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace emplace::learn

// Which ranks are controllers, and whose workers the others are.
//
// A team is a controller with its workers: ranks that follow each other, so that a machine's are
// together. There are no more teams than controllers; the ranks are divided evenly, so a team may
// have more workers than were asked for, or fewer. Its first rank that is not lost is the
// controller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace emplace::learn {

class Teams {
 public:
  // Without workers every rank is a team, and those beyond the controllers have nothing to do.
  Teams(int ranks, std::int64_t controllers, std::int64_t workers)
      : ranks_(ranks),
        teams_(workers == 0
                   ? ranks
                   : std::clamp<std::int64_t>((ranks + workers) / (workers + 1), 1,
                                              std::min<std::int64_t>(ranks, controllers))) {}

  using Present = std::function<bool(int rank)>;

  std::int64_t count() const { return teams_; }
  std::int64_t of(int rank) const { return rank * teams_ / ranks_; }
  bool is_controller(int rank, const Present& present) const {
    for (int other = rank - 1; other >= 0 && of(other) == of(rank); --other) {
      if (present(other)) return false;
    }
    return true;
  }
  std::vector<std::int32_t> workers_of(int controller, const Present& present) const {
    std::vector<std::int32_t> workers;
    for (int rank = controller + 1; rank < ranks_ && of(rank) == of(controller); ++rank) {
      if (present(rank)) workers.push_back(rank);
    }
    return workers;
  }

 private:
  std::int64_t ranks_;
  std::int64_t teams_;
};

}  // namespace emplace::learn

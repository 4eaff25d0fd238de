// Searches for the assignment of the least period of a stream: multilevel annealing, and above it a
// memetic layer that improves its best answers by V-cycles and combines them by overlay.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <emplace/search.h>

#include "base/ids.h"
#include "base/units.h"

#include "stream/model.h"

namespace emplace {

struct StreamSolution {
  std::vector<DeviceId> device_of_item;
  Nanoseconds period = 0;
  Bytes overflow = 0;  // of all devices together; 0: it fits
};

// A search that can be left and taken up again, round by round. One that fits is better than one
// that does not; then less overflow, and then a lower period. All assignments need only links that
// the cluster has.
class StreamSearch {
 public:
  using Listener = std::function<void(const StreamSolution&)>;

  // `starts` are assignments to begin with; where an item may not be on its device, it is put
  // elsewhere. `on_improvement` is called, from one thread at a time, with every new best, the
  // first of them from within the constructor.
  //
  // Throws an Error where no set of mutually linked devices can hold all items (linked_devices.h).
  StreamSearch(const StreamModel& model, std::uint64_t seed,
               std::span<const std::vector<DeviceId>> starts, Listener on_improvement);
  ~StreamSearch();

  // Whether there is anything to search: not with one device.
  bool open() const;
  // Goes on for a while, until the budget is spent, of which an evaluation is one move proposed, or
  // a fitting assignment of at most `lower_bound` is found. Under an evaluation budget what it
  // finds depends on the seed alone, not on the number of threads.
  void round(const Budget& budget, Nanoseconds lower_bound);

  const StreamSolution& best() const;
  std::int64_t moves() const;  // proposed so far

 private:
  class Rounds;
  std::unique_ptr<Rounds> rounds_;
};

}  // namespace emplace

// Placers of your own beside ours.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <emplace/search.h>
#include <emplace/simulate.h>

namespace emplace {

// What a placer of yours is given. The problem has only the devices that may be used.
class PlacerSession {
 public:
  virtual ~PlacerSession() = default;

  virtual const std::shared_ptr<const Problem>& problem() const = 0;
  virtual const Objective& objective() const = 0;
  virtual std::uint64_t seed() const = 0;
  virtual const Budget& budget() const = 0;
  // Whether the search should end: nothing more is evaluated.
  virtual bool spent() const = 0;
  // To begin from, devices by group.
  virtual const std::vector<std::vector<std::int32_t>>& starts() const = 0;
  // As in Environment, from the first on until the budget is spent; how many have values. The best
  // of all is remembered.
  virtual std::size_t evaluate(std::span<const std::int32_t> devices,
                               std::span<StepValue> values) = 0;
};

// A placer of yours: devices by group, or nothing for the best that was evaluated. The better of
// the two is its answer.
struct PlacerFunction {
  std::string name;
  std::function<std::vector<std::int32_t>(PlacerSession&)> place;
  bool randomized = true;  // runs once for each seed
};

}  // namespace emplace

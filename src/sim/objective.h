// What makes one placement better than another. An objective is one of a closed set of types, each
// with its own settings; whoever must treat them differently says what to do for every one
// (`match`), so that the compiler finds all such places when another is added.
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "sim/throughput.h"

namespace emplace {

// The time of one step.
struct StepTime {
  friend bool operator==(const StepTime&, const StepTime&) = default;
};

// The period of a stream of steps.
struct StreamPeriod {
  Overlap overlap = Overlap::kFull;

  friend bool operator==(const StreamPeriod&, const StreamPeriod&) = default;
};

class Objective {
 public:
  constexpr Objective() = default;  // the time of one step
  constexpr Objective(StepTime) {}  // NOLINT(google-explicit-constructor)
  constexpr Objective(StreamPeriod period)
      : goal_(period) {}  // NOLINT(google-explicit-constructor)

  // Calls the one of the functions that takes this objective's type; there is one for each.
  template <class... Cases>
  constexpr decltype(auto) match(Cases&&... cases) const {
    return std::visit(Overloaded<Cases...>{std::forward<Cases>(cases)...}, goal_);
  }

  // Whether the order in which ready ops run makes a difference.
  constexpr bool order_matters() const {
    return match([](const StepTime&) { return true; }, [](const StreamPeriod&) { return false; });
  }
  // What is made as short as possible: "step time", "period".
  constexpr std::string_view quantity() const {
    return match([](const StepTime&) { return std::string_view("step time"); },
                 [](const StreamPeriod&) { return std::string_view("period"); });
  }

  friend bool operator==(const Objective&, const Objective&) = default;

 private:
  template <class... Cases>
  struct Overloaded : Cases... {
    using Cases::operator()...;
  };
  template <class... Cases>
  Overloaded(Cases...) -> Overloaded<Cases...>;

  std::variant<StepTime, StreamPeriod> goal_;
};

}  // namespace emplace

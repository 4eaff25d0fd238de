// Rounds that do not end in time are given up.
#include <gtest/gtest.h>

#include "learn/encoders/lstm.h"
#include "learn/methods/method.h"
#include "learn/nn/deadline.h"
#include "learn/nn/single_thread.h"
#include "learn/train/state.h"
#include "learn/train/trainer.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

Budget cancelled_budget() {
  static const std::atomic<bool> cancelled{true};
  Budget budget;
  budget.cancelled = &cancelled;
  return budget;
}

TEST(Deadline, is_looked_at_until_its_scope_ends) {
  EXPECT_NO_THROW(check_time());
  {
    Deadline deadline(cancelled_budget());
    EXPECT_FALSE(deadline.passed());
    EXPECT_THROW(check_time(), OutOfTime);
    EXPECT_TRUE(deadline.passed());
    Deadline free{Budget{}};
    EXPECT_NO_THROW(check_time());
  }
  EXPECT_NO_THROW(check_time());
}

TEST(Deadline, holds_in_the_threads_of_a_loop) {
  Deadline deadline(cancelled_budget());
  EXPECT_THROW(parallel_for_tensors(8, 4, [](std::size_t) { check_time(); }), OutOfTime);
}

TEST(Deadline, ends_gradients_too) {
  Rng rng(1);
  Parameters parameters;
  const Lstm lstm(parameters, "lstm", 2, 4, rng);
  const torch::Tensor loss = lstm.run(lstm.project(torch::ones({3, 1, 2}), 0), {}).states.sum();
  Deadline deadline(cancelled_budget());
  EXPECT_THROW(torch::autograd::grad({loss}, parameters.tensors(), {}, false, false, true),
               std::exception);
  EXPECT_TRUE(deadline.passed());
}

// One whole round, then one without end.
class EndlessMethod final : public Method {
 public:
  void imitate(const Placement&, Environment&, Rng&) override {}
  std::int64_t round_size() const override { return 0; }
  bool round(Environment&, Rng& rng, TrainingPoint&) override {
    rng.next();
    if (rounds_++ == 0) return true;
    while (true) check_time();
  }
  void save(StateWriter& state) const override { state.put("method_rounds", rounds_); }
  void load(const StateReader&) override {}

 private:
  std::int64_t rounds_ = 0;
};

TEST(Deadline, a_round_without_end_is_given_up_and_what_was_before_it_saved) {
  TimedGraph graph;
  graph.op("b", 1, {graph.op("a", 1, {})});
  PlaceContext context(compile_timed(graph.build(), gpu_cluster(2)));
  std::string saved;
  context.learning().save = [&](std::string_view bytes) { saved = bytes; };
  Budget budget;
  // A round is given up where the one before was long; the first counts as long.
  budget.seconds = 0.5;
  EndlessMethod method;
  Environment environment(context, budget, "test");
  context.learning().on_round = [&](const TrainingPoint&) {
    while (environment.budget().elapsed_seconds() < 0.2) {
    }
  };
  train(method, environment, Rng(1), {.key = "test"});
  const StateReader state(saved, "saved");
  EXPECT_EQ(state.integer("method_rounds"), 1);
  EXPECT_EQ(state.integer("round"), 1);
}

}  // namespace
}  // namespace emplace::learn

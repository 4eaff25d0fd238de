#include "run/training_preparation.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::HasSubstr;

learn::TrainingTask task_of(const std::string& model) {
  const auto problems = cross({model}, {"2xp100"}, {}, 1);
  learn::TrainingTask task;
  task.name = problems[0].name;
  task.context = std::make_shared<PlaceContext>(problems[0].problem);
  return task;
}

TEST(PreparedTasks, AreTheSameOnTheOtherSide) {
  for (const bool example : {true, false}) {
    learn::TrainingTask prepared = task_of("family:ptb:sequence=2,seed=0");
    prepared.reference_seconds = 0.125;
    prepared.context->evaluator().count(2);
    if (example) prepared.example.emplace(prepared.context->problem().num_ops(), 1);
    dist::Writer writer;
    put_prepared(writer, prepared);
    const std::string bytes = writer.take();
    dist::Reader reader(bytes);
    learn::TrainingTask taken = task_of("family:ptb:sequence=2,seed=0");
    taken.context->evaluator().count(7);
    take_prepared(reader, taken);
    reader.end();
    EXPECT_EQ(taken.reference_seconds, 0.125);
    EXPECT_EQ(taken.example, prepared.example);
    EXPECT_EQ(taken.context->evaluations(), 2);
  }
}

// Ranks whose command lines differ must not train one policy.
TEST(Preparation, DiffersWhereAnythingElseIsAskedFor) {
  TrainOptions options;
  options.graphs = {"family:ptb:sequence=2,seed=0"};
  options.clusters = {"2xp100"};
  options.imitate = "expert";
  options.settings = {{"imitation_steps", "2"}, {"width", "8"}, {"learning_rate", "0.001"}};
  const auto fingerprint = [](const TrainOptions& asked) {
    return TrainingPreparation(asked).fingerprint({});
  };
  const std::uint64_t first = fingerprint(options);
  EXPECT_EQ(fingerprint(options), first);
  TrainOptions threads = options;
  threads.budget.threads = 7;
  EXPECT_EQ(fingerprint(threads), first);
  std::vector<TrainOptions> others(5, options);
  others[0].policy = "placeto";
  others[1].imitate = "metis";
  others[2].imitate_evaluations = 77;
  others[3].seed = 2;
  others[4].settings.back().second = "0.002";
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_NE(fingerprint(others[i]), first) << i;
}

TEST(PreparedTasks, ThatMakeNoSenseAreAnError) {
  learn::TrainingTask task = task_of("family:ptb:sequence=2,seed=0");
  const auto text_of = [&](dist::Writer& writer) {
    const std::string bytes = writer.take();
    return error_text([&] {
      dist::Reader reader(bytes);
      take_prepared(reader, task);
    });
  };
  dist::Writer endless;
  endless.number(std::numeric_limits<double>::infinity()).number<std::int64_t>(0).flag(false);
  EXPECT_THAT(text_of(endless), HasSubstr("a reference takes inf s"));
  dist::Writer negative;
  negative.number(1.0).number<std::int64_t>(-3).flag(false);
  EXPECT_THAT(text_of(negative), HasSubstr("after -3 evaluations"));
  dist::Writer other;
  other.number(1.0).number<std::int64_t>(0).flag(true);
  other.numbers(std::vector<std::uint8_t>{0, 1});
  EXPECT_THAT(text_of(other), HasSubstr("a placement is of 2 ops"));
  dist::Writer early;
  early.number(1.0);
  EXPECT_THAT(text_of(early), HasSubstr("too early"));
}

}  // namespace
}  // namespace emplace

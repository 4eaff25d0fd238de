// Messages of ranks that talk nonsense: thousands of damaged ones are read, and each is an Error or
// something that this problem can have.
#include "run/rank_messages.h"

#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/random_problem.h"

namespace emplace {
namespace {

// A byte, a length, a piece that is missing or there twice.
std::string damaged_message(const std::string& bytes, Rng& rng) {
  std::string changed = bytes;
  const auto at = static_cast<std::size_t>(rng.below(bytes.size()));
  const auto size = static_cast<std::size_t>(rng.below(17));
  switch (rng.below(5)) {
    case 0:
      changed[at] = static_cast<char>(rng.below(256));
      break;
    case 1:
      changed.replace(at, 8, std::string(8, static_cast<char>(rng.below(256))));
      break;
    case 2:
      changed.erase(at, size);
      break;
    case 3:
      changed.insert(at, bytes.substr(at, size));
      break;
    default:
      changed.resize(at);
  }
  return changed;
}

TEST(RankMessages, nonsense_is_an_error_or_fits_the_problem) {
  Rng rng(11);
  const auto problem = random_problem(rng, {.max_ops = 40, .roomy = true});
  const Placement placement = random_placement(*problem, rng);
  Evaluator evaluator(problem);
  const Solution solution{placement, {}, evaluator.evaluate(placement), "a test"};
  const PlacerRun run;
  const RunResult result{.run = run,
                         .result = {.placement = placement, .notes = {"one", "two"}},
                         .evaluation = solution.value,
                         .bound = {1, "because"}};
  dist::Writer solutions;
  put(solutions, solution, *problem);
  dist::Writer results;
  put(results, result, *problem);
  const std::string as_solution = solutions.take();
  const std::string as_result = results.take();
  int refused = 0;
  constexpr int kTrials = 20'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const bool of_result = trial % 2 == 1;
    const std::string bytes = damaged_message(of_result ? as_result : as_solution, rng);
    Placement taken;
    const std::string error = error_text([&] {
      dist::Reader reader(bytes);
      taken = of_result ? take_result(reader, *problem, run).result.placement
                        : take_solution(reader, *problem).placement;
      reader.end();
      check_placement(*problem, taken);
    });
    refused += error.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, kTrials / 2);
}

}  // namespace
}  // namespace emplace

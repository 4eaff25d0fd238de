// Golden runs: what each placer that does not learn did with a few fixed cases, as text that a
// person can check. A change of behaviour shows as a changed file. tools/regen_golden.sh writes
// them again.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "placer/placer.h"

#include "placers/all.h"

#include "support/tiny_graphs.h"

namespace emplace {
namespace {

constexpr std::int64_t kEvaluations = 100;
constexpr std::uint64_t kSeed = 1;

const std::filesystem::path& golden_folder() {
  static const std::filesystem::path folder =
      std::filesystem::path(EMPLACE_SOURCE_DIR) / "tests" / "golden";
  return folder;
}

// What a placer learns depends on how libtorch rounds, and what a program of the user's does on the
// program.
std::vector<std::string> keys_with_golden_runs() {
  std::vector<std::string> keys;
  for (const MethodInfo* info : all_placers().list()) {
    if (!info->learns && info->family != "external") keys.push_back(info->key);
  }
  return keys;
}

std::string run_case(const std::string& key, const TinyCase& tiny) {
  const Problem& problem = *tiny.problem;
  Budget budget;
  budget.evaluations = kEvaluations;
  PlaceContext context(tiny.problem);
  const PlaceResult result = all_placers().make({key, {}})->place(context, budget, Rng(kSeed));
  const Timeline timeline = Simulator(tiny.problem).run(result.placement, result.schedule);
  std::string text = fmt::format("case: {}\n", tiny.name);
  text += fmt::format("  step: {} ns\n", timeline.step);
  text += fmt::format("  fits: {}\n", timeline.fits() ? "yes" : "no");
  text += fmt::format("  order: {}\n", result.schedule.fifo() ? "fifo" : "priorities");
  text += "  assignment: ";
  for (const DeviceId device : result.placement) text += fmt::format("{}", device);
  text += "\n";
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    text += fmt::format("  {}:", problem.cluster().device(device).name);
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      if (result.placement[op] == device) text += fmt::format(" {}", problem.graph().op_name(op));
    }
    text += "\n";
  }
  for (const std::string& note : result.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

std::string golden_text(const std::string& key) {
  std::string text =
      fmt::format("placer: {}\nbudget: {} evaluations, seed {}\n", key, kEvaluations, kSeed);
  for (const char* name : {"diamond_on_two_equal", "fork_join_on_four_on_a_bus",
                           "training_step_on_three_unequal", "big_parameters_on_two_tight"}) {
    text += "\n" + run_case(key, tiny_case(name));
  }
  return text;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, run_is_as_recorded) {
  const std::filesystem::path path = golden_folder() / (GetParam() + ".txt");
  const std::string actual = golden_text(GetParam());
  const char* regenerate = std::getenv("EMPLACE_REGENERATE_GOLDEN");
  if (regenerate != nullptr && std::string_view(regenerate) == "1") {
    std::ofstream(path) << actual;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << "no golden run: tools/regen_golden.sh " << GetParam();
  std::ostringstream recorded;
  recorded << file.rdbuf();
  EXPECT_EQ(actual, recorded.str());
}

INSTANTIATE_TEST_SUITE_P(AllPlacers, Golden, testing::ValuesIn(keys_with_golden_runs()),
                         [](const auto& param_info) { return param_info.param; });

TEST(GoldenFolder, holds_only_runs_of_placers_that_do_not_learn) {
  const std::vector<std::string> listed = keys_with_golden_runs();
  const std::set<std::string> keys(listed.begin(), listed.end());
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    EXPECT_EQ(entry.path().extension(), ".txt") << entry.path();
    EXPECT_TRUE(keys.contains(entry.path().stem())) << entry.path() << " has no placer";
  }
}

}  // namespace
}  // namespace emplace

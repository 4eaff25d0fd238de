// The figures that models are compared with are those of the captured steps.
#include "zoo/captures.h"

#include <gtest/gtest.h>

#include "support/captures.h"
#include "zoo/registry.h"

namespace emplace::zoo {
namespace {

TEST(Captures, have_the_figures_that_models_are_compared_with) {
  for (const char* name : kCaptures) {
    const Graph graph = captured(name);
    const CaptureFigures& figures = figures_of(name);
    EXPECT_EQ(count_parameters(graph), figures.parameters) << name;
    EXPECT_EQ(total_flops(graph, Phase::kForward), figures.forward_flops) << name;
    EXPECT_EQ(total_flops(graph, std::nullopt), figures.step_flops) << name;
    EXPECT_EQ(peak_on_one_device(graph), figures.peak) << name;
  }
}

}  // namespace
}  // namespace emplace::zoo

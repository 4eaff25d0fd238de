// Every operator with a gradient rule and a kernel: its gradients, from gradients of its outputs
// that differ from element to element.
#include "graph/gradients.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "exec/gradient_check.h"
#include "exec/operator_cases.h"
#include "zoo/operators.h"

namespace emplace::exec {
namespace {

TEST(ExecGradients, are_those_of_the_forward_op) {
  int number = 0;
  for (const Case& model : all_cases()) {
    SCOPED_TRACE(fmt::format("case {}: {}", number++, model.type));
    try {
      expect_gradients(step_of(model), model.numbers);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// The zoo makes equal constants of one module one.
TEST(ExecGradients, know_numbers_that_are_one_tensor_by_their_places) {
  zoo::Net net("slice");
  const zoo::Value weights = net.parameter("weights", {2, 4});
  const zoo::Value row = slice(net, weights, 1, 0, 1);  // its end and its axis
  mul(net, row, net.input("x", {2, 1}));
  expect_gradients(training_step(std::move(net).build()));
}

TEST(ExecGradients, are_tried_for_every_operator_that_has_a_kernel) {
  std::set<std::string> tried;
  for (const Case& model : all_cases()) tried.insert(model.type);
  std::set<std::string> untried;
  for (const GradientRow& row : gradient_rows()) {
    if (row.rule == nullptr || !has_kernel(row.type)) continue;
    if (!tried.contains(std::string(row.type))) untried.emplace(row.type);
  }
  EXPECT_EQ(untried, std::set<std::string>{});
}

}  // namespace
}  // namespace emplace::exec

// Products that a team's threads share are those of libtorch, for every shape and layout.
#include "exec/team_products.h"

#include <array>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "exec/ranges.h"

namespace emplace::exec {
namespace {

using at::Tensor;

// Three threads, so that shares are unequal.
class TeamProducts : public ::testing::Test {
 protected:
  TeamProducts() : threads_before_(at::get_num_threads()) {
    at::set_num_threads(3);
    torch::manual_seed(4);
  }
  ~TeamProducts() override { at::set_num_threads(threads_before_); }

  static Tensor drawn(std::vector<std::int64_t> shape) {
    return torch::randn(shape, torch::kDouble);
  }

  static void expect_near(const Tensor& found, const Tensor& expected) {
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_TRUE(torch::allclose(found, expected, 1e-12, 1e-12));
  }

 private:
  int threads_before_;
};

TEST_F(TeamProducts, parts_are_shared_by_the_team) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int> times(12, 0);
  for_parts(12, [&](std::int64_t part) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    ++times[static_cast<std::size_t>(part)];
  });
  EXPECT_EQ(threads.size(), 3U);
  EXPECT_EQ(times, std::vector<int>(12, 1));
}

TEST_F(TeamProducts, of_matrices_by_rows_and_by_columns) {
  for (const auto& [rows, width, columns] : {std::array<std::int64_t, 3>{200, 50, 30},
                                             {30, 50, 200},
                                             {17, 300, 33},
                                             {2, 3, 4},
                                             {1, 1000, 400},
                                             {400, 1000, 1},
                                             {0, 5, 7}}) {
    const Tensor a = drawn({rows, width});
    const Tensor b = drawn({width, columns});
    expect_near(team_mm(a, b), at::mm(a, b));
    const Tensor turned = drawn({width, rows}).t();
    expect_near(team_mm(turned, b), at::mm(turned, b));
    expect_near(team_mm(a, b.t().contiguous().t()), at::mm(a, b));
  }
}

TEST_F(TeamProducts, with_something_added) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{200, 30}, {30, 200}}) {
    const Tensor a = drawn({rows, 60});
    const Tensor b = drawn({60, columns});
    for (const Tensor& c : {drawn({columns}), drawn({rows, 1}), drawn({rows, columns})}) {
      expect_near(team_addmm(c, a, b, 0.5, 2), at::addmm(c, a, b, 0.5, 2));
    }
  }
}

TEST_F(TeamProducts, of_batches) {
  const Tensor a = drawn({5, 4, 60, 20});
  const Tensor b = drawn({5, 4, 20, 30});
  expect_near(team_matmul(a, b), at::matmul(a, b));
  const Tensor turned = drawn({5, 4, 30, 20}).transpose(-2, -1);
  expect_near(team_matmul(a, turned), at::matmul(a, turned));
  const Tensor weights = drawn({20, 30});
  expect_near(team_matmul(a, weights), at::matmul(a, weights));
  const Tensor shared = drawn({1, 4, 20, 30});
  expect_near(team_matmul(a, shared), at::matmul(a, shared));
}

}  // namespace
}  // namespace emplace::exec

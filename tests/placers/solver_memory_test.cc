// Memory that ends inside of a solver. What CLP and CBC themselves do then, at every allocation, is
// tried by tools/fault_trials.py.
#include "lp/solver_memory.h"

#include <cstddef>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lp/integer_program.h"

namespace emplace {
namespace {

// More than any machine has, by a way that no compiler sees through.
void take_too_much() {
  volatile std::size_t bytes = std::size_t{1} << 62;
  ::operator delete(::operator new(bytes));
}

struct Destroyed {
  explicit Destroyed(bool& flag) : flag_(flag) {}
  ~Destroyed() { flag_ = true; }
  bool& flag_;
};

TEST(SolverMemory, a_solver_without_memory_is_left_as_it_stands) {
  bool destroyed = false;
  const std::new_handler before = std::get_new_handler();
  EXPECT_THROW(call_solver([&] {
                 const Destroyed one(destroyed);
                 take_too_much();
               }),
               std::bad_alloc);
  EXPECT_FALSE(destroyed);
  EXPECT_EQ(std::get_new_handler(), before);
}

TEST(SolverMemory, other_exceptions_pass_as_ever) {
  bool destroyed = false;
  EXPECT_THROW(call_solver([&] {
                 const Destroyed one(destroyed);
                 throw std::runtime_error("x");
               }),
               std::runtime_error);
  EXPECT_TRUE(destroyed);
}

TEST(SolverMemory, what_a_solver_calls_back_is_outside_of_it) {
  bool destroyed = false;
  bool caught = false;
  call_solver([&] {
    const OutsideSolver outside;
    try {
      const Destroyed one(destroyed);
      take_too_much();
    } catch (const std::bad_alloc&) {
      caught = true;
    }
  });
  EXPECT_TRUE(destroyed);
  EXPECT_TRUE(caught);
}

TEST(SolverMemory, threads_fail_each_for_itself) {
  std::vector<std::thread> threads;
  std::vector<int> caught(8, 0);
  for (std::size_t i = 0; i < caught.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        try {
          if (i % 2 == 0) {
            call_solver(take_too_much);
          } else {
            take_too_much();
          }
        } catch (const std::bad_alloc&) {
          ++caught[i];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : caught) EXPECT_EQ(count, 200);
  EXPECT_EQ(std::get_new_handler(), nullptr);
}

// An exception must not pass through CBC.
TEST(SolverMemory, errors_of_those_who_listen_wait_until_the_solver_has_ended) {
  IntegerProgram program;
  const int a = program.add_binary(-2);
  const int b = program.add_binary(-3);
  program.at_most({{a, 2}, {b, 2}}, 3);
  IntegerProgram::Limits limits;
  limits.on_solution = [](const std::vector<double>&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(program.solve(limits), std::runtime_error);
  limits.on_solution = [](const std::vector<double>&) { take_too_much(); };
  EXPECT_THROW(program.solve(limits), std::bad_alloc);
  limits.on_solution = {};
  limits.stop = [](std::int64_t) -> bool { throw std::runtime_error("enough"); };
  EXPECT_THROW(program.solve(limits), std::runtime_error);
  limits.stop = {};
  const IntegerProgram::Result result = program.solve(limits);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.best, (std::vector<double>{0, 1}));
}

}  // namespace
}  // namespace emplace

// The library as a guest: whoever calls it has an environment and numbers of threads of their own.
#include <cstdlib>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "learn/nn/single_thread.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

template <class Function>
Function* function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

int openblas_threads() {
  auto* get = function<int()>("openblas_get_num_threads");
  return get != nullptr ? get() : 0;
}

std::string openblas_kernels() {
  auto* name = function<char*()>("openblas_get_corename");
  return name != nullptr ? name() : "";
}

// What a program can see of what the library might have changed.
struct Process {
  int tensor_threads = at::get_num_threads();
  int blas_threads = openblas_threads();
  std::string blas_kernels = openblas_kernels();
  std::vector<std::string> environment = variables();

  static std::vector<std::string> variables() {
    std::vector<std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable)
      result.emplace_back(*variable);
    return result;
  }
  friend bool operator==(const Process& a, const Process& b) = default;
};

std::shared_ptr<const Problem> host_problem() {
  TimedGraph graph;
  TensorId at = graph.op("op0", 50, {});
  for (int i = 1; i < 6; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 50, {at}, 20'000);
  }
  return compile_timed(graph.build(), gpu_cluster(3));
}

// Numbers of threads for as long as it lives, then those before.
class Threads {
 public:
  Threads(int tensor_threads, int blas_threads) { set(tensor_threads, blas_threads); }
  ~Threads() { set(tensor_threads_, blas_threads_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  static void set(int tensor_threads, int blas_threads) {
    at::set_num_threads(tensor_threads);
    if (auto* use = function<void(int)>("openblas_set_num_threads")) use(blas_threads);
  }

  int tensor_threads_ = at::get_num_threads();
  int blas_threads_ = openblas_threads();
};

class GuestIn : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { setenv("EMPLACE_TEST_OF_HOSTS", "mine", /*overwrite=*/1); }
  void TearDown() override { unsetenv("EMPLACE_TEST_OF_HOSTS"); }

  void place(PlaceContext& context) const {
    Budget budget;
    budget.evaluations = 60;
    budget.threads = 2;
    run_placer(all_placers(), context, {.placer = MethodSpec::parse(GetParam())}, budget);
  }

  const Threads threads_{3, 2};
};

TEST_P(GuestIn, leaves_the_process_as_it_was) {
  const Process before;
  ASSERT_EQ(before.tensor_threads, 3);
  PlaceContext context(host_problem());
  bool learned = false;
  context.learning().on_round = [&](const TrainingPoint&) {
    learned = true;
    EXPECT_EQ(at::get_num_threads(), 1) << "tensor operations of the library have one thread";
    EXPECT_LE(openblas_threads(), 1);
  };
  place(context);
  EXPECT_TRUE(learned);
  EXPECT_TRUE(Process() == before);
}

TEST_P(GuestIn, leaves_the_process_as_it_was_when_it_fails) {
  const Process before;
  PlaceContext context(host_problem());
  context.learning().resume = "no checkpoint at all";
  context.learning().resume_name = "a file";
  EXPECT_THROW(place(context), Error);
  EXPECT_TRUE(Process() == before);
}

INSTANTIATE_TEST_SUITE_P(Placers, GuestIn,
                         ::testing::Values("post", "colocrl(width=8)", "placeto(workers=2)"),
                         [](const auto& param_info) {
                           return param_info.param.substr(0, param_info.param.find('('));
                         });

TEST(SingleThread, is_for_as_long_as_one_lives) {
  const Threads threads(3, 2);
  {
    const SingleThread outer;
    {
      const SingleThread inner;
      EXPECT_EQ(at::get_num_threads(), 1);
    }
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_LE(openblas_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
}

TEST(SingleThread, holds_for_every_task_of_a_loop) {
  const Threads threads(3, 2);
  std::vector<int> in_task(64);
  parallel_for_tensors(in_task.size(), 2,
                       [&](std::size_t i) { in_task[i] = at::get_num_threads(); });
  EXPECT_THAT(in_task, ::testing::Each(1));
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace
}  // namespace emplace::learn

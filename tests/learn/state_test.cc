#include "learn/train/state.h"

#include <gtest/gtest.h>

#include "base/error.h"

#include "learn/nn/torch.h"

namespace emplace::learn {
namespace {

std::string example() {
  StateWriter state;
  state.put("whole", std::vector<std::int64_t>{3, -4});
  state.put("real", 0.1);
  state.put("text", std::string("any text"));
  state.put("tensor", torch::arange(6, torch::kFloat32).reshape({2, 3}));
  return state.bytes();
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(State, comes_back_as_it_was) {
  const StateReader state(example(), "run.checkpoint");
  EXPECT_EQ(state.integers("whole"), (std::vector<std::int64_t>{3, -4}));
  EXPECT_EQ(state.real("real"), 0.1);
  EXPECT_EQ(state.text("text"), "any text");
  torch::Tensor target = torch::zeros({2, 3});
  state.load("tensor", target);
  EXPECT_TRUE(torch::equal(target, torch::arange(6, torch::kFloat32).reshape({2, 3})));
}

TEST(State, damage_is_found_wherever_it_is) {
  const std::string bytes = example();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const std::string message = error_of([&] { StateReader(damaged, "run.checkpoint"); });
    EXPECT_TRUE(message.starts_with("run.checkpoint: ")) << i << ": " << message;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(error_of([&] { StateReader(bytes.substr(0, length), "x"); }), "no error") << length;
  }
}

TEST(State, says_what_is_missing_or_of_another_size) {
  const StateReader state(example(), "run.checkpoint");
  EXPECT_NE(error_of([&] { state.integer("other"); }).find("'other'"), std::string::npos);
  EXPECT_NE(error_of([&] { state.integer("whole"); }).find("'whole'"), std::string::npos);
  EXPECT_NE(error_of([&] {
              state.load("tensor", torch::zeros({3, 2}));
            }).find("'tensor'"),
            std::string::npos);
}

}  // namespace
}  // namespace emplace::learn

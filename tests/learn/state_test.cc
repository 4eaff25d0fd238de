#include "learn/train/state.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <zlib.h>

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

std::string state_error_of(const std::function<void()>& body) {
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
    const std::string message = state_error_of([&] { StateReader(damaged, "run.checkpoint"); });
    EXPECT_TRUE(message.starts_with("run.checkpoint: ")) << i << ": " << message;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(state_error_of([&] { StateReader(bytes.substr(0, length), "x"); }), "no error")
        << length;
  }
}

// With the checksum that it should have.
std::string repaired(std::string bytes) {
  const std::size_t body = bytes.size() - 8;
  const auto sum =
      static_cast<std::int64_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), body));
  std::memcpy(bytes.data() + body, &sum, 8);
  return bytes;
}

void read_all(const std::string& bytes) {
  const StateReader state(bytes, "run.checkpoint");
  state.integers("whole");
  state.real("real");
  state.text("text");
  state.load("tensor", torch::zeros({2, 3}));
}

// Under a right checksum values may change unseen, but nothing else may happen than an Error: no
// other exception, no allocation of what lengths say (address sanitizers see what is read beyond).
TEST(State, what_is_made_to_deceive_is_refused_by_name) {
  const std::string bytes = example();
  int refused = 0;
  for (std::size_t i = 0; i + 8 < bytes.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      try {
        read_all(repaired(changed));
      } catch (const Error& error) {
        ++refused;
        EXPECT_TRUE(std::string(error.what()).starts_with("run.checkpoint: ")) << error.what();
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()));
}

TEST(State, malformed_entries_are_named) {
  const std::string bytes = example();
  // The number of bytes of an entry follows its kind and its number of dimensions.
  const auto with_size = [&](const std::string& name, char kind, std::int64_t size) {
    std::string changed = bytes;
    std::memcpy(changed.data() + changed.find(name + kind) + name.size() + 9, &size, 8);
    return state_error_of([&] { StateReader(repaired(changed), "run.checkpoint"); });
  };
  EXPECT_NE(with_size("text", 't', std::int64_t{1} << 62).find("'text'"), std::string::npos);
  EXPECT_NE(with_size("text", 't', -1).find("a length of -1"), std::string::npos);
  EXPECT_NE(with_size("whole", 'i', 15).find("'whole'"), std::string::npos);
  // The first dimension of a tensor is where others have their number of bytes.
  EXPECT_NE(with_size("tensor", 'f', std::int64_t{1} << 61).find("'tensor'"), std::string::npos);
}

TEST(State, says_what_is_missing_or_of_another_size) {
  const StateReader state(example(), "run.checkpoint");
  EXPECT_NE(state_error_of([&] { state.integer("other"); }).find("'other'"), std::string::npos);
  EXPECT_NE(state_error_of([&] { state.integer("whole"); }).find("'whole'"), std::string::npos);
  EXPECT_NE(state_error_of([&] {
              state.load("tensor", torch::zeros({3, 2}));
            }).find("'tensor'"),
            std::string::npos);
}

}  // namespace
}  // namespace emplace::learn

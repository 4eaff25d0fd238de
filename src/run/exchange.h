// The seam between a search and those on other ranks: what its incumbent holds goes out as it
// changes, and what others found comes in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "placer/context.h"

#include "dist/wire.h"

namespace emplace {

class NewsExchange {
 public:
  // Who is told: rank 0, or all others, who are also told what one of them found.
  enum class To { kFirst, kOthers };
  // `tell` sends news. The context outlives it.
  NewsExchange(PlaceContext& context, To to, std::function<void(std::string)> tell);

  // To be called every few milliseconds: tells what is new, but not too often.
  void tick();
  // Others' news. Throws an Error when they make no sense.
  void hear(dist::Reader& news);

 private:
  PlaceContext& context_;
  To to_;
  std::function<void(std::string)> tell_;
  std::chrono::milliseconds between_;
  std::chrono::steady_clock::time_point told_at_{};
  // What both sides know: a version of the incumbent, the best, the bound.
  std::uint64_t version_ = 0;
  std::optional<Evaluation> known_;
  Nanoseconds known_bound_ = 0;
};

}  // namespace emplace

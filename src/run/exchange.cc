#include "run/exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

#include "run/rank_messages.h"

namespace emplace {
namespace {

// Of several improvements within it, the last is told.
constexpr auto kBetweenNews = std::chrono::milliseconds(50);
// Of larger graphs less is told, since rank 0 simulates whatever is better, and has to hear
// everybody's signs of life meanwhile.
constexpr std::int64_t kOpsOfMostNews = 25'000;

}  // namespace

NewsExchange::NewsExchange(PlaceContext& context, To to, std::function<void(std::string)> tell)
    : context_(context),
      to_(to),
      tell_(std::move(tell)),
      between_(kBetweenNews *
               std::max<std::int64_t>(1, context.problem().num_ops() / kOpsOfMostNews)) {}

void NewsExchange::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (now - told_at_ < between_) return;
  told_at_ = now;
  const Incumbent& incumbent = context_.incumbent();
  const LowerBound bound = incumbent.bound();
  std::optional<Solution> best;
  if (incumbent.version() != version_) {
    version_ = incumbent.version();
    best = incumbent.best();
    // What was heard from there need not be told.
    if (best && known_ && !(best->value < *known_)) best.reset();
  }
  const bool raised = bound.step > known_bound_;
  if (!best && !raised) return;
  dist::Writer news;
  news.flag(best.has_value());
  if (best) {
    put(news, *best, context_.problem());
    known_ = best->value;
  }
  put(news, bound);
  known_bound_ = bound.step;
  tell_(news.take());
}

void NewsExchange::hear(dist::Reader& news) {
  if (news.flag()) {
    Solution solution = take_solution(news, context_.problem());
    if (to_ == To::kFirst && (!known_ || solution.value < *known_)) known_ = solution.value;
    const std::optional<Evaluation> own = context_.incumbent().value();
    if (!own || solution.value < *own) {
      check_value(solution, context_.evaluator());
      context_.incumbent().offer(std::move(solution));
    }
  }
  const LowerBound bound = take_bound(news);
  news.end();
  const std::optional<Evaluation> best = context_.incumbent().value();
  if (best) check_bound(bound, *best);
  if (to_ == To::kFirst) known_bound_ = std::max(known_bound_, bound.step);
  context_.incumbent().hear(bound);
}

}  // namespace emplace

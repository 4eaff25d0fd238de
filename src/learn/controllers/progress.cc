#include "learn/controllers/progress.h"

#include <fmt/core.h>

#include "base/error.h"

#include "dist/wire.h"
#include "learn/learners/baseline.h"
#include "learn/nn/tensor_messages.h"
#include "learn/train/run_state.h"

namespace emplace::learn {
namespace {

void put_epoch(StateWriter& state, const std::string& name, const Epoch& epoch) {
  state.put(name, std::vector{static_cast<std::int64_t>(epoch.number),
                              static_cast<std::int64_t>(epoch.began)});
}

Epoch epoch_of(const StateReader& state, const std::string& name) {
  constexpr std::size_t kMost = 1'000'000'000'000'000;
  const std::vector<std::int64_t> numbers = state.indices(name, 2, kMost);
  return {static_cast<std::uint64_t>(numbers[0]), static_cast<std::size_t>(numbers[1])};
}

std::size_t count_of(const StateReader& state, const std::string& name) {
  return static_cast<std::size_t>(state.count(name));
}

}  // namespace

void Progress::forget_before(std::size_t version) {
  published.erase(published.begin(), published.lower_bound(version));
  epochs.erase(epochs.begin(), epochs.lower_bound(version));
}

void Progress::save(StateWriter& state) const {
  state.put("controllers", static_cast<std::int64_t>(controllers.size()));
  for (std::size_t i = 0; i < controllers.size(); ++i) {
    const std::string name = fmt::format("controller.{}.", i);
    put_rng(state, name + "rng", controllers[i].rng);
    state.put(name + "memory", controllers[i].memory);
    state.put(name + "memory_of", static_cast<std::int64_t>(controllers[i].memory_of));
  }
  state.put("applied", static_cast<std::int64_t>(applied));
  state.put("round", rounds);
  put_epoch(state, "epoch", epoch);
  state.put("optimal_after", optimal_after ? static_cast<std::int64_t>(*optimal_after) : -1);
  // Without an order there is one version, and that is the policy.
  const bool in_order = published.contains(applied) && epochs.contains(applied);
  const std::size_t first = in_order ? published.begin()->first : applied;
  state.put("first_version", static_cast<std::int64_t>(first));
  for (std::size_t version = first; version < applied; ++version) {
    state.put(fmt::format("version.{}", version), *published.at(version));
    put_epoch(state, fmt::format("version.{}.epoch", version), epochs.at(version));
  }
}

void Progress::load(const StateReader& state, const std::vector<torch::Tensor>& like) {
  if (count_of(state, "controllers") != controllers.size()) {
    fail_input("{}: a checkpoint of {} controllers; expected {}", state.file_name(),
               state.integer("controllers"), controllers.size());
  }
  for (std::size_t i = 0; i < controllers.size(); ++i) {
    const std::string name = fmt::format("controller.{}.", i);
    controllers[i].rng = rng_of(state, name + "rng");
    controllers[i].memory = state.reals(name + "memory");
    with_context(state.file_name() + ": " + name + "memory",
                 [&] { MovingBaseline::check_memory(controllers[i].memory); });
    controllers[i].memory_of = count_of(state, name + "memory_of");
  }
  applied = count_of(state, "applied");
  rounds = state.count("round");
  epoch = epoch_of(state, "epoch");
  optimal_after.reset();
  if (state.integer("optimal_after") >= 0) optimal_after = count_of(state, "optimal_after");
  published.clear();
  epochs = {{applied, epoch}};
  for (std::size_t version = count_of(state, "first_version"); version < applied; ++version) {
    const std::string name = fmt::format("version.{}", version);
    auto values = std::make_shared<const std::string>(state.text(name));
    with_context(state.file_name(), [&] {
      dist::Reader reader(*values);
      take_tensors(reader, like);
      reader.end();
    });
    published.emplace(version, std::move(values));
    epochs.emplace(version, epoch_of(state, name + ".epoch"));
  }
}

}  // namespace emplace::learn

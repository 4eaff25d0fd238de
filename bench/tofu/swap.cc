// Plans residency op by op in the order of the file (updates as soon as their gradients are there),
// then writes the plan as a graph. Invariant: after op i the device holds at most `room_` bytes of
// what the plan calls resident, beside what is being fetched ahead (at most `ahead_` bytes) and
// what is on its way to the host (about `behind_`); the simulator's peak decides, and the plan is
// made again with less room where it is above the memory. Not optimal: Belady's choice minimises
// misses, not bytes, and the windows are fixed. O(ops * resident tensors).
#include "tofu/swap.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"

#include "graph/copy.h"
#include "graph/graph_builder.h"

#include "sim/simulator.h"

namespace emplace::tofu {
namespace {

constexpr double kWindow = 0.1;  // of the memory: fetched ahead, and on its way out
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// Updates follow as soon as all that they wait for is done.
std::vector<OpId> execution_order(const Graph& graph) {
  std::vector<OpId> order;
  std::vector<bool> done(graph.num_ops(), false);
  std::vector<OpId> updates;
  const auto ready = [&](OpId op) {
    const auto inputs = graph.inputs(op);
    const auto after = graph.after(op);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](TensorId tensor) { return done[graph.producer(tensor)]; }) &&
           std::all_of(after.begin(), after.end(), [&](OpId before) { return done[before]; });
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kUpdate && !graph.is_source(op)) updates.push_back(op);
  }
  const auto take = [&](OpId op) {
    done[op] = true;
    if (!graph.is_source(op) && !graph.is_view(op)) order.push_back(op);
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (done[op] || (graph.phase(op) == Phase::kUpdate && !graph.is_source(op))) continue;
    take(op);
    if (graph.phase(op) != Phase::kBackward) continue;
    std::erase_if(updates, [&](OpId update) {
      if (!ready(update)) return false;
      take(update);
      return true;
    });
  }
  for (const OpId update : updates) take(update);
  return order;
}

class SwapPlanner {
 public:
  SwapPlanner(const Problem& problem, const SwapSettings& settings, double kept_share, Bytes room)
      : problem_(problem),
        graph_(problem.graph()),
        settings_(settings),
        builder_("swapping"),
        order_(execution_order(graph_)),
        root_(graph_.num_tensors()),
        uses_(graph_.num_tensors()),
        state_(graph_.num_tensors()),
        ahead_(static_cast<Bytes>(kWindow * static_cast<double>(settings.memory))),
        behind_(ahead_),
        room_(room) {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      for (const TensorId tensor : graph_.outputs(op)) {
        root_[tensor] = graph_.is_view(op) ? root_[graph_.inputs(op)[0]] : tensor;
      }
    }
    for (std::size_t at = 0; at < order_.size(); ++at) {
      for (const TensorId tensor : needed(order_[at])) uses_[tensor].push_back(at);
    }
    keep_weights(static_cast<Bytes>(kept_share * static_cast<double>(room)));
  }

  // Whether every op fits.
  bool plan() {
    for (std::size_t at = 0; at < order_.size(); ++at) {
      fetched_until_.push_back(fetched_);
      if (!make_room(at)) return false;
      fetch_inputs(at);
      run(at);
    }
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      if (state_[tensor].resident && state_[tensor].dirty && !state_[tensor].kept) {
        send_out(tensor);
      }
    }
    return true;
  }

  SwapOutcome simulate() && {
    ClusterSpec spec;
    spec.name = "one device and its host";
    for (const char* kind : {"device", "host"}) {
      DeviceKind own;
      own.name = kind;
      own.memory = kUnlimited;
      spec.kinds.push_back(own);
      Device device;
      device.name = kind;
      device.kind = kind;
      device.memory = kUnlimited;
      spec.devices.push_back(device);
    }
    LinkRule link;
    link.bandwidth = settings_.host_bandwidth;
    link.latency = settings_.host_latency;
    spec.links = {link};
    const auto swapping = compile(std::make_shared<const Graph>(std::move(builder_).build()),
                                  std::make_shared<const Cluster>(std::move(spec)),
                                  CompileOptions{.cost = CostMode::kMeasured,
                                                 .in_place = problem_.compile_options().in_place});
    const Timeline timeline = Simulator(swapping).run(placement_, {});
    return {.step = timeline.step,
            .peak = timeline.devices[0].peak,
            .sent_out = sent_out_,
            .fetched = fetched_};
  }

 private:
  struct State {
    bool resident = false;
    bool kept = false;   // for good
    bool dirty = false;  // the host has no copy, or an old one
    TensorId here = 0;   // of the new graph, where it is resident
    TensorId host = 0;   // where the host has it
    bool on_host = false;
    std::size_t next = 0;  // index into its uses
  };

  static constexpr DeviceId kDevice = 0;
  static constexpr DeviceId kHost = 1;

  Bytes bytes(TensorId tensor) const { return graph_.memory_bytes(tensor); }

  std::set<TensorId> needed(OpId op) const {
    std::set<TensorId> roots;
    for (const TensorId tensor : graph_.inputs(op)) roots.insert(root_[tensor]);
    return roots;
  }

  // Large ones are kept first: they cost the most to fetch, and as much room per byte.
  void keep_weights(Bytes room_for_weights) {
    std::vector<TensorId> weights;
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) {
      const OpRole role = graph_.role(graph_.producer(tensor));
      const bool lasting = role == OpRole::kParameter || role == OpRole::kBuffer;
      if (lasting && !uses_[tensor].empty()) weights.push_back(tensor);
    }
    std::stable_sort(weights.begin(), weights.end(),
                     [&](TensorId a, TensorId b) { return bytes(a) > bytes(b); });
    for (const TensorId tensor : weights) {
      if (bytes(tensor) > room_for_weights) continue;
      room_for_weights -= bytes(tensor);
      state_[tensor].kept = true;
      state_[tensor].resident = true;
      state_[tensor].here = source("buffer", tensor, kDevice);
      used_ += bytes(tensor);
    }
  }

  TensorId source(const char* type, TensorId tensor, DeviceId device) {
    OpSpec spec{.name = fmt::format("{} {}", device == kHost ? "host" : "kept", tensor),
                .type = type,
                .devices = {device == kHost ? "host" : "device"}};
    placement_.push_back(device);
    return builder_.add(std::move(spec), {{.bytes = bytes(tensor)}})[0];
  }

  std::size_t next_use(TensorId tensor) const {
    const State& state = state_[tensor];
    return state.next < uses_[tensor].size() ? uses_[tensor][state.next] : kNever;
  }

  // Instant, on the host: what it makes is sent to the device when it has run.
  TensorId add_fetch(TensorId tensor, TensorId from, std::string after) {
    OpSpec spec{.name = fmt::format("fetch {} {}", tensor, builder_.num_ops()),
                .type = "fetch",
                .inputs = {from},
                .time_us = {{"host", Decimal{}}},
                .devices = {"host"}};
    if (!after.empty()) spec.after.push_back(std::move(after));
    placement_.push_back(kHost);
    return builder_.add(std::move(spec), {{.bytes = bytes(tensor)}})[0];
  }

  void send_out(TensorId tensor) {
    State& state = state_[tensor];
    if (state.dirty) {
      OpSpec spec{.name = fmt::format("send out {} {}", tensor, builder_.num_ops()),
                  .type = "send out",
                  .inputs = {state.here},
                  .time_us = {{"host", Decimal{}}},
                  .devices = {"host"}};
      on_its_way_.push_back({spec.name, bytes(tensor)});
      bytes_on_their_way_ += bytes(tensor);
      sent_out_ += bytes(tensor);
      placement_.push_back(kHost);
      state.host = builder_.add(std::move(spec), {{.bytes = bytes(tensor)}})[0];
      state.on_host = true;
      state.dirty = false;
    }
    state.resident = false;
    used_ -= bytes(tensor);
  }

  bool make_room(std::size_t at) {
    const OpId op = order_[at];
    const std::set<TensorId> inputs = needed(op);
    Bytes wanted = graph_.temp_bytes(op);
    for (const TensorId tensor : inputs) wanted += state_[tensor].resident ? 0 : bytes(tensor);
    for (const TensorId tensor : graph_.outputs(op)) wanted += bytes(tensor);
    while (used_ + wanted > room_) {
      TensorId farthest = 0;
      std::size_t when = 0;
      for (const TensorId tensor : resident_) {
        if (inputs.contains(tensor) || next_use(tensor) <= when) continue;
        farthest = tensor;
        when = next_use(tensor);
      }
      if (when == 0) return false;
      resident_.erase(farthest);
      send_out(farthest);
    }
    return true;
  }

  void fetch_inputs(std::size_t at) {
    for (const TensorId tensor : needed(order_[at])) {
      State& state = state_[tensor];
      if (state.resident) continue;
      if (!state.on_host) {  // a source
        state.host = source("input", tensor, kHost);
        state.on_host = true;
      }
      // As early as all that is fetched from then on, until it is needed, is within the window.
      fetched_ += bytes(tensor);
      std::size_t since = at;
      while (since > 0 && fetched_ - fetched_until_[since - 1] <= ahead_) --since;
      state.here = add_fetch(tensor, state.host, since > 0 ? name_of(order_[since - 1]) : "");
      state.resident = true;
      state.dirty = false;
      resident_.insert(tensor);
      used_ += bytes(tensor);
    }
  }

  std::string name_of(OpId op) const { return fmt::format("run {}", op); }

  void run(std::size_t at) {
    const OpId op = order_[at];
    OpSpec spec{.name = name_of(op),
                .type = std::string(graph_.type(op)),
                .phase = graph_.phase(op) == Phase::kForward ? Phase::kForward : Phase::kBackward,
                .time_us = {{"device", Decimal{problem_.duration(op, settings_.device), -3}}},
                .temp_bytes = graph_.temp_bytes(op),
                .devices = {"device"}};
    if (at > 0) spec.after.push_back(name_of(order_[at - 1]));
    while (bytes_on_their_way_ > behind_) {
      spec.after.push_back(on_its_way_.front().first);
      bytes_on_their_way_ -= on_its_way_.front().second;
      on_its_way_.pop_front();
    }
    const std::set<TensorId> inputs = needed(op);
    for (const TensorId tensor : inputs) spec.inputs.push_back(state_[tensor].here);
    std::vector<TensorSpec> outputs;
    for (const TensorId tensor : graph_.outputs(op)) outputs.push_back({.bytes = bytes(tensor)});
    placement_.push_back(kDevice);
    const std::vector<TensorId> made = builder_.add(std::move(spec), outputs);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const TensorId tensor = graph_.outputs(op)[i];
      state_[tensor] = {.resident = true, .dirty = true, .here = made[i]};
      if (uses_[tensor].empty()) {
        state_[tensor].resident = false;
        continue;
      }
      resident_.insert(tensor);
      used_ += bytes(tensor);
    }
    if (graph_.phase(op) == Phase::kUpdate) write_weights(op, inputs);
    for (const TensorId tensor : inputs) leave_if_dead(tensor);
  }

  // The new values take the place of the old ones, which no op reads any more.
  void write_weights(OpId op, const std::set<TensorId>& inputs) {
    OpSpec spec{.name = fmt::format("written by {}", op),
                .type = "written",
                .time_us = {{"device", Decimal{}}},
                .after = {name_of(op)},
                .devices = {"device"}};
    std::vector<TensorSpec> outputs;
    std::vector<TensorId> written;
    for (const TensorId tensor : inputs) {
      if (!graph_.is_source(graph_.producer(tensor)) || state_[tensor].kept) continue;
      written.push_back(tensor);
      outputs.push_back({.bytes = bytes(tensor)});
    }
    if (written.empty()) return;
    placement_.push_back(kDevice);
    const std::vector<TensorId> made = builder_.add(std::move(spec), outputs);
    for (std::size_t i = 0; i < made.size(); ++i) {
      state_[written[i]].here = made[i];
      state_[written[i]].dirty = true;
    }
  }

  void leave_if_dead(TensorId tensor) {
    State& state = state_[tensor];
    ++state.next;
    if (next_use(tensor) != kNever || state.kept || !state.resident) return;
    resident_.erase(tensor);
    const bool lasting = graph_.is_source(graph_.producer(tensor));
    if (lasting && state.dirty) return send_out(tensor);
    state.resident = false;
    used_ -= bytes(tensor);
  }

  const Problem& problem_;
  const Graph& graph_;
  const SwapSettings& settings_;
  GraphBuilder builder_;
  Placement placement_;
  std::vector<OpId> order_;
  std::vector<TensorId> root_;
  std::vector<std::vector<std::size_t>> uses_;  // by tensor that is no view's: positions
  std::vector<State> state_;
  std::set<TensorId> resident_;       // but for what is kept
  std::vector<Bytes> fetched_until_;  // by position: before it
  std::deque<std::pair<std::string, Bytes>> on_its_way_;
  Bytes bytes_on_their_way_ = 0;
  Bytes ahead_;
  Bytes behind_;
  Bytes room_;
  Bytes used_ = 0;
  Bytes fetched_ = 0;
  Bytes sent_out_ = 0;
};

}  // namespace

std::optional<SwapOutcome> swap_step(const Problem& problem, const SwapSettings& settings) {
  constexpr int kTries = 4;
  std::optional<SwapOutcome> best;
  for (const double kept : {0.0, 0.3, 0.6, 0.9}) {
    auto room = static_cast<Bytes>((1 - 2 * kWindow) * static_cast<double>(settings.memory));
    for (int i = 0; i < kTries && room > 0; ++i) {
      SwapPlanner planner(problem, settings, kept, room);
      if (!planner.plan()) break;
      SwapOutcome outcome = std::move(planner).simulate();
      outcome.kept = kept;
      if (outcome.peak <= settings.memory) {
        if (!best || outcome.step < best->step) best = outcome;
        break;
      }
      room -= outcome.peak - settings.memory;
    }
  }
  return best;
}

}  // namespace emplace::tofu

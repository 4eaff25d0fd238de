#include "sim/stream_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace emplace {

class StreamPlan::Builder {
 public:
  Builder(StreamPlan& plan, const Problem& problem, const Placement& placement)
      : plan_(plan),
        problem_(problem),
        graph_(problem.graph()),
        placement_(placement),
        block_of_(graph_.num_tensors(), kNone) {}

  void build() {
    plan_.resident.assign(problem_.num_devices(), 0);
    plan_.num_channels = problem_.cluster().num_channels();
    for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
      plan_.gaps.push_back(problem_.cluster().device(device).gap);
    }
    for (OpId op = 0; op < graph_.num_ops(); ++op) add_op(op);
    for (TensorId tensor = 0; tensor < graph_.num_tensors(); ++tensor) add_uses(tensor);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      for (const OpId before : graph_.after(op)) followers_.emplace_back(before, op);
    }
    const std::size_t ops = graph_.num_ops();
    plan_.followers = Csr<std::uint32_t>::from_pairs(ops, followers_);
    plan_.sendings_of_op = Csr<std::uint32_t>::from_pairs(ops, sendings_of_op_);
    plan_.made = Csr<std::uint32_t>::from_pairs(ops, made_);
    plan_.used = Csr<std::uint32_t>::from_pairs(ops, used_);
    find_largest_load();
  }

 private:
  void add_op(OpId op) {
    plan_.device.push_back(placement_[op]);
    plan_.duration.push_back(problem_.duration(op, placement_[op]));
    plan_.temp.push_back(graph_.temp_bytes(op) - problem_.overwritten_bytes(op));
    plan_.resident[placement_[op]] += problem_.resident_bytes(op);
    std::vector<TensorId> inputs(graph_.inputs(op).begin(), graph_.inputs(op).end());
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    plan_.waits.push_back(static_cast<std::uint32_t>(inputs.size() + graph_.after(op).size()));
    const OpRole role = graph_.role(op);
    const bool lasts = role == OpRole::kParameter || role == OpRole::kBuffer;
    for (const TensorId tensor : graph_.outputs(op)) {
      if (graph_.is_view(op)) {
        block_of_[tensor] = block_of_[graph_.inputs(op)[0]];
      } else if (!lasts && graph_.memory_bytes(tensor) > 0) {
        block_of_[tensor] = add_block(placement_[op], graph_.memory_bytes(tensor));
        made_.emplace_back(op, block_of_[tensor]);
      }
    }
  }

  std::uint32_t add_block(DeviceId device, Bytes bytes) {
    plan_.blocks.push_back({device, bytes, 0});
    return static_cast<std::uint32_t>(plan_.blocks.size() - 1);
  }

  void use(OpId op, std::uint32_t block) {
    if (block == kNone) return;
    ++plan_.blocks[block].uses;
    used_.emplace_back(op, block);
  }

  // What ends the life of a tensor where it was made, and of its copies elsewhere.
  void add_uses(TensorId tensor) {
    const OpId producer = graph_.producer(tensor);
    const DeviceId home = placement_[producer];
    use(producer, block_of_[tensor]);
    std::map<DeviceId, std::vector<OpId>> elsewhere;
    for (const OpId consumer : graph_.consumers(tensor)) {
      if (placement_[consumer] == home) {
        followers_.emplace_back(producer, consumer);
        use(consumer, block_of_[tensor]);
      } else {
        elsewhere[placement_[consumer]].push_back(consumer);
      }
    }
    std::map<ChannelId, std::vector<DeviceId>> multicasts;
    for (const auto& [to, consumers] : elsewhere) {
      const Link& link = *problem_.cluster().link(home, to);
      if (link.multicast) {
        multicasts[link.channel].push_back(to);
      } else {
        add_sending(tensor, {to}, elsewhere);
      }
    }
    for (const auto& [channel, destinations] : multicasts) {
      add_sending(tensor, destinations, elsewhere);
    }
  }

  void add_sending(TensorId tensor, const std::vector<DeviceId>& destinations,
                   const std::map<DeviceId, std::vector<OpId>>& consumers) {
    const OpId producer = graph_.producer(tensor);
    Sending sending{.tensor = tensor,
                    .from = placement_[producer],
                    .lowest_to = destinations.front(),
                    .block = block_of_[tensor]};
    std::vector<std::uint32_t> receivers;
    std::vector<std::uint32_t> copies;
    for (const DeviceId to : destinations) {
      const Link& link = *problem_.cluster().link(sending.from, to);
      sending.channel = link.channel;
      sending.unlimited = link.unlimited;
      sending.length = std::max(sending.length, problem_.transfer_time(tensor, sending.from, to));
      sending.hold = std::max(sending.hold, link.hold);
      const std::uint32_t copy = add_block(to, graph_.memory_bytes(tensor));
      copies.push_back(copy);
      for (const OpId consumer : consumers.at(to)) {
        receivers.push_back(consumer);
        use(consumer, copy);
      }
    }
    if (sending.block != kNone) ++plan_.blocks[sending.block].uses;
    sendings_of_op_.emplace_back(producer, static_cast<std::uint32_t>(plan_.sendings.size()));
    plan_.sendings.push_back(sending);
    plan_.destinations.push_back(destinations);
    plan_.receivers.push_back(receivers);
    plan_.copies.push_back(copies);
  }

  void find_largest_load() {
    std::vector<Nanoseconds> loads(problem_.num_devices(), 0);
    std::vector<Nanoseconds> channel_loads(plan_.num_channels, 0);
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (plan_.duration[op] == 0) continue;
      loads[plan_.device[op]] += plan_.duration[op] + plan_.gaps[plan_.device[op]];
    }
    for (const Sending& sending : plan_.sendings) {
      if (sending.length == 0 || sending.unlimited) continue;
      channel_loads[sending.channel] += sending.length + sending.hold;
    }
    loads.insert(loads.end(), channel_loads.begin(), channel_loads.end());
    plan_.largest_load = *std::max_element(loads.begin(), loads.end());
  }

  StreamPlan& plan_;
  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  std::vector<std::uint32_t> block_of_;  // of a view's output: what it is a view of
  std::vector<std::pair<OpId, std::uint32_t>> followers_;
  std::vector<std::pair<OpId, std::uint32_t>> sendings_of_op_;
  std::vector<std::pair<OpId, std::uint32_t>> made_;
  std::vector<std::pair<OpId, std::uint32_t>> used_;
};

StreamPlan::StreamPlan(const Problem& problem, const Placement& placement) {
  Builder(*this, problem, placement).build();
}

}  // namespace emplace

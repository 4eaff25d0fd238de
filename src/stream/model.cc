#include "stream/model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace emplace {

StreamModel::StreamModel(const Problem& problem, Overlap overlap)
    : problem_(problem), overlap_(overlap) {
  add_items();
  add_memory();
  add_links();
  add_nets();
}

StreamModel::StreamModel(const Problem& problem, Overlap overlap, std::vector<Bytes> memory)
    : problem_(problem), overlap_(overlap), memory_(std::move(memory)) {
  EMPLACE_CHECK(memory_.size() == num_items());
  add_items();
  temp_.assign(num_items(), 0);
  add_links();
  add_nets();
}

void StreamModel::add_items() {
  times_.assign(static_cast<std::size_t>(num_items()) * num_devices(), 0);
  for (OpId op = 0; op < problem_.num_ops(); ++op) {
    const GroupId item = problem_.group_of(op);
    for (DeviceId device = 0; device < num_devices(); ++device) {
      times_[static_cast<std::size_t>(item) * num_devices() + device] +=
          problem_.duration(op, device);
    }
  }
  for (DeviceId device = 0; device < num_devices(); ++device) {
    pays_.push_back(problem_.cluster().device(device).free_communication ? 0 : 1);
  }
}

void StreamModel::add_memory() {
  const Graph& graph = problem_.graph();
  memory_.assign(num_items(), 0);
  temp_.assign(num_items(), 0);
  for (OpId op = 0; op < problem_.num_ops(); ++op) {
    const GroupId item = problem_.group_of(op);
    temp_[item] = std::max(temp_[item], graph.temp_bytes(op));
    memory_[item] += graph.persistent_bytes(op);
    if (graph.is_view(op)) continue;
    for (const TensorId tensor : graph.outputs(op)) memory_[item] += graph.memory_bytes(tensor);
  }
}

void StreamModel::add_links() {
  std::map<std::pair<std::int64_t, Nanoseconds>, std::uint32_t> classes;
  link_class_.assign(static_cast<std::size_t>(num_devices()) * num_devices(), 0);
  for (DeviceId from = 0; from < num_devices(); ++from) {
    for (DeviceId to = 0; to < num_devices(); ++to) {
      const Link* link = problem_.cluster().link(from, to);
      if (link == nullptr) continue;
      multicast_ = multicast_ || link->multicast;
      const auto next = static_cast<std::uint32_t>(classes.size());
      link_class_[static_cast<std::size_t>(from) * num_devices() + to] =
          classes.try_emplace({link->bandwidth, link->latency}, next).first->second;
    }
  }
  num_link_classes_ = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(classes.size()));
}

void StreamModel::add_nets() {
  const Graph& graph = problem_.graph();
  // Where links differ, which destination of a tensor is the slowest depends on its size: tensors
  // then stay apart.
  const bool merge = num_link_classes_ == 1;
  std::map<std::pair<GroupId, std::vector<std::uint32_t>>, std::uint32_t> known;
  std::vector<std::vector<TensorId>> tensors;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const GroupId source = problem_.group_of(graph.producer(tensor));
    std::vector<std::uint32_t> sinks;
    for (const OpId consumer : graph.consumers(tensor)) {
      if (problem_.group_of(consumer) != source) sinks.push_back(problem_.group_of(consumer));
    }
    if (sinks.empty()) continue;
    std::sort(sinks.begin(), sinks.end());
    sinks.erase(std::unique(sinks.begin(), sinks.end()), sinks.end());
    const auto next = num_nets();
    std::uint32_t net = next;
    if (merge) net = known.try_emplace({source, sinks}, next).first->second;
    if (net == next) {
      source_.push_back(source);
      sinks_.push_back(sinks);
      tensors.emplace_back();
    }
    tensors[net].push_back(tensor);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
  for (std::uint32_t net = 0; net < num_nets(); ++net) {
    tensors_.push_back(tensors[net]);
    members.emplace_back(source_[net], net);
    for (const std::uint32_t sink : sinks_[net]) members.emplace_back(sink, net);
  }
  nets_ = Csr<std::uint32_t>::from_pairs(num_items(), members);

  lengths_.assign(static_cast<std::size_t>(num_link_classes_) * num_nets(), 0);
  std::vector<bool> filled(num_link_classes_, false);
  for (DeviceId from = 0; from < num_devices(); ++from) {
    for (DeviceId to = 0; to < num_devices(); ++to) {
      if (problem_.cluster().link(from, to) == nullptr) continue;
      const std::uint32_t link = link_class_[static_cast<std::size_t>(from) * num_devices() + to];
      if (filled[link]) continue;
      filled[link] = true;
      for (std::uint32_t net = 0; net < num_nets(); ++net) {
        for (const TensorId tensor : tensors_[net]) {
          lengths_[static_cast<std::size_t>(link) * num_nets() + net] +=
              problem_.transfer_time(tensor, from, to);
        }
      }
    }
  }
}

}  // namespace emplace

#include "report/page_columns.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "sim/chain_walk.h"
#include "sim/memory_over_time.h"

#include "report/model_map.h"
#include "report/stream_report.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

// value(i) of all i below `count`.
template <class Value>
Json column(std::size_t count, Value&& value) {
  Json::array_t list;
  list.reserve(count);
  for (std::size_t i = 0; i < count; ++i) list.emplace_back(value(i));
  return list;
}

std::int64_t number_or_none(std::uint32_t index) {
  return index == ChainSegment::kNone ? -1 : static_cast<std::int64_t>(index);
}

// Texts by their numbers, in the order in which they come.
class TextNumbers {
 public:
  std::size_t operator()(std::string_view text) {
    const auto [found, fresh] = numbers_.try_emplace(std::string(text), texts_.size());
    if (fresh) texts_.push_back(std::string(text));
    return found->second;
  }
  Json take() { return std::move(texts_); }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json::array_t texts_;
};

Json transfer_columns(const Graph& graph, const std::vector<Transfer>& all) {
  const auto of = [&](auto&& value) {
    return column(all.size(), [&](std::size_t i) { return value(all[i]); });
  };
  return {
      {"op", of([&](const Transfer& t) { return std::uint32_t{graph.producer(t.tensor)}; })},
      {"bytes", of([&](const Transfer& t) { return graph.bytes(t.tensor); })},
      {"from", of([](const Transfer& t) { return std::uint16_t{t.from}; })},
      {"to", of([](const Transfer& t) { return std::uint16_t{t.to}; })},
      {"channel", of([](const Transfer& t) { return number_or_none(t.channel); })},
      {"queued", of([](const Transfer& t) { return t.queued; })},
      {"start", of([](const Transfer& t) { return t.start; })},
      {"length", of([](const Transfer& t) { return t.finish - t.start; })},
      {"shared", of([](const Transfer& t) { return t.shared ? 1 : 0; })},
  };
}

Json inputs_of(const Graph& graph) {
  return column(graph.num_ops(), [&](std::size_t op) {
    Json::array_t producers;
    for (const TensorId tensor : graph.inputs(static_cast<OpId>(op))) {
      producers.emplace_back(std::uint32_t{graph.producer(tensor)});
    }
    return producers;
  });
}

double hundredths(double value) {
  return std::round(value * 100) / 100;
}

Json memory_of_device(const DeviceMemory& memory, Nanoseconds step) {
  constexpr std::size_t kParts = 800;
  const std::vector<MemoryMoment> moments = thinned(memory.moments, step, kParts);
  Json held = Json::array();
  for (std::size_t use = 0; use < kMemoryUses; ++use) {
    held.push_back(column(moments.size(), [&](std::size_t i) { return moments[i].held[use]; }));
  }
  Json largest = Json::array();
  for (const MemoryHolder& holder : memory.largest) {
    largest.push_back({{"op", std::uint32_t{holder.op}},
                       {"use", static_cast<int>(holder.use)},
                       {"bytes", holder.bytes},
                       {"begin", holder.begin},
                       {"end", holder.end},
                       {"step", holder.step}});
  }
  return {{"time", column(moments.size(), [&](std::size_t i) { return moments[i].time; })},
          {"held", std::move(held)},
          {"peak", sum_of(memory.peak.held)},
          {"peak_time", memory.peak.time},
          {"largest", std::move(largest)}};
}

}  // namespace

Json cluster_columns(const Cluster& cluster) {
  Json devices = Json::array();
  Json links = Json::array();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory", device.memory == kUnlimited ? Json() : Json(device.memory)},
                       {"cpu", cluster.is_cpu(id)}});
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      const Link* link = cluster.link(id, to);
      if (link == nullptr) continue;
      links.push_back({std::uint16_t{id}, std::uint16_t{to}, std::uint32_t{link->channel},
                       link->bandwidth, link->latency});
    }
  }
  return {{"name", cluster.name()},
          {"devices", std::move(devices)},
          {"channels", column(cluster.num_channels(),
                              [&](std::size_t id) {
                                return cluster.channel_name(static_cast<ChannelId>(id));
                              })},
          {"links", std::move(links)}};
}

Json op_columns(const Problem& problem, const Placement& placement, const Modules& modules) {
  const Graph& graph = problem.graph();
  TextNumbers types;
  const auto of = [&](auto&& value) {
    return column(graph.num_ops(), [&](std::size_t i) { return value(static_cast<OpId>(i)); });
  };
  Json json{
      {"name", of([&](OpId op) { return std::string(graph.op_name(op)); })},
      {"type", of([&](OpId op) { return types(graph.type(op)); })},
      {"module", of([&](OpId op) { return modules.of_op[op]; })},
      {"phase", of([&](OpId op) { return static_cast<int>(graph.phase(op)); })},
      {"device", of([&](OpId op) { return std::uint16_t{placement[op]}; })},
      {"bytes", of([&](OpId op) {
         Bytes bytes = 0;
         for (const TensorId tensor : graph.outputs(op)) bytes += graph.bytes(tensor);
         return bytes;
       })},
      {"inputs", inputs_of(graph)},
  };
  json["types"] = types.take();
  json["modules"] = modules.names;
  return json;
}

Json step_columns(const Problem& problem, const Timeline& timeline) {
  const auto& ops = timeline.ops;
  return {
      {"start", column(ops.size(), [&](std::size_t i) { return ops[i].start; })},
      {"length", column(ops.size(), [&](std::size_t i) { return ops[i].finish - ops[i].start; })},
      {"transfers", transfer_columns(problem.graph(), timeline.transfers)}};
}

Json reader_columns(const Problem& problem, const Placement& placement, const Timeline& timeline) {
  return column(timeline.transfers.size(), [&](std::size_t i) {
    const Transfer& transfer = timeline.transfers[i];
    Json::array_t readers;
    for (const OpId reader : problem.graph().consumers(transfer.tensor)) {
      if (placement[reader] == transfer.to) readers.emplace_back(std::uint32_t{reader});
    }
    return readers;
  });
}

Json cause_columns(const Problem& problem, const Placement& placement, const Timeline& timeline) {
  const ChainWalk walk(problem, placement, timeline);
  std::vector<ChainWalk::Cause> causes;
  for (OpId op = 0; op < problem.num_ops(); ++op) causes.push_back(walk.latest_cause(op));
  const auto of = [&](auto&& value) {
    return column(causes.size(), [&](std::size_t i) { return value(causes[i]); });
  };
  return {{"time", of([](const ChainWalk::Cause& c) { return c.time; })},
          {"op", of([](const ChainWalk::Cause& c) { return number_or_none(c.op); })},
          {"transfer", of([](const ChainWalk::Cause& c) { return number_or_none(c.transfer); })}};
}

Json chain_columns(const CriticalChain& chain) {
  const auto of = [&](auto&& value) {
    return column(chain.segments.size(), [&](std::size_t i) { return value(chain.segments[i]); });
  };
  return {
      {"kind", of([](const ChainSegment& s) { return static_cast<int>(s.kind); })},
      {"start", of([](const ChainSegment& s) { return s.start; })},
      {"length", of([](const ChainSegment& s) { return s.length(); })},
      {"op", of([](const ChainSegment& s) { return std::uint32_t{s.op}; })},
      {"transfer", of([](const ChainSegment& s) { return number_or_none(s.transfer); })},
      {"ahead", of([](const ChainSegment& s) { return s.ahead; })},
      {"longest", of([](const ChainSegment& s) { return number_or_none(s.longest_ahead); })},
  };
}

Json memory_columns(const Problem& problem, const Placement& placement,
                    std::span<const Timeline> steps, Nanoseconds last) {
  constexpr std::size_t kLargest = 10;
  Json devices = Json::array();
  for (const DeviceMemory& memory : memory_over_stream(problem, placement, steps, last, kLargest)) {
    devices.push_back(memory_of_device(memory, last));
  }
  return {{"uses", column(kMemoryUses,
                          [](std::size_t use) {
                            return std::string(memory_use_name(static_cast<MemoryUse>(use)));
                          })},
          {"devices", std::move(devices)}};
}

Json stream_columns(const Problem& problem, const Placement& placement, const StreamRun& stream) {
  Json causes = Json::array();
  Json finished = Json::array();
  for (const Timeline& step : stream.steps) {
    causes.push_back(cause_columns(problem, placement, step));
    Nanoseconds finish = 0;
    for (const OpSpan& span : step.ops) finish = std::max(finish, span.finish);
    finished.push_back(finish);
  }
  Json stages = Json::array();
  for (const DeviceId device : stages_of(problem, placement, stream.steps.front())) {
    stages.push_back(std::uint16_t{device});
  }
  return {{"entered", stream.entered},
          {"finished", std::move(finished)},
          {"stages", std::move(stages)},
          {"causes", std::move(causes)}};
}

Json map_columns(const Graph& graph, const Modules& modules) {
  const std::vector<MapBox> boxes = map_of_model(graph, modules);
  const auto of = [&](auto&& value) {
    return column(boxes.size(), [&](std::size_t i) { return value(boxes[i]); });
  };
  return {{"parent", of([](const MapBox& b) { return b.parent; })},
          {"name", of([](const MapBox& b) { return b.name; })},
          {"path", of([](const MapBox& b) { return b.path; })},
          {"x", of([](const MapBox& b) { return hundredths(b.x); })},
          {"y", of([](const MapBox& b) { return hundredths(b.y); })},
          {"width", of([](const MapBox& b) { return hundredths(b.width); })},
          {"height", of([](const MapBox& b) { return hundredths(b.height); })},
          {"ops_x", of([](const MapBox& b) { return hundredths(b.ops_x); })},
          {"ops_y", of([](const MapBox& b) { return hundredths(b.ops_y); })},
          {"columns", of([](const MapBox& b) { return b.columns; })},
          {"ops", of([](const MapBox& b) {
             return column(b.ops.size(), [&](std::size_t i) { return std::uint32_t{b.ops[i]}; });
           })}};
}

}  // namespace emplace

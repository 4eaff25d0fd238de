#include <algorithm>

#include <nlohmann/json.hpp>

#include "report/alternatives.h"
#include "report/explanation.h"
#include "report/whole_modules.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ChainSegment::Kind;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kCompute:
      return "compute";
    case Kind::kTransfer:
      return "transfer";
    case Kind::kDeviceWait:
      return "device_wait";
    case Kind::kChannelWait:
      return "channel_wait";
  }
  return "";
}

Json transfer_fields(const Assessment& assessment, std::uint32_t index) {
  const Graph& graph = assessment.problem().graph();
  const Cluster& cluster = assessment.problem().cluster();
  const Transfer& transfer = assessment.timeline.transfers[index];
  return {{"producer", graph.op_name(graph.producer(transfer.tensor))},
          {"from", cluster.device(transfer.from).name},
          {"to", cluster.device(transfer.to).name},
          {"channel", cluster.channel_name(transfer.channel)},
          {"bytes", graph.bytes(transfer.tensor)}};
}

Json segment_to_json(const ChainSegment& segment, const Assessment& assessment) {
  const Graph& graph = assessment.problem().graph();
  const Cluster& cluster = assessment.problem().cluster();
  Json json{{"kind", name_of(segment.kind)},
            {"start_ns", segment.start},
            {"length_ns", segment.length()},
            {"op", graph.op_name(segment.op)},
            {"device", cluster.device(assessment.placement[segment.op]).name}};
  if (segment.transfer != ChainSegment::kNone) {
    json["transfer"] = transfer_fields(assessment, segment.transfer);
  }
  if (segment.kind == Kind::kDeviceWait || segment.kind == Kind::kChannelWait) {
    json["ahead"] = segment.ahead;
    json["idle_ns"] = segment.idle;
  }
  if (segment.longest_ahead == ChainSegment::kNone) return json;
  if (segment.kind == Kind::kDeviceWait) {
    json["longest_ahead"] = graph.op_name(segment.longest_ahead);
  } else {
    json["longest_ahead"] = transfer_fields(assessment, segment.longest_ahead);
  }
  return json;
}

// Its totals and its longest segments, in the order of time.
Json chain_to_json(const CriticalChain& chain, const Assessment& assessment) {
  constexpr std::size_t kShown = 20;
  std::vector<const ChainSegment*> longest;
  for (const ChainSegment& segment : chain.segments) longest.push_back(&segment);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto* a, const auto* b) { return a->length() > b->length(); });
  longest.resize(std::min(kShown, longest.size()));
  std::sort(longest.begin(), longest.end());
  Json json{{"compute_ns", chain.compute},
            {"transfer_ns", chain.transfer},
            {"device_wait_ns", chain.device_wait},
            {"channel_wait_ns", chain.channel_wait},
            {"idle_ns", chain.idle},
            {"segments", chain.segments.size()},
            {"longest", Json::array()}};
  for (const ChainSegment* segment : longest) {
    json["longest"].push_back(segment_to_json(*segment, assessment));
  }
  return json;
}

Json contents_to_json(const Explanation& explanation, const Cluster& cluster) {
  Json json = Json::array();
  for (const DeviceId id : explanation.used) {
    const DeviceContents& held = explanation.contents[id];
    Json modules = Json::array();
    for (const HeldModules& range : held.modules) {
      modules.push_back({{"first", range.first},
                         {"last", range.last},
                         {"count", range.count},
                         {"share", range.share},
                         {"work", range.work}});
    }
    json.push_back({{"device", cluster.device(id).name},
                    {"work", held.work},
                    {"resident_bytes", held.resident},
                    {"modules", std::move(modules)}});
  }
  return json;
}

}  // namespace

Json to_json(const Explanation& explanation, const Assessment& assessment) {
  const Cluster& cluster = assessment.problem().cluster();
  const char* time = assessment.throughput ? "period_ns" : "step_ns";
  Json json{{"chain", chain_to_json(explanation.chain, assessment)}, {"loads", Json::array()}};
  constexpr std::size_t kLoads = 2;
  for (std::size_t i = 0; i < std::min(kLoads, explanation.loads.size()); ++i) {
    const Load& load = explanation.loads[i];
    json["loads"].push_back({{"kind", load.is_device ? "device" : "channel"},
                             {"name", load.name},
                             {"load_ns", load.time}});
  }
  json["contents"] = contents_to_json(explanation, cluster);
  json["cut_modules"] = Json::array();
  for (const CutModule& cut : explanation.cut) {
    Json devices = Json::array();
    for (const DeviceId id : cut.devices) devices.push_back(cluster.device(id).name);
    json["cut_modules"].push_back({{"module", cut.name}, {"devices", std::move(devices)}});
  }
  if (explanation.whole_modules) {
    json["whole_modules"] = to_json(*explanation.whole_modules, time);
  }
  const auto one_device = [&](const std::optional<SingleDevice>& one) -> Json {
    if (!one) return nullptr;
    return {{"device", cluster.device(one->device).name},
            {time, one->value.step},
            {"fits", one->value.fits()},
            {"peak_bytes", one->used}};
  };
  json["fastest_device"] = one_device(explanation.fastest_device);
  json["fitting_device"] = one_device(explanation.fitting_device);
  if (explanation.best_split) {
    const Split& split = *explanation.best_split;
    json["best_split"] = {
        {"placer", split.placer}, {time, split.value.step}, {"fits", split.value.fits()}};
  }
  add_alternatives(json, explanation, assessment);
  return json;
}

}  // namespace emplace

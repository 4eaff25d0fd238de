#include "placers/external/support/protocol.h"

#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "emplace.placer/1";

// Ids are no numbers to the JSON library.
std::int64_t number(std::int64_t id) {
  return id;
}

template <class Range>
Json list_of(const Range& range) {
  Json list = Json::array();
  for (const auto& item : range) list.push_back(number(item));
  return list;
}

Json bytes_or_null(Bytes bytes) {
  return bytes == kUnlimited ? Json() : Json(bytes);
}

Json devices_json(const Cluster& cluster) {
  Json devices = Json::array();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    const Device& device = cluster.device(id);
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory_bytes", bytes_or_null(device.memory)}});
  }
  return devices;
}

Json links_json(const Cluster& cluster) {
  Json links = Json::array();
  for (DeviceId from = 0; from < cluster.num_devices(); ++from) {
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      const Link* link = cluster.link(from, to);
      if (link == nullptr) continue;
      links.push_back({{"from", number(from)},
                       {"to", number(to)},
                       {"latency_ns", link->latency},
                       {"bytes_per_second", link->bandwidth},
                       {"channel", number(link->channel)}});
      if (link->unlimited) links.back()["unlimited"] = true;
    }
  }
  return links;
}

Json tensors_json(const Graph& graph) {
  Json tensors = Json::array();
  for (TensorId id = 0; id < graph.num_tensors(); ++id) {
    tensors.push_back({{"producer", number(graph.producer(id))},
                       {"bytes", graph.bytes(id)},
                       {"memory_bytes", graph.memory_bytes(id)}});
  }
  return tensors;
}

Json op_json(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  Json times = Json::array();
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    times.push_back(problem.duration(op, device));
  }
  return {{"name", graph.op_name(op)},
          {"type", graph.type(op)},
          {"module", graph.module(op)},
          {"phase", phase_name(graph.phase(op))},
          {"group", number(problem.group_of(op))},
          {"inputs", list_of(graph.inputs(op))},
          {"outputs", list_of(graph.outputs(op))},
          {"after", list_of(graph.after(op))},
          {"view", graph.is_view(op)},
          {"resident_bytes", problem.resident_bytes(op)},
          {"temp_bytes", graph.temp_bytes(op)},
          {"time_ns", std::move(times)}};
}

Json groups_json(const Problem& problem) {
  Json groups = Json::array();
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    groups.push_back({{"ops", list_of(problem.group_ops(group))},
                      {"devices", list_of(problem.allowed_devices(group))}});
  }
  return groups;
}

Json starts_json(const PlaceContext& context) {
  const Problem& problem = context.problem();
  Json starts = Json::array();
  for (const Solution& start : context.starts()) {
    Json devices = Json::array();
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      devices.push_back(number(start.placement[problem.group_ops(group)[0]]));
    }
    starts.push_back(std::move(devices));
  }
  return starts;
}

std::string_view time_key(const Objective& objective) {
  return objective.match([](const StepTime&) { return std::string_view("step_ns"); },
                         [](const StreamPeriod&) { return std::string_view("period_ns"); });
}

// What is above 2^63 - 1 is an integer to the JSON library too, and would become another one.
bool is_whole_number(const Json& json) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return json.is_number_integer() &&
         (!json.is_number_unsigned() || json.get<std::uint64_t>() <= kMost);
}

std::vector<std::int64_t> integers(const Json& list, std::string_view field) {
  std::vector<std::int64_t> result;
  if (!list.is_array()) fail_input("{}: expected a list of whole numbers", field);
  for (const Json& item : list) {
    if (!is_whole_number(item)) {
      fail_input("{}: expected a list of whole numbers below 2^63", field);
    }
    result.push_back(item.get<std::int64_t>());
  }
  return result;
}

void read_placements(const Json& list, ExternalRequest& request) {
  if (!list.is_array()) fail_input("evaluate: expected a list of devices, or a list of such lists");
  request.many = !list.empty() && list.front().is_array();
  if (!request.many) {
    request.devices.push_back(integers(list, "evaluate"));
    return;
  }
  for (const Json& item : list) request.devices.push_back(integers(item, "evaluate"));
}

Json value_json(const ExternalValue& value, const Objective& objective) {
  if (value.error) return {{"error", *value.error}};
  Json json;
  json[std::string(time_key(objective))] = value.value.step;
  json["fits"] = value.value.fits();
  json["shortfall_bytes"] = value.value.overflow;
  json["peak_bytes"] = list_of(value.peaks);
  return json;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string problem_line(const PlaceContext& context, const Budget& budget, std::uint64_t seed) {
  const Problem& problem = context.problem();
  Json json;
  json["format"] = kFormat;
  json["graph"] = problem.graph().name();
  json["cluster"] = problem.cluster().name();
  json["objective"] = context.objective().quantity();
  json["seed"] = seed;
  json["budget"] = {{"seconds", budget.seconds ? Json(*budget.seconds) : Json()},
                    {"evaluations", budget.evaluations ? Json(*budget.evaluations) : Json()}};
  json["devices"] = devices_json(problem.cluster());
  json["links"] = links_json(problem.cluster());
  json["tensors"] = tensors_json(problem.graph());
  json["ops"] = Json::array();
  for (OpId op = 0; op < problem.num_ops(); ++op) json["ops"].push_back(op_json(problem, op));
  json["groups"] = groups_json(problem);
  json["starts"] = starts_json(context);
  return line_of(json);
}

ExternalRequest read_request(std::string_view line, const Problem& problem) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail_input("is no JSON object");
  ExternalRequest request;
  for (const auto& [key, value] : json.items()) {
    if (key == "evaluate") {
      read_placements(value, request);
    } else if (key == "place") {
      request.kind = ExternalRequest::Kind::kPlace;
      if (!value.is_null()) request.devices.push_back(integers(value, "place"));
    } else if (key == "priorities") {
      request.schedule.priorities = integers(value, "priorities");
      if (request.schedule.priorities.size() != problem.num_ops()) {
        fail_input("priorities: expected {} numbers, one for each op", problem.num_ops());
      }
    } else {
      fail_input("unknown field '{}'", key);
    }
  }
  if (json.contains("evaluate") == json.contains("place")) {
    fail_input("expected one of the fields evaluate and place");
  }
  return request;
}

Placement read_devices(const std::vector<std::int64_t>& devices, const Problem& problem) {
  if (devices.size() != problem.num_groups()) {
    fail_input("expected {} devices, one for each group, instead of {}", problem.num_groups(),
               devices.size());
  }
  std::vector<DeviceId> device_of_group;
  for (std::size_t group = 0; group < devices.size(); ++group) {
    const std::int64_t device = devices[group];
    if (device < 0 || device >= problem.num_devices()) {
      fail_input("group {}: there is no device {}; expected 0 to {}", group, device,
                 problem.num_devices() - 1);
    }
    device_of_group.push_back(static_cast<DeviceId>(device));
  }
  Placement placement = expand_groups(problem, device_of_group);
  check_placement(problem, placement);
  return placement;
}

std::string values_line(const std::vector<ExternalValue>& values, bool many,
                        const Objective& objective, std::string_view stop) {
  Json json = Json::object();
  if (many) {
    json["results"] = Json::array();
    for (const ExternalValue& value : values) {
      json["results"].push_back(value_json(value, objective));
    }
  } else if (!values.empty()) {
    json = value_json(values.front(), objective);
  }
  if (!stop.empty()) json["stop"] = stop;
  return line_of(json);
}

}  // namespace emplace

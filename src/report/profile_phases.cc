// Phases of a profile as lines of a file.
#include <cstdint>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.h"

#include "io/cluster_yaml_writer.h"
#include "report/profile_report.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

Json link_samples(const std::vector<LinkSample>& samples) {
  Json list = Json::array();
  for (const LinkSample& sample : samples) {
    list.push_back({sample.bytes, sample.time});
    if (sample.within_step) list.back().push_back(1);
  }
  return list;
}

// What is none, or more than 64 bits hold, would become any number.
std::int64_t whole_number(const Json& json) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool too_large = json.is_number_unsigned() && json.get<std::uint64_t>() > kLargest;
  if (!json.is_number_integer() || too_large) {
    fail_input("'{}' is no whole number of 64 bits", json.dump());
  }
  return json;
}

std::vector<std::int64_t> whole_numbers(const Json& json) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : json) numbers.push_back(whole_number(number));
  return numbers;
}

ProfilePhase phase_of(const Json& json) {
  ProfilePhase phase;
  phase.reference = whole_number(json.at("reference_ns"));
  for (const Json& kind : json.at("kinds")) {
    phase.kinds.push_back({.step = whole_number(kind.at("step_ns")),
                           .ops = whole_numbers(kind.at("ops_ns")),
                           .temporary = whole_numbers(kind.at("temporary_bytes")),
                           .busy_ops = whole_numbers(kind.at("busy_ops_ns"))});
  }
  for (const Json& link : json.at("links")) {
    auto& samples = phase.links.emplace_back();
    for (const Json& sample : link) {
      samples.push_back({whole_number(sample.at(0)), whole_number(sample.at(1)),
                         sample.size() > 2 && whole_number(sample.at(2)) != 0});
    }
  }
  return phase;
}

}  // namespace

std::string phases_header(const Graph& graph, const Cluster& cluster,
                          const ProfileSettings& settings) {
  std::string names;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    names += fmt::format("{}:{};", graph.op_name(op), graph.type(op));
  }
  const Json json{{"format", "emplace.profile-phases/1"},
                  {"graph", graph.name()},
                  {"ops", fmt::format("{:x}", std::hash<std::string>{}(names))},
                  {"cluster", write_cluster_yaml(cluster.spec())},
                  {"steps", settings.measure.steps},
                  {"warm_up", settings.measure.warm_up},
                  {"busy", settings.busy},
                  {"numbers", static_cast<int>(settings.measure.numbers)}};
  return json.dump() + "\n";
}

std::string phase_line(const ProfilePhase& phase) {
  Json json;
  json["reference_ns"] = phase.reference;
  for (const ProfilePhase::Kind& kind : phase.kinds) {
    json["kinds"].push_back({{"step_ns", kind.step},
                             {"ops_ns", kind.ops},
                             {"temporary_bytes", kind.temporary},
                             {"busy_ops_ns", kind.busy_ops}});
  }
  json["links"] = Json::array();
  for (const auto& samples : phase.links) json["links"].push_back(link_samples(samples));
  return json.dump() + "\n";
}

std::vector<ProfilePhase> parse_phases(std::string_view content, const std::string& header) {
  if (!content.starts_with(header)) {
    fail_input("its phases are of another model, cluster or setting; expected those of this one");
  }
  content.remove_prefix(header.size());
  std::vector<ProfilePhase> phases;
  for (std::size_t end = content.find('\n'); end != std::string_view::npos;
       end = content.find('\n')) {
    try {
      phases.push_back(with_context(fmt::format("phase {}", phases.size() + 1),
                                    [&] { return phase_of(Json::parse(content.substr(0, end))); }));
    } catch (const nlohmann::json::exception& error) {
      fail_input("phase {}: {}", phases.size() + 1, error.what());
    }
    content.remove_prefix(end + 1);
  }
  return phases;
}

}  // namespace emplace

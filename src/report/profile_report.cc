#include "report/profile_report.h"

#include <cmath>
#include <functional>

#include <nlohmann/json.hpp>

#include "base/error.h"

#include "io/cluster_yaml_writer.h"
#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

std::string kind_table(const Profile& profile) {
  Table table({{"kind"},
               {"measured on"},
               {"step", Table::Align::kRight},
               {"phases differ by", Table::Align::kRight},
               {"sum of ops", Table::Align::kRight},
               {"between ops", Table::Align::kRight},
               {"ops when all are busy", Table::Align::kRight}});
  for (const KindProfile& kind : profile.kinds) {
    table.add({kind.kind, kind.device, format_time(kind.step.median),
               fmt::format("{:.1f} %", 100 * kind.step.relative()), format_time(kind.ops),
               format_time(kind.gap),
               kind.busy_ratio == 0 ? "" : fmt::format("{:+.1f} %", 100 * (kind.busy_ratio - 1))});
  }
  return table.to_string();
}

std::string link_table(const Profile& profile) {
  if (profile.links.empty()) return "";
  Table table({{"link"},
               {"latency", Table::Align::kRight},
               {"beside it", Table::Align::kRight},
               {"bandwidth", Table::Align::kRight},
               {"error of the fit", Table::Align::kRight}});
  for (const LinkProfile& link : profile.links) {
    table.add({fmt::format("{} -> {}", link.from, link.to), format_time(link.fit.latency),
               link.added == 0 ? "" : "+ " + format_time(link.added),
               fmt::format("{:.2f} GB/s", static_cast<double>(link.fit.bandwidth) / 1e9),
               link.measured    ? fmt::format("{:.0f} %", 100 * link.fit.error)
               : link.throttled ? "throttled"
                                : "not used"});
  }
  return "\n" + table.to_string();
}

Json link_samples(const std::vector<LinkSample>& samples) {
  Json list = Json::array();
  for (const LinkSample& sample : samples) list.push_back({sample.bytes, sample.time});
  return list;
}

// What is none, or more than 64 bits hold, would become any number.
std::int64_t whole_number(const Json& json) {
  if (!json.is_number_integer()) fail_input("'{}' is no whole number", json.dump());
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
      samples.push_back({whole_number(sample.at(0)), whole_number(sample.at(1))});
    }
  }
  return phase;
}

std::string learned_text(const Profile& profile) {
  if (!profile.transfers) return "";
  const LearnedTransfers& learned = *profile.transfers;
  if (learned.failed) {
    return "\nA step that a search proposed failed, so what transfers take beside the links is not "
           "known.\n";
  }
  if (learned.near) return "";
  return fmt::format(
      "\nWhat transfers take beside the links is not settled: the last of {} placements that a "
      "search proposed took {:.1f} % {} than predicted; expected 2 % at most.\n",
      learned.proposals, 100 * std::abs(1 / (1 + learned.error) - 1),
      learned.error < 0 ? "longer" : "less");
}

}  // namespace

std::string to_text(const Profile& profile) {
  return kind_table(profile) + link_table(profile) + learned_text(profile) +
         fmt::format("\nThe same work took up to {:.1f} % longer in one phase than in another.\n",
                     100 * (profile.drift - 1));
}

std::string to_json(const Profile& profile) {
  Json json;
  for (const KindProfile& kind : profile.kinds) {
    json["kinds"].push_back({{"kind", kind.kind},
                             {"device", kind.device},
                             {"step_ms", static_cast<double>(kind.step.median) / 1e6},
                             {"phases_differ", kind.step.relative()},
                             {"ops_ms", static_cast<double>(kind.ops) / 1e6},
                             {"gap_us", static_cast<double>(kind.gap) / 1e3},
                             {"busy_ratio", kind.busy_ratio}});
  }
  json["links"] = Json::array();
  for (const LinkProfile& link : profile.links) {
    json["links"].push_back({{"from", link.from},
                             {"to", link.to},
                             {"measured", link.measured},
                             {"latency_us", static_cast<double>(link.fit.latency) / 1e3},
                             {"added_us", static_cast<double>(link.added) / 1e3},
                             {"bandwidth", link.fit.bandwidth},
                             {"error", link.fit.error}});
  }
  if (profile.transfers) {
    json["transfers"] = {{"proposals", profile.transfers->proposals},
                         {"error", profile.transfers->error},
                         {"near", profile.transfers->near},
                         {"failed", profile.transfers->failed}};
  }
  json["drift"] = profile.drift;
  return json.dump();
}

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

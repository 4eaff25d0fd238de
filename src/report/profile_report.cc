#include "report/profile_report.h"

#include <cmath>

#include <nlohmann/json.hpp>

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

}  // namespace emplace

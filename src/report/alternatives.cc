#include "report/alternatives.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "report/prose.h"
#include "report/table.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

double as_fast(Nanoseconds slower, Nanoseconds faster) {
  return static_cast<double>(slower) / static_cast<double>(std::max<Nanoseconds>(1, faster));
}

// Worth saying where it is clearly faster than what was found, or all that fits.
bool helps(const WayToRun& parts, const Assessment& assessment) {
  constexpr double kClearly = 1.02;
  if (!parts.fits) return false;
  return !assessment.fits() || as_fast(assessment.time(), parts.step) >= kClearly;
}

std::string describe_parts(const WayToRun& parts, const Assessment& assessment, Nanoseconds bound) {
  const std::string time = format_time(parts.step);
  const std::string text =
      !assessment.fits()
          ? fmt::format("in parts it fits: dividing tensors by {} takes {}", parts.name, time)
      : parts.step < bound
          ? fmt::format(
                "no placement of whole ops can beat {}; dividing tensors by {} takes {}, "
                "{:.2f} times as fast as this",
                format_time(bound), parts.name, time, as_fast(assessment.time(), parts.step))
          : fmt::format("dividing tensors by {} takes {}, {:.2f} times as fast as this", parts.name,
                        time, as_fast(assessment.time(), parts.step));
  return "\nAgainst dividing tensors\n" +
         wrapped(text + "; `emplace partition` searches for better");
}

// Proofs are long; what is short is their end.
std::string in_short(const BatchProbe& probe) {
  const std::size_t colon = probe.how.rfind(": ");
  if (probe.fits || colon == std::string::npos) return probe.how;
  return "proven: " + probe.how.substr(colon + 2);
}

// They are tried without CPUs unless these are to take part, and by a shorter search.
std::string largest_batch(const BatchSearch& batches, const Assessment& answer) {
  if (batches.largest) return format_count(*batches.largest) + " is the largest found to fit";
  if (!answer.fits()) return "none fits";
  return has_work_on_cpus(answer)
             ? "none fits without CPUs; the smallest is placed with them"
             : "none was found to fit, so the search went on with the smallest";
}

std::string describe_batches(const BatchSearch& batches, const Assessment& answer) {
  Table table({{"batch", Table::Align::kRight}, {"fits"}, {"how"}});
  for (const BatchProbe& probe : batches.tried) {
    table.add({format_count(probe.batch), probe.fits ? "yes" : "no", in_short(probe)});
  }
  return fmt::format("\nBatches that were tried: {}\n{}", largest_batch(batches, answer),
                     table.to_string());
}

// What a change brings, in words.
std::string gain_of(const Sensitivity& one, const Evaluation& now) {
  if (!one.value.fits()) return "does not fit";
  if (!now.fits()) return "fits";
  const double gain = as_fast(now.step, one.value.step);
  return gain < 1.005 ? "nothing" : fmt::format("{:.2f} times as fast", gain);
}

std::string describe_sensitivities(const Sensitivities& all, const Objective& objective) {
  Table table({{"what if"}, {std::string(objective.quantity()), Table::Align::kRight}, {"gain"}});
  for (const Sensitivity& one : all.list) {
    table.add({one.what, format_time(one.value.step), gain_of(one, all.now)});
  }
  return fmt::format("\nWhat other hardware would bring, against {}{}\n{}",
                     format_time(all.now.step), all.now.fits() ? "" : ", which does not fit",
                     table.to_string());
}

}  // namespace

std::string describe_alternatives(const Explanation& explanation, const Assessment& assessment) {
  std::string text;
  if (explanation.in_parts && helps(*explanation.in_parts, assessment)) {
    // Of placements that may cut modules, too.
    const Nanoseconds bound =
        explanation.whole_modules ? explanation.whole_modules->bound.step : assessment.bound.step;
    text += describe_parts(*explanation.in_parts, assessment, bound);
  }
  if (explanation.batches) text += describe_batches(*explanation.batches, assessment);
  if (explanation.sensitivities) {
    text += describe_sensitivities(*explanation.sensitivities, assessment.objective);
  }
  return text;
}

void add_alternatives(Json& json, const Explanation& explanation, const Assessment& assessment) {
  const char* time = assessment.throughput ? "period_ns" : "step_ns";
  if (explanation.in_parts) {
    const WayToRun& parts = *explanation.in_parts;
    json["in_parts"] = {{"method", parts.name},
                        {"step_ns", parts.step},
                        {"fits", parts.fits},
                        {"transfer_bytes", parts.moved}};
  }
  if (explanation.batches) {
    Json tried = Json::array();
    for (const BatchProbe& probe : explanation.batches->tried) {
      tried.push_back({{"batch", probe.batch}, {"fits", probe.fits}, {"how", probe.how}});
    }
    const auto& largest = explanation.batches->largest;
    json["batches"] = {{"largest", largest ? Json(*largest) : Json()}, {"tried", std::move(tried)}};
  }
  if (!explanation.sensitivities) return;
  const Sensitivities& all = *explanation.sensitivities;
  json["sensitivities"] = {{time, all.now.step}, {"fits", all.now.fits()}, {"list", Json::array()}};
  for (const Sensitivity& one : all.list) {
    json["sensitivities"]["list"].push_back({{"resource", one.resource},
                                             {"factor", one.factor},
                                             {"what", one.what},
                                             {time, one.value.step},
                                             {"fits", one.value.fits()}});
  }
}

}  // namespace emplace

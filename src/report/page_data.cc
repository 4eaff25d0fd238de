#include "report/page_data.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"

#include "cost/fit.h"

#include "report/assessment_report.h"
#include "report/execution_report.h"
#include "report/page_columns.h"
#include "report/partition_report.h"
#include "report/prose.h"
#include "report/stream_report.h"

namespace emplace {
namespace {

using Json = nlohmann::ordered_json;

// How far the cost model's times are off those that were measured, by kind of device.
Json errors_of_estimates(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  std::map<std::string, FitError> errors;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const DeviceKind& kind = cluster.kind_of(device);
    if (kind.peak_flops.empty() || errors.contains(kind.name)) continue;
    errors[kind.name] = graph_error(problem.graph(), kind.name, kind);
  }
  Json list = Json::array();
  for (const auto& [kind, error] : errors) {
    if (error.ops == 0) continue;
    list.push_back({{"kind", kind}, {"ops", error.ops}, {"error", error.op_error}});
  }
  return list;
}

Json origins_of(const Problem& problem) {
  Json origins = Json::array();
  for (const CostOrigin& origin : problem.cost_origins()) {
    Json json{{"source", origin.source}, {"ops", origin.ops}, {"share", origin.share}};
    const bool estimated = origin.source == kAnalyticCosts && origin.ops > 0;
    if (estimated) json["errors"] = errors_of_estimates(problem);
    origins.push_back(std::move(json));
  }
  return origins;
}

Json courses_of(const std::vector<SearchCourse>& courses) {
  Json list = Json::array();
  for (const SearchCourse& course : courses) {
    Json points = Json::array();
    for (const CoursePoint& point : course.points) {
      points.push_back({point.seconds, point.evaluations,
                        point.best ? Json(point.best->step) : Json(),
                        point.best && point.best->fits(), point.bound});
    }
    Json rounds = Json::array();
    for (const TrainingPoint& round : course.rounds) {
      rounds.push_back({round.seconds, round.best, round.round_best, round.mean_seconds * 1e9});
    }
    list.push_back({{"placer", course.run.placer.to_string()},
                    {"scheduler", course.run.scheduler},
                    {"seed", course.run.seed},
                    {"points", std::move(points)},
                    {"rounds", std::move(rounds)}});
  }
  return list;
}

// As many steps of a stream as a browser likes.
int most_steps_shown(const Assessment& answer) {
  constexpr std::size_t kMostSlices = 150'000;
  const std::size_t slices = answer.timeline.ops.size() + answer.timeline.transfers.size();
  return static_cast<int>(std::max<std::size_t>(1, kMostSlices / std::max<std::size_t>(1, slices)));
}

// What happens when, of the step by itself.
void add_step(const Assessment& answer, const Explanation& explanation, Json& json) {
  const Problem& problem = answer.problem();
  json["steps"] = Json::array({step_columns(problem, answer.timeline)});
  json["readers"] = reader_columns(problem, answer.placement, answer.timeline);
  // Of a stream that is not simulated, no moment is known.
  if (answer.throughput) return;
  json["causes"] = cause_columns(problem, answer.placement, answer.timeline);
  json["chain"] = chain_columns(explanation.chain);
  json["memory"] = memory_columns(problem, answer.placement, std::span(&answer.timeline, 1),
                                  answer.timeline.step);
}

// The same of the first steps of a stream. Memory is known as long as no other step has entered.
void add_stream(const Assessment& answer, Json& json) {
  const Problem& problem = answer.problem();
  const StreamRun stream = first_steps(answer, most_steps_shown(answer));
  EMPLACE_CHECK(!stream.steps.empty());
  json["steps"] = Json::array();
  for (const Timeline& step : stream.steps) json["steps"].push_back(step_columns(problem, step));
  json["readers"] = reader_columns(problem, answer.placement, stream.steps.front());
  json["stream"] = stream_columns(problem, answer.placement, stream);
  if (const Nanoseconds until = stream.entered.back(); until > 0) {
    json["memory"] = memory_columns(problem, answer.placement, stream.steps, until - 1);
  }
}

Json result_of(const PageSource& source, const std::string& answer_json, const Assessment& answer,
               const Explanation& explanation) {
  const Problem& problem = answer.problem();
  const Modules& modules = explanation.modules;
  Json json{{"title", fmt::format("{} on {}", problem.graph().name(), problem.cluster().name())},
            {"kind", source.kind},
            {"command", source.command},
            {"answer", Json::parse(answer_json)},
            {"text", {{"gap", answer.fits() ? describe_gap(answer) : ""}}},
            {"costs", origins_of(problem)},
            {"cluster", cluster_columns(problem.cluster())},
            {"ops", op_columns(problem, answer.placement, modules)},
            {"map", map_columns(problem.graph(), modules)}};
  for (const ScaleField& field : scale_fields()) {
    if (source.scale.*field.value != 1) {
      json["scale"][std::string(field.name)] = source.scale.*field.value;
    }
  }
  if (!source.divide.empty()) json["divide"] = source.divide;
  if (answer.throughput && answer.throughput->in_flight > 0 && problem.num_ops() > 0) {
    json["text"]["stream"] = stream_sentences(answer);
    add_stream(answer, json);
  } else {
    add_step(answer, explanation, json);
  }
  return json;
}

// The header of what --json printed, before the fields of an answer that it does not have.
std::string with_header_of(const std::string& printed, const std::string& answer) {
  const Json all = Json::parse(printed);
  Json json;
  for (const char* key : {"version", "model", "made_with", "graph", "cluster", "budget"}) {
    if (all.contains(key)) json[key] = all[key];
  }
  json.update(Json::parse(answer));
  return json.dump();
}

std::string cut_name(const Cuts& cuts, const Workers& workers) {
  std::map<int, int> pieces;  // by dimension
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    if (cuts[level] != kUncut)
      pieces.try_emplace(cuts[level], 1).first->second *= workers.factor(level);
  }
  std::vector<std::string> parts;
  for (const auto& [dimension, count] : pieces) {
    parts.push_back(fmt::format("dimension {} in {}", dimension, count));
  }
  return parts.empty() ? "whole everywhere" : join_words(parts);
}

// How what the op writes is cut, output by output where they differ.
std::string cut_names(const PartitionAnswer& answer, OpId op) {
  std::vector<std::string> names;
  for (const TensorId output : answer.graph->outputs(op)) {
    names.push_back(cut_name(answer.plan.tensors[output], answer.plan.workers));
  }
  if (std::all_of(names.begin(), names.end(), [&](const auto& name) { return name == names[0]; })) {
    return names[0];
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = fmt::format("output {}: {}", i + 1, names[i]);
  }
  return fmt::format("{}", fmt::join(names, "; "));
}

// By op of the divided graph: how what its original writes is cut.
Json cuts_of(const PartitionAnswer& answer) {
  const Graph& divided = answer.outcome.problem->graph();
  std::vector<std::string> names;
  Json of_op = Json::array();
  for (OpId op = 0; op < divided.num_ops(); ++op) {
    const std::string_view name = divided.op_name(op);
    const auto original = answer.graph->find_op(name.substr(0, name.rfind('@')));
    if (!original || answer.graph->outputs(*original).empty()) {
      of_op.push_back(-1);
      continue;
    }
    const std::string text = cut_names(answer, *original);
    const auto found = std::find(names.begin(), names.end(), text);
    of_op.push_back(found - names.begin());
    if (found == names.end()) names.push_back(text);
  }
  return {{"names", names}, {"of_op", std::move(of_op)}};
}

std::string dumped_page(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string page_of_answer(const PageSource& source, const Assessment& answer,
                           const Explanation& explanation,
                           const std::vector<SearchCourse>& courses) {
  Json json = result_of(source, source.answer, answer, explanation);
  if (!courses.empty()) json["searches"] = courses_of(courses);
  return dumped_page(json);
}

std::string page_of_nothing(const PageSource& source, const Problem& problem,
                            const std::string& why_nothing_fits) {
  const std::string graph = problem.graph().name();
  return dumped_page(
      {{"title", fmt::format("{} on {}", graph, problem.cluster().name())},
       {"kind", source.kind},
       {"command", source.command},
       {"answer", {{"graph", graph}, {"cluster", problem.cluster().name()}, {"fits", false}}},
       {"why_nothing_fits", why_nothing_fits},
       {"cluster", cluster_columns(problem.cluster())}});
}

std::string page_of_training(const PageSource& source, const TrainResult& result) {
  Json columns{{"step", Json::array()},         {"seconds", Json::array()},
               {"evaluations", Json::array()},  {"phase", Json::array()},
               {"likelihood", Json::array()},   {"relative_time", Json::array()},
               {"fitting_share", Json::array()}};
  const auto known = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  for (const PolicyPoint& point : result.points) {
    columns["step"].push_back(point.step);
    columns["seconds"].push_back(point.seconds);
    columns["evaluations"].push_back(point.evaluations);
    columns["phase"].push_back(point.phase);
    columns["likelihood"].push_back(known(point.likelihood));
    columns["relative_time"].push_back(known(point.relative_time));
    columns["fitting_share"].push_back(known(point.fitting_share));
  }
  Json answer = Json::parse(source.answer);
  std::string title = fmt::format("Training of {}", answer.value("policy", "a policy"));
  return dumped_page({{"title", std::move(title)},
                      {"kind", source.kind},
                      {"command", source.command},
                      {"answer", std::move(answer)},
                      {"training", std::move(columns)}});
}

std::string page_of_comparison(const PageSource& source, const Comparison& comparison,
                               const std::string& best, const Explanation& explanation,
                               const std::vector<SearchCourse>& courses) {
  Json json = result_of(source, best, comparison.best, explanation);
  json["comparison"] = Json::parse(source.answer);
  json["searches"] = courses_of(courses);
  return dumped_page(json);
}

std::string page_of_partition(const PageSource& source, const PartitionAnswer& answer) {
  const Assessor assessor(std::make_shared<const Simulator>(answer.outcome.problem), {}, {},
                          answer.terms);
  const Assessment divided = assessor.assess(answer.outcome.placement, {});
  Explanation explanation = explain(divided);
  if (!answer.collectives_measured) {
    explanation.sensitivities = sensitivities_of_placement(divided);
  }
  Json json =
      result_of(source, with_header_of(source.answer, to_json(divided, nullptr, &explanation)),
                divided, explanation);
  json["title"] = fmt::format("{} on {}, in parts", answer.whole->graph().name(),
                              answer.whole->cluster().name());
  json["partition"] = Json::parse(source.answer);
  json["cuts"] = cuts_of(answer);
  if (!answer.course.points.empty()) json["searches"] = courses_of({answer.course});
  return dumped_page(json);
}

std::string page_of_execution(const PageSource& source, const Execution& execution,
                              const Assessment& predicted, const Explanation& explanation) {
  Json json =
      result_of(source, with_header_of(source.answer, to_json(predicted, nullptr, &explanation)),
                predicted, explanation);
  json["execution"] = Json::parse(source.answer);
  json["measured"] = step_columns(*execution.problem, execution.measured);
  return dumped_page(json);
}

}  // namespace emplace

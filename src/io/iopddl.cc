// Problems of the ASPLOS 2025 contest IOPDDL, and the selections that answer them.
#include "io/iopddl.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/error.h"

#include "io/file.h"
#include "io/json_fields.h"
#include "selection/selection_problem.h"
#include "selection/solve.h"

namespace emplace {
namespace {

namespace json = simdjson::ondemand;

constexpr const char* kStrategiesFormat = "emplace.strategies/1";

// A list of lists of numbers, as it stands in the file.
struct Lists {
  std::vector<std::size_t> first{0};
  std::vector<std::int64_t> values;

  std::size_t size() const { return first.size() - 1; }
  std::span<const std::int64_t> operator[](std::size_t i) const {
    return {values.data() + first[i], first[i + 1] - first[i]};
  }
};

// The fields of the file, in whatever order they come.
struct ProblemFields {
  std::optional<Lists> intervals;
  std::optional<Lists> costs;
  std::optional<Lists> usages;
  std::optional<Lists> edges;
  std::optional<Lists> edge_costs;
  std::optional<std::int64_t> usage_limit;
};

std::int64_t read_number(json::value value, std::string_view field, std::size_t list,
                         std::size_t at) {
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS) {
    number = json_integer(value, fmt::format("{}[{}][{}]", field, list, at));
  }
  if (number < 0) fail_input("{}[{}][{}]: {} is negative", field, list, at, number);
  return number;
}

// An entry may be null where `may_be_absent`, which is an empty list.
Lists read_lists(json::value value, std::string_view field, bool may_be_absent = false) {
  Lists lists;
  for (auto item : json_array(value, field)) {
    json::value entry = item.value();
    if (!may_be_absent || !entry.is_null()) {
      json::array numbers;
      if (entry.get_array().get(numbers) != simdjson::SUCCESS) {
        fail_input("{}[{}]: expected a list of numbers", field, lists.size());
      }
      for (auto number : numbers) {
        const std::size_t at = lists.values.size() - lists.first.back();
        lists.values.push_back(read_number(number.value(), field, lists.size(), at));
      }
    }
    lists.first.push_back(lists.values.size());
  }
  return lists;
}

void read_nodes(json::object nodes, ProblemFields& fields) {
  for (auto field : nodes) {
    const std::string_view key = field.unescaped_key();
    if (key == "intervals") fields.intervals = read_lists(field.value(), "nodes.intervals", true);
    if (key == "costs") fields.costs = read_lists(field.value(), "nodes.costs");
    if (key == "usages") fields.usages = read_lists(field.value(), "nodes.usages");
  }
}

void read_edges(json::object edges, ProblemFields& fields) {
  for (auto field : edges) {
    const std::string_view key = field.unescaped_key();
    if (key == "nodes") fields.edges = read_lists(field.value(), "edges.nodes");
    if (key == "costs") fields.edge_costs = read_lists(field.value(), "edges.costs");
  }
}

ProblemFields read_fields(json::document& document) {
  ProblemFields fields;
  bool found = false;
  for (auto field : json_root(document)) {
    if (std::string_view(field.unescaped_key()) != "problem") continue;
    found = true;
    for (auto part : json_object(field.value(), "problem")) {
      const std::string_view key = part.unescaped_key();
      if (key == "nodes") read_nodes(json_object(part.value(), "nodes"), fields);
      if (key == "edges") read_edges(json_object(part.value(), "edges"), fields);
      if (key == "usage_limit") {
        json::value limit = part.value();
        if (limit.is_null()) continue;
        fields.usage_limit = json_integer(limit, "usage_limit");
        if (*fields.usage_limit < 0) {
          fail_input("usage_limit: {} is negative", *fields.usage_limit);
        }
      }
    }
  }
  expect_end(document);
  if (!found) fail_input("problem: is missing");
  return fields;
}

// Costs and usages from kForbidden on mean "never", and sums are cut off there: a problem whose
// other costs could add up to it would be answered wrongly. Each list's largest count.
void check_sums(const Lists& lists, std::string_view field, std::int64_t& sum) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::int64_t largest = 0;
    for (const std::int64_t value : lists[i]) {
      if (value < kForbidden) largest = std::max(largest, value);
    }
    sum = std::min(sum + largest, kForbidden);
    if (sum < kForbidden) continue;
    fail_input(
        "{}[{}]: with this one the largest of each add up to {} or more, which stands for never; "
        "expected smaller units",
        field, i, kForbidden);
  }
}

void check_sums(const ProblemFields& fields) {
  std::int64_t costs = 0;
  if (fields.costs) check_sums(*fields.costs, "nodes.costs", costs);
  if (fields.edge_costs) check_sums(*fields.edge_costs, "edges.costs", costs);
  // A smaller limit is right about sums that are cut off: they are above it.
  if (fields.usage_limit && *fields.usage_limit >= kForbidden) {
    fail_input("usage_limit: {} is {} or more, which stands for never; expected smaller units",
               *fields.usage_limit, kForbidden);
  }
}

void add_nodes(const ProblemFields& fields, SelectionProblem& problem) {
  if (!fields.costs) fail_input("nodes.costs: is missing");
  if (!fields.usages) fail_input("nodes.usages: is missing");
  const std::size_t count = fields.costs->size();
  const auto as_many = [&](const Lists& lists, const char* field) {
    if (lists.size() == count) return;
    fail_input("{}: has {} entries; expected {}, one for each of nodes.costs", field, lists.size(),
               count);
  };
  as_many(*fields.usages, "nodes.usages");
  if (fields.intervals) as_many(*fields.intervals, "nodes.intervals");
  for (std::size_t i = 0; i < count; ++i) {
    const auto costs = (*fields.costs)[i];
    const auto usages = (*fields.usages)[i];
    if (costs.empty()) fail_input("nodes.costs[{}]: is empty; expected a cost a strategy", i);
    if (usages.size() != costs.size()) {
      fail_input("nodes.usages[{}]: has {} entries; expected {}, one for each of the node's costs",
                 i, usages.size(), costs.size());
    }
    SelectionProblem::Interval alive;
    if (fields.intervals && !(*fields.intervals)[i].empty()) {
      const auto interval = (*fields.intervals)[i];
      if (interval.size() != 2) {
        fail_input("nodes.intervals[{}]: has {} numbers; expected [start, end]", i,
                   interval.size());
      }
      alive = {interval[0], interval[1]};
      if (alive.begin > alive.end) {
        fail_input("nodes.intervals[{}]: starts at {} and ends at {}, before that", i, alive.begin,
                   alive.end);
      }
    }
    problem.add_node(costs, usages, alive);
  }
}

void add_edges(const ProblemFields& fields, SelectionProblem& problem) {
  if (!fields.edges && !fields.edge_costs) return;
  if (!fields.edges) fail_input("edges.nodes: is missing");
  if (!fields.edge_costs) fail_input("edges.costs: is missing");
  if (fields.edges->size() != fields.edge_costs->size()) {
    fail_input("edges.costs: has {} entries; expected {}, one for each of edges.nodes",
               fields.edge_costs->size(), fields.edges->size());
  }
  for (std::size_t e = 0; e < fields.edges->size(); ++e) {
    const auto ends = (*fields.edges)[e];
    if (ends.size() != 2) {
      fail_input("edges.nodes[{}]: has {} numbers; expected two nodes", e, ends.size());
    }
    for (const std::int64_t node : ends) {
      if (node < problem.num_nodes()) continue;
      fail_input("edges.nodes[{}]: there is no node {}; the last is {}", e, node,
                 problem.num_nodes() - 1);
    }
    const auto a = static_cast<std::int32_t>(ends[0]);
    const auto b = static_cast<std::int32_t>(ends[1]);
    const auto table = (*fields.edge_costs)[e];
    const auto expected = static_cast<std::size_t>(problem.num_strategies(a)) *
                          static_cast<std::size_t>(problem.num_strategies(b));
    if (table.size() != expected) {
      fail_input(
          "edges.costs[{}]: has {} entries; expected {} x {}, the strategies of nodes {} "
          "and {}",
          e, table.size(), problem.num_strategies(a), problem.num_strategies(b), a, b);
    }
    problem.add_edge(a, b, table);
  }
}

}  // namespace

SelectionProblem read_iopddl_json(const std::string& text) {
  JsonText json(text);
  return reading_json([&] {
    const ProblemFields fields = read_fields(json.document());
    check_sums(fields);
    SelectionProblem problem;
    add_nodes(fields, problem);
    add_edges(fields, problem);
    problem.set_usage_limit(fields.usage_limit);
    return problem;
  });
}

SelectionProblem read_iopddl(const std::string& path) {
  const std::string content = read_file(path);
  return with_context(path, [&] { return read_iopddl_json(content); });
}

std::string write_strategies_json(const SelectionResult& result) {
  return fmt::format(
      "{{\"format\": \"{}\", \"cost\": {}, \"lower_bound\": {},\n \"strategies\": [{}]}}\n",
      kStrategiesFormat, result.cost, result.lower_bound, fmt::join(result.strategies, ", "));
}

}  // namespace emplace

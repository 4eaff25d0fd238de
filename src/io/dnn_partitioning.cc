// Workloads of dnn-partitioning (Tarnawski et al., "Efficient algorithms for device placement of
// DNN graph operators", NeurIPS 2020): a graph whose nodes have a time on an accelerator and on a
// CPU, and the devices to put them on.
//
// A node becomes one op with one output. The file gives the time that an edge takes, not its bytes:
// c ms become c * 10^6 bytes over links of 10^9 bytes a second, so that a transfer lasts what the
// file says, to the nanosecond. This assumes that all edges out of a node cost the same, which is
// checked. Such tensors occupy no memory: a node's size counts for all that it holds. Times and
// costs are taken from the digits in the file, never through binary floating point. Nodes may come
// in any order. O((V + E) log E).
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "base/error.h"

#include "graph/graph_builder.h"
#include "graph/workload.h"

#include "io/json_fields.h"
#include "io/readers.h"
#include "io/topological_order.h"

namespace emplace {
namespace {

namespace json = simdjson::ondemand;

constexpr const char* kAccelerator = "acc";
constexpr const char* kCpu = "cpu";
// A cost of c ms is sent as c * 10^6 bytes at 10^9 bytes per second.
constexpr std::int64_t kBytesPerMs = 1'000'000;
constexpr std::int64_t kBandwidth = 1'000'000'000;

struct Node {
  std::int64_t id = 0;
  std::string name;
  bool on_accelerator = true;
  bool backward = false;
  Decimal cpu_ms;
  Decimal accelerator_ms;
  Bytes size = 0;
  std::string color;
};

struct Edge {
  std::int64_t source = 0;
  std::int64_t dest = 0;
  Decimal cost_ms;
};

struct Workload {
  std::optional<Bytes> accelerator_memory;
  std::optional<std::int64_t> accelerators;
  std::optional<std::int64_t> cpus;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  bool has_nodes = false;
  bool has_edges = false;
};

// One value of the file and how messages call it: "node 7: cpuLatency".
struct Value {
  json::value json;
  const std::string& where;
  std::string_view field;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) const {
    fail_input("{}: {}: {}", where, field, fmt::format(message, std::forward<Args>(args)...));
  }

  std::string_view token() {
    std::string_view text = json.raw_json_token();
    while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) {
      text.remove_suffix(1);
    }
    return text;
  }

  bool is_null() { return token() == "null"; }

  Decimal number() {
    const std::string_view text = token();
    const auto parsed = Decimal::parse(text);
    if (!parsed || parsed->negative()) {
      fail("{}: expected a number of 0 or more, in at most 18 digits", text);
    }
    return *parsed;
  }

  Bytes bytes() {
    const auto size = round_half_up(number(), 1);
    if (!size) fail("{}: is too large", token());
    return *size;
  }

  // A whole number, which the files also write as "3.0".
  std::int64_t integer() {
    const std::string_view text = token();
    auto parsed = Decimal::parse(text);
    const bool negative = parsed && parsed->negative();
    if (negative) parsed->mantissa = -parsed->mantissa;
    if (!parsed || parsed->exponent < 0) fail("{}: expected a whole number", text);
    const auto result = round_half_up(*parsed, 1);
    if (!result) fail("{}: is too large", text);
    return negative ? -*result : *result;
  }

  std::int64_t device_count() {
    const std::int64_t count = integer();
    if (count < 0 || count > static_cast<std::int64_t>(Cluster::kMaxDevices)) {
      fail("{}: expected a number of devices from 0 to {}", count, Cluster::kMaxDevices);
    }
    return count;
  }

  bool flag() {
    const std::string_view text = token();
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    fail("{}: expected true, false, 1 or 0", text);
  }

  std::string text() {
    std::string_view result;
    if (json.get_string().get(result) != simdjson::SUCCESS) fail("expected a string");
    return std::string(result);
  }

  // A number or a string, as a name.
  std::string label() {
    if (json.type() == json::json_type::string) return text();
    return fmt::format("{}", integer());
  }
};

json::object object_of(json::value value, const std::string& where) {
  json::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS)
    fail_input("{}: expected {{...}}", where);
  return object;
}

// Calls read(key, Value) for each field of `object`.
template <class Read>
void for_each_field(json::object object, const std::string& where, Read&& read) {
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    Value value{field.value(), where, key};
    read(key, value);
  }
}

void require(bool found, const std::string& where, const char* field) {
  if (!found) fail_input("{}: {}: is missing", where, field);
}

Node read_node(json::value value, std::size_t index) {
  Node node;
  bool has_id = false;
  bool has_size = false;
  bool has_cpu = false;
  bool has_accelerator = false;
  // The id may stand behind other fields, so messages start by counting.
  std::string where = fmt::format("nodes[{}]", index);
  for_each_field(object_of(value, where), where, [&](std::string_view key, Value& field) {
    if (key == "id") {
      node.id = field.integer();
      has_id = true;
      where = fmt::format("node {}", node.id);
    } else if (key == "name") {
      if (!field.is_null()) node.name = field.label();
    } else if (key == "supportedOnFpga") {
      node.on_accelerator = field.flag();
    } else if (key == "isBackwardNode") {
      node.backward = field.flag();
    } else if (key == "cpuLatency") {
      node.cpu_ms = field.number();
      has_cpu = true;
    } else if (key == "fpgaLatency") {
      if (field.is_null()) return;
      node.accelerator_ms = field.number();
      has_accelerator = true;
    } else if (key == "size") {
      node.size = field.bytes();
      has_size = true;
    } else if (key == "colorClass") {
      if (!field.is_null()) node.color = field.label();
    }
  });
  require(has_id, where, "id");
  require(has_cpu, where, "cpuLatency");
  require(has_accelerator || !node.on_accelerator, where, "fpgaLatency");
  require(has_size, where, "size");
  return node;
}

Edge read_edge(json::value value, std::size_t index) {
  Edge edge;
  bool has_source = false;
  bool has_dest = false;
  bool has_cost = false;
  const std::string where = fmt::format("edges[{}]", index);
  for_each_field(object_of(value, where), where, [&](std::string_view key, Value& field) {
    if (key == "sourceId") {
      edge.source = field.integer();
      has_source = true;
    } else if (key == "destId") {
      edge.dest = field.integer();
      has_dest = true;
    } else if (key == "cost") {
      edge.cost_ms = field.number();
      has_cost = true;
    }
  });
  require(has_source, where, "sourceId");
  require(has_dest, where, "destId");
  require(has_cost, where, "cost");
  return edge;
}

template <class Item, class Read>
std::vector<Item> read_items(Value& value, Read&& read) {
  json::array array;
  if (value.json.get_array().get(array) != simdjson::SUCCESS) value.fail("expected a list");
  std::vector<Item> items;
  for (auto item : array) items.push_back(read(item.value(), items.size()));
  return items;
}

Workload parse_workload(const std::string& text) {
  JsonText whole(text);
  json::document& document = whole.document();
  json::object root;
  if (document.get_object().get(root) != simdjson::SUCCESS) {
    fail_input("expected a JSON object with maxSizePerFPGA, nodes and edges");
  }
  Workload workload;
  for_each_field(root, "workload", [&](std::string_view key, Value& value) {
    if (key == "maxSizePerFPGA") workload.accelerator_memory = value.bytes();
    if (key == "maxFPGAs") workload.accelerators = value.device_count();
    if (key == "maxCPUs") workload.cpus = value.device_count();
    if (key == "nodes") {
      workload.nodes = read_items<Node>(value, read_node);
      workload.has_nodes = true;
    }
    if (key == "edges") {
      workload.edges = read_items<Edge>(value, read_edge);
      workload.has_edges = true;
    }
  });
  const char* location = nullptr;
  if (document.current_location().get(location) == simdjson::SUCCESS) {
    fail_input("there is more text after the JSON object");
  }
  require(workload.accelerator_memory.has_value(), "workload", "maxSizePerFPGA");
  require(workload.accelerators.has_value(), "workload", "maxFPGAs");
  require(workload.cpus.has_value(), "workload", "maxCPUs");
  require(workload.has_nodes, "workload", "nodes");
  require(workload.has_edges, "workload", "edges");
  if (workload.nodes.empty()) fail_input("workload: nodes: there are none");
  return workload;
}

Cluster make_cluster(const Workload& workload, const std::string& name) {
  if (*workload.accelerators + *workload.cpus == 0) {
    fail_input("maxFPGAs, maxCPUs: both are 0; expected a device to run the nodes on");
  }
  ClusterSpec spec;
  spec.name =
      fmt::format("{}: {} accelerators, {} CPUs", name, *workload.accelerators, *workload.cpus);
  const char* source = "none: every node of the workload has its own times";
  spec.kinds.push_back({.name = kAccelerator,
                        .peak_flops = {},
                        .memory = *workload.accelerator_memory,
                        .source = source});
  spec.kinds.push_back({.name = kCpu, .peak_flops = {}, .memory = kUnlimited, .source = source});
  for (std::int64_t i = 0; i < *workload.accelerators; ++i) {
    spec.devices.push_back({.name = fmt::format("{}{}", kAccelerator, i),
                            .kind = kAccelerator,
                            .memory = *workload.accelerator_memory});
  }
  for (std::int64_t i = 0; i < *workload.cpus; ++i) {
    spec.devices.push_back({.name = fmt::format("{}{}", kCpu, i),
                            .kind = kCpu,
                            .memory = kUnlimited,
                            .free_communication = true});
  }
  spec.links.push_back({.bandwidth = kBandwidth, .channel = "out"});
  return Cluster(std::move(spec));
}

// The edges between nodes by their places in the file, and each node's cost of being sent.
struct Links {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // sorted, no repeats
  std::vector<std::optional<Decimal>> cost_ms;                 // none: nobody reads the node
};

Links link_nodes(const Workload& workload) {
  std::unordered_map<std::int64_t, std::uint32_t> index;
  for (const Node& node : workload.nodes) {
    if (!index.try_emplace(node.id, static_cast<std::uint32_t>(index.size())).second) {
      fail_input("node {}: id: is used twice", node.id);
    }
  }
  Links links;
  links.cost_ms.resize(workload.nodes.size());
  for (std::size_t i = 0; i < workload.edges.size(); ++i) {
    const Edge& edge = workload.edges[i];
    const auto find = [&](std::int64_t id, const char* field) {
      const auto found = index.find(id);
      if (found == index.end()) fail_input("edges[{}]: {}: there is no node {}", i, field, id);
      return found->second;
    };
    const std::uint32_t source = find(edge.source, "sourceId");
    links.edges.emplace_back(source, find(edge.dest, "destId"));
    std::optional<Decimal>& cost = links.cost_ms[source];
    if (cost && *cost != edge.cost_ms) {
      fail_input(
          "node {}: cost: its out-edges cost {} and {} ms; expected one cost, that of sending what "
          "the node produces",
          edge.source, cost->to_double(), edge.cost_ms.to_double());
    }
    cost = edge.cost_ms;
  }
  std::sort(links.edges.begin(), links.edges.end());
  links.edges.erase(std::unique(links.edges.begin(), links.edges.end()), links.edges.end());
  return links;
}

Decimal microseconds(Decimal ms) {
  if (ms.mantissa != 0) ms.exponent += 3;
  return ms;
}

OpSpec make_op(const Node& node) {
  OpSpec op{.name = node.name.empty() ? fmt::format("{}", node.id)
                                      : fmt::format("{}:{}", node.id, node.name),
            .type = "node",
            .phase = node.backward ? Phase::kBackward : Phase::kForward,
            .persistent_bytes = node.size};
  op.time_us.emplace_back(kCpu, microseconds(node.cpu_ms));
  if (node.on_accelerator) {
    op.time_us.emplace_back(kAccelerator, microseconds(node.accelerator_ms));
  } else {
    op.devices.emplace_back(kCpu);
  }
  if (!node.color.empty()) op.colocate = "color" + node.color;
  return op;
}

Graph make_graph(const Workload& workload, const std::string& name) {
  const Links links = link_nodes(workload);
  const std::size_t count = workload.nodes.size();
  const auto order = topological_order(count, links.edges, [&](std::uint32_t node) {
    return fmt::format("{}", workload.nodes[node].id);
  });
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reversed;
  reversed.reserve(links.edges.size());
  for (const auto& [from, to] : links.edges) reversed.emplace_back(to, from);
  const auto sources = Csr<std::uint32_t>::from_pairs(count, reversed);

  GraphBuilder builder(name, kDnnPartitioningSource);
  std::vector<TensorId> output(count);
  for (const std::uint32_t index : order) {
    const Node& node = workload.nodes[index];
    OpSpec op = make_op(node);
    for (const std::uint32_t source : sources[index]) op.inputs.push_back(output[source]);
    if (const auto& cost = links.cost_ms[index]) {
      const auto bytes = round_half_up(*cost, kBytesPerMs);
      if (!bytes) fail_input("node {}: cost: is too large", node.id);
      output[index] = builder.add_tensor({.bytes = *bytes, .memory_bytes = 0});
      op.outputs.push_back(output[index]);
    }
    builder.add_op(op);
  }
  return std::move(builder).build();
}

}  // namespace

Model read_dnn_partitioning(const std::string& text, const std::string& name) {
  try {
    const Workload workload = parse_workload(text);
    return {std::make_shared<const Graph>(make_graph(workload, name)),
            std::make_shared<const Cluster>(make_cluster(workload, name))};
  } catch (const simdjson::simdjson_error& error) {
    fail_input("is not JSON: {}", error.what());
  }
}

}  // namespace emplace

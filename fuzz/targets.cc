#include "fuzz/targets.h"

#include <array>
#include <memory>

#include "base/error.h"
#include "base/units.h"

#include "cluster/core_groups.h"
#include "cluster/local_cluster.h"
#include "cluster/presets.h"
#include "cluster/runs_on.h"

#include "cost/device_rules.h"
#include "cost/problem.h"

#include "fuzz/onnx_models.h"
#include "io/file.h"
#include "io/iopddl.h"
#include "io/onnx_shapes.h"
#include "io/placement_file.h"
#include "io/readers.h"
#include "search/method_spec.h"
#include "selection/selection_problem.h"

namespace emplace::fuzz {
namespace {

void graph_json(const std::string& bytes) {
  read_graph_json(bytes);
}

void onnx(const std::string& bytes) {
  read_onnx(bytes, {}, "fuzzed");
}

void onnx_node(const std::string& bytes) {
  Choices choices(bytes);
  const MadeNode made = NodeMaker(choices).make();
  infer_node({made.proto, &made.opsets}, made.inputs);
}

void onnx_model(const std::string& bytes) {
  Choices choices(bytes);
  read_onnx(make_model(choices), {}, "fuzzed");
}

void gzip(const std::string& bytes) {
  unpacked("\x1f\x8b" + bytes, "fuzzed.gz");
}

void cluster_yaml(const std::string& bytes) {
  read_cluster_yaml(bytes);
}

void dnn_partitioning(const std::string& bytes) {
  read_dnn_partitioning(bytes, "fuzzed");
}

void pipedream(const std::string& bytes) {
  read_pipedream(bytes, "fuzzed");
}

void iopddl(const std::string& bytes) {
  read_iopddl_json(bytes);
}

const Problem& small_problem() {
  static const std::shared_ptr<const Problem> problem = [] {
    const auto graph = std::make_shared<const Graph>(read_graph_json(
        R"({"format": "emplace.graph/1", "tensors": [{"bytes": 4}, {"bytes": 4}],
            "ops": [{"name": "a", "type": "mm", "inputs": [], "outputs": [0]},
                    {"name": "b", "type": "mm", "inputs": [0], "outputs": [1]}]})"));
    return compile(graph, std::make_shared<const Cluster>(preset_cluster("2xp100")));
  }();
  return *problem;
}

void placement(const std::string& bytes) {
  read_placement_json(bytes, small_problem());
}

// One parser for each first byte.
void texts(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::string text = bytes.substr(1);
  switch (static_cast<unsigned char>(bytes[0]) % 9) {
    case 0:
      MethodSpec::parse(text).to_string();
      break;
    case 1:
      DeviceRule::parse(DeviceRule::Kind::kPin, text);
      break;
    case 2:
      parse_bytes(text);
      parse_bandwidth(text);
      parse_seconds(text);
      break;
    case 3:
      if (looks_like_preset(text)) Cluster{preset_cluster(text)};
      break;
    case 4:
      parse_core_groups(text);
      break;
    case 5:
      parse_local_link(text);
      break;
    case 6:
      if (is_local_name(text)) parse_local_name(text);
      break;
    case 7:
      parse_runs_on(text);
      break;
    default:
      Decimal::parse(text);
  }
}

constexpr std::array<Target, 11> kTargets{{{"graph_json", graph_json},
                                           {"onnx", onnx},
                                           {"onnx_node", onnx_node},
                                           {"onnx_model", onnx_model},
                                           {"gzip", gzip},
                                           {"cluster_yaml", cluster_yaml},
                                           {"dnn_partitioning", dnn_partitioning},
                                           {"pipedream", pipedream},
                                           {"iopddl", iopddl},
                                           {"placement", placement},
                                           {"texts", texts}}};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

void call(const Target& target, const std::string& bytes) {
  try {
    target.read(bytes);
  } catch (const Error&) {
  }
}

}  // namespace emplace::fuzz

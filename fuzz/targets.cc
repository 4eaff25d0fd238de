#include "fuzz/targets.h"

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include <zlib.h>

#include "base/error.h"
#include "base/units.h"

#include "cluster/core_groups.h"
#include "cluster/local_cluster.h"
#include "cluster/presets.h"
#include "cluster/runs_on.h"

#include "cost/device_rules.h"
#include "cost/problem.h"

#include "placer/placement_messages.h"

#include "placers/external/support/protocol.h"

#include "dist/wire.h"
#include "fuzz/onnx_models.h"
#include "io/collectives_file.h"
#include "io/curve_table.h"
#include "io/file.h"
#include "io/importers.h"
#include "io/iopddl.h"
#include "io/onnx_flat_model.h"
#include "io/onnx_inputs.h"
#include "io/onnx_shapes.h"
#include "io/partition_file.h"
#include "io/placement_file.h"
#include "io/readers.h"
#include "learn/train/state.h"
#include "report/page.h"
#include "report/profile_report.h"
#include "run/batch_range.h"
#include "search/method_spec.h"
#include "selection/selection_problem.h"
#include "zoo/model_name.h"

namespace emplace::fuzz {
namespace {

// Of bytes that several readers take, where one that refuses them leaves them to the others.
template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void graph_json(const std::string& bytes) {
  read_graph_json(bytes);
}

void onnx(const std::string& bytes) {
  try_to([&] { read_onnx_inputs(bytes); });
  try_to([&] { read_flat_onnx(bytes, {}); });
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
  try_to([&] { read_placement_names(bytes); });
  read_placement_json(bytes, small_problem());
}

// Its first byte says which format.
void import_file(const std::string& bytes) {
  if (bytes.empty()) return;
  const auto number = static_cast<unsigned char>(bytes[0]) % importers().size();
  importers()[number].read({.problem = small_problem(), .content = bytes.substr(1)});
}

const Graph& small_model() {
  static const Graph graph = read_graph_json(
      R"({"format": "emplace.graph/1", "tensors": [{"shape": [4, 4], "dtype": "float32"},
          {"shape": [8, 4], "dtype": "float32"}, {"shape": [8, 4], "dtype": "float32"}],
          "ops": [{"name": "w", "type": "parameter", "inputs": [], "outputs": [0]},
                  {"name": "x", "type": "input", "inputs": [], "outputs": [1]},
                  {"name": "y", "type": "MatMul", "inputs": [1, 0], "outputs": [2]}]})");
  return graph;
}

void partition(const std::string& bytes) {
  is_partition_json(bytes);
  SavedPartition partition = read_partition_json(bytes);
  try_to([&] { fit_partition(partition, small_model()); });
}

// The file's first line is the one that its reader expects.
void phases(const std::string& bytes) {
  parse_phases(bytes, bytes.substr(0, bytes.find('\n') + 1));
}

// What an external placer says.
void external(const std::string& bytes) {
  const ExternalRequest request = read_request(bytes, small_problem());
  for (const std::vector<std::int64_t>& devices : request.devices) {
    read_devices(devices, small_problem());
  }
}

void append_number(std::string& to, std::int64_t value) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  to.append(bytes, 8);
}

// Entries of a checkpoint; the head and the checksum, which no mutation would hit, come by
// themselves. Every entry is asked for as what it may be.
void state(const std::string& bytes) {
  // Of one without entries: all but their number and the sum.
  const std::string none = learn::StateWriter().bytes();
  std::string whole = none.substr(0, none.size() - 16) + bytes;
  append_number(whole, static_cast<std::int64_t>(
                           crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size())));
  const learn::StateReader reader(whole, "fuzzed");
  for (const char* name : {"version", "kind", "width", "layers", "subject", "began_with", "rng",
                           "round", "best", "a", ""}) {
    try_to([&] { reader.integer(name); });
    try_to([&] { reader.integer(name, -8, 8); });
    try_to([&] { reader.integers(name); });
    try_to([&] { reader.indices(name, 1, 8); });
    try_to([&] { reader.count(name); });
    try_to([&] { reader.real(name); });
    try_to([&] { reader.reals(name); });
    try_to([&] { reader.text(name); });
  }
}

void curves(const std::string& bytes) {
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  rows_before(bytes, "round,evaluations\n", kAll, "fuzzed");
  rows_before("round,evaluations\n" + bytes, "round,evaluations\n", 100, "fuzzed");
}

void collectives(const std::string& bytes) {
  read_collectives(bytes, "fuzzed");
}

void page(const std::string& bytes) {
  results_in_text(bytes, "fuzzed");
}

// What ranks tell each other of placements, and the parts of which all messages consist.
void messages(const std::string& bytes) {
  try_to([&] { dist::Reader(bytes).text(); });
  try_to([&] { dist::Reader(bytes).flag(); });
  try_to([&] { dist::Reader(bytes).numbers<double>(); });
  try_to([&] {
    dist::Reader reader(bytes);
    take_sample(reader, small_problem());
  });
  dist::Reader reader(bytes);
  take_placement(reader, small_problem());
  take_value(reader);
}

// One parser for each first byte.
void texts(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::string text = bytes.substr(1);
  switch (static_cast<unsigned char>(bytes[0]) % 11) {
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
    case 8:
      zoo::parse_options(zoo::split_name(text).options);
      break;
    case 9:
      BatchRange::parse(text);
      break;
    default:
      Decimal::parse(text);
  }
}

constexpr std::array<Target, 20> kTargets{{{"graph_json", graph_json},
                                           {"onnx", onnx},
                                           {"onnx_node", onnx_node},
                                           {"onnx_model", onnx_model},
                                           {"gzip", gzip},
                                           {"cluster_yaml", cluster_yaml},
                                           {"dnn_partitioning", dnn_partitioning},
                                           {"pipedream", pipedream},
                                           {"iopddl", iopddl},
                                           {"placement", placement},
                                           {"import", import_file},
                                           {"partition", partition},
                                           {"external", external},
                                           {"state", state},
                                           {"curves", curves},
                                           {"collectives", collectives},
                                           {"page", page},
                                           {"phases", phases},
                                           {"messages", messages},
                                           {"texts", texts}}};

}  // namespace

std::span<const Target> targets() {
  return kTargets;
}

std::optional<std::string> call(const Target& target, const std::string& bytes) {
  try {
    target.read(bytes);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace emplace::fuzz

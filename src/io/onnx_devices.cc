// The fields are newer than the library's headers, so they are written and read as unknown fields:
//
//   ModelProto.configuration = 26 {name = 1, num_devices = 2, device = 3}
//   NodeProto.device_configurations = 10 {configuration_id = 1, sharding_spec = 2, pipeline_stage =
//   3} sharding_spec {tensor_name = 1, device = 2, index_to_device_group_map = 3 {key = 1, value =
//   2},
//                  sharded_dim = 4 {axis = 1, simple_sharding = 2 {num_shards = 3}}}
//
// A tensor's devices are listed in the order of its parts, row by row over the axes that are cut.
// Where several devices have the same part, the entry is a negative number that the map explains.
#include "io/onnx_devices.h"

#include <algorithm>
#include <limits>

#include <google/protobuf/unknown_field_set.h>

#include "base/error.h"

#include "cluster/cluster.h"

#include "io/onnx_flat_model.h"
#include "io/onnx_flatten.h"
#include "io/onnx_node.h"

namespace emplace {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr int kFirstIrVersion = 11;
constexpr int kConfigurationField = 26;
constexpr int kNodeField = 10;

std::string serialized(const UnknownFieldSet& fields) {
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

std::uint64_t as_varint(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}

void add_spec(const std::string& tensor, const OnnxTensorCut& cut, UnknownFieldSet& configuration) {
  UnknownFieldSet spec;
  spec.AddLengthDelimited(1, tensor);
  UnknownFieldSet groups;
  for (std::size_t i = 0; i < cut.groups.size(); ++i) {
    const auto& group = cut.groups[i];
    const std::int64_t key = -1 - static_cast<std::int64_t>(i);
    spec.AddVarint(2, as_varint(group.size() == 1 ? group[0] : key));
    if (group.size() == 1) continue;
    UnknownFieldSet entry;
    entry.AddVarint(1, as_varint(key));
    for (const std::int64_t device : group) entry.AddVarint(2, as_varint(device));
    groups.AddLengthDelimited(3, serialized(entry));
  }
  spec.MergeFrom(groups);
  for (const auto& [axis, parts] : cut.axes) {
    UnknownFieldSet sharding;
    sharding.AddVarint(3, as_varint(parts));
    UnknownFieldSet dim;
    dim.AddVarint(1, as_varint(axis));
    dim.AddLengthDelimited(2, serialized(sharding));
    spec.AddLengthDelimited(4, serialized(dim));
  }
  configuration.AddLengthDelimited(2, serialized(spec));
}

template <class Message>
UnknownFieldSet& unknown_of(Message& message) {
  return *message.GetReflection()->MutableUnknownFields(&message);
}

// What an earlier export of this sort said is replaced.
template <class Message>
void drop_field(Message& message, int number) {
  unknown_of(message).DeleteByNumber(number);
}

void annotate_model(onnx::ModelProto& model, const std::string& name,
                    const std::vector<std::string>& devices) {
  drop_field(model, kConfigurationField);
  UnknownFieldSet configuration;
  configuration.AddLengthDelimited(1, name);
  configuration.AddVarint(2, devices.size());
  for (const std::string& device : devices) configuration.AddLengthDelimited(3, device);
  unknown_of(model).AddLengthDelimited(kConfigurationField, serialized(configuration));
  model.set_ir_version(std::max<std::int64_t>(model.ir_version(), kFirstIrVersion));
}

void annotate_node(onnx::NodeProto& node, const UnknownFieldSet& configuration) {
  drop_field(node, kNodeField);
  unknown_of(node).AddLengthDelimited(kNodeField, serialized(configuration));
}

std::string put_together(FlatOnnxModel&& flat) {
  auto& graph = *flat.model.mutable_graph();
  for (FlatOnnxNode& node : flat.nodes) graph.add_node()->Swap(&node.proto);
  return flat.model.SerializeAsString();
}

// Which parts of a tensor each worker has: workers count through the levels, the last one fastest.
OnnxTensorCut cut_of(const SavedPartition& partition, const SavedPartition::Tensor& tensor) {
  OnnxTensorCut cut;
  const std::size_t levels = partition.factors.size();
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    int parts = 1;
    for (std::size_t level = 0; level < levels; ++level) {
      if (tensor.split[level] == static_cast<int>(axis)) parts *= partition.factors[level];
    }
    if (parts > 1) cut.axes.emplace_back(static_cast<int>(axis), parts);
  }
  std::size_t parts = 1;
  for (const auto& [axis, count] : cut.axes) parts *= static_cast<std::size_t>(count);
  cut.groups.resize(parts);
  for (std::size_t worker = 0; worker < partition.devices.size(); ++worker) {
    std::size_t part = 0;
    for (const auto& [axis, count] : cut.axes) {
      std::size_t on_axis = 0;
      std::size_t stride = partition.devices.size();
      for (std::size_t level = 0; level < levels; ++level) {
        const auto factor = static_cast<std::size_t>(partition.factors[level]);
        stride /= factor;
        const std::size_t digit = worker / stride % factor;
        if (tensor.split[level] == axis) on_axis = on_axis * factor + digit;
      }
      part = part * static_cast<std::size_t>(count) + on_axis;
    }
    cut.groups[part].push_back(static_cast<std::int64_t>(worker));
  }
  return cut;
}

[[noreturn]] void fail_annotation(const std::string& where) {
  fail_input("{}: its device configuration is not a valid message", where);
}

// Repeated numbers are written one by one, or packed, as newer writers do.
void append_numbers(const UnknownField& field, const std::string& where,
                    std::vector<std::int64_t>& numbers) {
  if (field.type() == UnknownField::TYPE_VARINT) {
    numbers.push_back(static_cast<std::int64_t>(field.varint()));
    return;
  }
  if (field.type() != UnknownField::TYPE_LENGTH_DELIMITED) fail_annotation(where);
  std::uint64_t number = 0;
  int shift = 0;
  for (const char c : field.length_delimited()) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (shift > 63) fail_annotation(where);
    number |= std::uint64_t{byte & 127U} << shift;
    shift += 7;
    if (byte >= 128) continue;
    numbers.push_back(static_cast<std::int64_t>(number));
    number = 0;
    shift = 0;
  }
  if (shift != 0) fail_annotation(where);
}

template <class Visit>
void for_each_unknown(const UnknownFieldSet& fields, const Visit& visit) {
  for (int i = 0; i < fields.field_count(); ++i) visit(fields.field(i));
}

const std::string& text_of(const UnknownField& field, const std::string& where) {
  if (field.type() != UnknownField::TYPE_LENGTH_DELIMITED) fail_annotation(where);
  return field.length_delimited();
}

// Of a field that is a message.
template <class Visit>
void for_each_inside(const UnknownField& field, const std::string& where, const Visit& visit) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(text_of(field, where))) fail_annotation(where);
  for_each_unknown(fields, visit);
}

std::int64_t number_of(const UnknownField& field, const std::string& where) {
  if (field.type() != UnknownField::TYPE_VARINT) fail_annotation(where);
  return static_cast<std::int64_t>(field.varint());
}

void expect_devices(std::size_t count, const std::string& where) {
  if (count <= Cluster::kMaxDevices) return;
  fail_input("{}: its device configuration names more than {} devices, the most of a cluster",
             where, Cluster::kMaxDevices);
}

// How one axis is cut.
std::pair<int, int> read_axis(const UnknownField& field, const std::string& where) {
  std::int64_t axis = 0;
  std::int64_t parts = 1;
  for_each_inside(field, where, [&](const UnknownField& entry) {
    if (entry.number() == 1) axis = number_of(entry, where);
    if (entry.number() != 2) return;
    for_each_inside(entry, where, [&](const UnknownField& sharding) {
      if (sharding.number() == 3) parts = number_of(sharding, where);
    });
  });
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (axis < -kMost || axis > kMost || parts < 1 || parts > kMost) fail_annotation(where);
  return {static_cast<int>(axis), static_cast<int>(parts)};
}

// A tensor's name, and where it lies.
std::pair<std::string, OnnxTensorCut> read_sharding(const UnknownField& spec,
                                                    const std::string& where) {
  std::string tensor;
  OnnxTensorCut cut;
  std::vector<std::int64_t> devices;
  std::map<std::int64_t, std::vector<std::int64_t>> groups;
  for_each_inside(spec, where, [&](const UnknownField& entry) {
    if (entry.number() == 1) tensor = text_of(entry, where);
    if (entry.number() == 2) append_numbers(entry, where, devices);
    if (entry.number() == 4) cut.axes.push_back(read_axis(entry, where));
    if (entry.number() != 3) return;
    std::vector<std::int64_t> key;
    std::vector<std::int64_t> group;
    for_each_inside(entry, where, [&](const UnknownField& number) {
      append_numbers(number, where, number.number() == 1 ? key : group);
    });
    if (key.size() == 1) groups[key[0]] = group;
  });
  std::sort(cut.axes.begin(), cut.axes.end());
  // A group may be named any number of times, so that a small file could say very many devices.
  std::size_t said = 0;
  for (const std::int64_t device : devices) {
    const auto group = groups.find(device);
    said += group == groups.end() ? 1 : group->second.size();
    expect_devices(said, where);
    cut.groups.push_back(group == groups.end() ? std::vector<std::int64_t>{device} : group->second);
  }
  return {std::move(tensor), std::move(cut)};
}

OnnxDeviceNotes::Op read_node_notes(const onnx::NodeProto& node,
                                    const UnknownField& configuration) {
  const std::string where = node_label(node);
  OnnxDeviceNotes::Op op;
  for_each_inside(configuration, where, [&](const UnknownField& field) {
    if (field.number() == 3 && field.type() == UnknownField::TYPE_VARINT) {
      op.stage = static_cast<std::int64_t>(field.varint());
    }
    if (field.number() != 2) return;
    auto [tensor, cut] = read_sharding(field, where);
    if (std::find(node.output().begin(), node.output().end(), tensor) != node.output().end()) {
      for (const auto& group : cut.groups) {
        for (const std::int64_t member : group) {
          if (std::find(op.devices.begin(), op.devices.end(), member) == op.devices.end()) {
            op.devices.push_back(member);
            expect_devices(op.devices.size(), where);
          }
        }
      }
    }
    op.tensors[std::move(tensor)] = std::move(cut);
  });
  return op;
}

}  // namespace

bool OnnxDeviceNotes::Op::cut() const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& tensor) { return !tensor.second.axes.empty(); });
}

std::string write_onnx_devices(const PlacedOnnx& model, const std::string& configuration,
                               const std::vector<int>& stage_of_device) {
  FlatOnnxModel flat = read_flat_onnx(model.source.bytes, model.source.options);
  annotate_model(flat.model, configuration, model.devices);
  for (FlatOnnxNode& node : flat.nodes) {
    const DeviceId device = model.device_of(node.op);
    UnknownFieldSet fields;
    fields.AddLengthDelimited(1, configuration);
    for (const std::string& name : node.proto.output()) {
      if (!name.empty()) add_spec(name, {.groups = {{device}}}, fields);
    }
    if (!stage_of_device.empty() && stage_of_device.at(device) >= 0) {
      fields.AddVarint(3, as_varint(stage_of_device[device]));
    }
    annotate_node(node.proto, fields);
  }
  return put_together(std::move(flat));
}

CutOnnx write_onnx_devices(const OnnxSource& source, const SavedPartition& partition) {
  FlatOnnxModel flat = read_flat_onnx(source.bytes, source.options);
  const std::string configuration =
      partition.cluster.empty() ? std::string("partition") : partition.cluster;
  annotate_model(flat.model, configuration, partition.devices);
  // The name that the partition has for each value: its op's, with a number where there are
  // several.
  std::unordered_map<std::string, const SavedPartition::Tensor*> cuts;
  const auto note = [&](const std::string& value, const std::string& name) {
    if (const auto* tensor = partition.find_tensor(name)) cuts[value] = tensor;
  };
  for (const auto& tensor : flat.model.graph().initializer()) note(tensor.name(), tensor.name());
  for (const auto& value : flat.model.graph().input()) note(value.name(), value.name());
  for (const FlatOnnxNode& node : flat.nodes) {
    int given = 0;
    for (const std::string& value : node.proto.output()) {
      if (value.empty()) continue;
      note(value, node.op);
      note(value, fmt::format("{}:{}", node.op, given++));
    }
  }
  CutOnnx result;
  for (FlatOnnxNode& node : flat.nodes) {
    UnknownFieldSet fields;
    fields.AddLengthDelimited(1, configuration);
    std::vector<std::string> values = values_read(node.proto);
    values.insert(values.end(), node.proto.output().begin(), node.proto.output().end());
    bool any = false;
    for (const std::string& value : values) {
      const auto cut = cuts.find(value);
      if (cut == cuts.end()) continue;
      add_spec(value, cut_of(partition, *cut->second), fields);
      any = true;
    }
    ++(any ? result.nodes : result.unknown);
    if (any) annotate_node(node.proto, fields);
  }
  result.bytes = put_together(std::move(flat));
  return result;
}

std::optional<OnnxDeviceNotes> read_onnx_devices(const OnnxSource& source) {
  const FlatOnnxModel flat = read_flat_onnx(source.bytes, source.options);
  OnnxDeviceNotes notes;
  bool found = false;
  for_each_unknown(flat.model.unknown_fields(), [&](const UnknownField& field) {
    // The first of several is the one that is read.
    if (field.number() != kConfigurationField || found) return;
    found = true;
    const std::string where = "configuration";
    for_each_inside(field, where, [&](const UnknownField& entry) {
      if (entry.number() == 1) notes.configuration = text_of(entry, where);
      if (entry.number() == 3) notes.devices.push_back(text_of(entry, where));
    });
  });
  if (!found) return std::nullopt;
  for (const FlatOnnxNode& node : flat.nodes) {
    for_each_unknown(node.proto.unknown_fields(), [&](const UnknownField& field) {
      if (field.number() != kNodeField) return;
      const std::string where = node_label(node.proto);
      std::string configuration;
      for_each_inside(field, where, [&](const UnknownField& entry) {
        if (entry.number() == 1) configuration = text_of(entry, where);
      });
      if (configuration == notes.configuration) {
        notes.ops[node.op] = read_node_notes(node.proto, field);
      }
    });
  }
  return notes;
}

}  // namespace emplace

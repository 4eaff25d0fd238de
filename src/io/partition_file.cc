#include "io/partition_file.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"

#include "graph/tensor_type.h"

#include "io/json_fields.h"

namespace emplace {
namespace {

constexpr std::string_view kPartitionFormat = "emplace.partition/1";

// A list with an entry for each level; `read` is given those that are not null.
template <class Entry, class Read>
std::vector<std::optional<Entry>> read_levels(JsonValue value, const std::string& field,
                                              std::size_t levels, const Read& read) {
  std::vector<std::optional<Entry>> entries;
  for (auto item : json_array(value, field)) {
    JsonValue entry = item.value();
    entries.push_back(entry.is_null() ? std::nullopt : std::optional<Entry>(read(entry)));
  }
  if (entries.size() != levels) {
    fail_input("{}: expected {} entries, one for each of 'factors', instead of {}", field, levels,
               entries.size());
  }
  return entries;
}

class PartitionReader {
 public:
  SavedPartition read(simdjson::ondemand::document& document) {
    bool cut = false;
    for (auto field : json_root(document)) {
      const std::string_view key = field.unescaped_key();
      if (key == "format") {
        const std::string format = json_string(field.value(), "format");
        if (format != kPartitionFormat) {
          fail_input("format: expected \"{}\" instead of \"{}\"", kPartitionFormat, format);
        }
      } else if (key == "graph") {
        file_.graph = json_string(field.value(), "graph");
      } else if (key == "cluster") {
        file_.cluster = json_string(field.value(), "cluster");
      } else if (key == "method") {
        file_.method = json_string(field.value(), "method");
      } else if (key == "factors") {
        read_factors(field.value());
      } else if (key == "devices") {
        file_.devices = json_strings(field.value(), "devices");
      } else if (key == "tensors") {
        cut = true;
        read_tensors(json_object(field.value(), "tensors"));
      } else if (key == "ops") {
        read_ops(json_object(field.value(), "ops"));
      }
    }
    expect_end(document);
    if (!cut) fail_input("tensors: is missing");
    for (const auto& [name, tensor] : file_.tensors) {
      if (tensor.split.size() == file_.factors.size()) continue;
      fail_input(
          "tensor '{}': split: expected {} entries, one for each of 'factors', instead of {}", name,
          file_.factors.size(), tensor.split.size());
    }
    for (const auto& [name, op] : file_.ops) {
      if (op.strategy.size() == file_.factors.size()) continue;
      fail_input("op '{}': strategy: expected {} entries, one for each of 'factors', instead of {}",
                 name, file_.factors.size(), op.strategy.size());
    }
    std::size_t workers = 1;
    for (const int factor : file_.factors) {
      if (workers <= file_.devices.size()) workers *= static_cast<std::size_t>(factor);
    }
    if (workers != file_.devices.size()) {
      fail_input("devices: expected {}, the product of 'factors', instead of {}", workers,
                 file_.devices.size());
    }
    return std::move(file_);
  }

 private:
  void read_factors(JsonValue value) {
    constexpr std::int64_t kMost = 1'000'000;
    if (!file_.factors.empty()) fail_input("factors: is there twice");
    for (const std::int64_t factor : json_integers(value, "factors")) {
      if (factor < 1 || factor > kMost) fail_input("factors: {} is no number of groups", factor);
      file_.factors.push_back(static_cast<int>(factor));
    }
  }

  // What the shape says of it is checked when all is read.
  static int dimension_of(std::int64_t number, const std::string& where) {
    if (number >= 0 && number <= std::numeric_limits<int>::max()) return static_cast<int>(number);
    fail_input("{}: {} is no dimension", where, number);
  }

  // That counting with it does not overflow.
  static void check_shape(const std::vector<std::int64_t>& shape, const std::string& where) {
    if (shape.size() > limits::kRank) {
      fail_input("{}: has {} dimensions; a tensor has at most {}", where, shape.size(),
                 limits::kRank);
    }
    std::int64_t elements = 1;  // also where a dimension is 0: others are multiplied all the same
    for (const std::int64_t dim : shape) {
      if (dim < 0) fail_input("{}: dimension {} is negative", where, dim);
      elements = saturating_multiply(elements, std::max<std::int64_t>(1, dim));
    }
    if (elements > limits::kTensorBytes) {
      fail_input("{}: [{}] is too large; expected {} elements at most", where,
                 fmt::join(shape, ", "), limits::kTensorBytes);
    }
  }

  void read_tensors(simdjson::ondemand::object tensors) {
    for (auto field : tensors) {
      const std::string name(std::string_view(field.unescaped_key()));
      SavedPartition::Tensor tensor;
      for (auto part : json_object(field.value(), "tensor '" + name + "'")) {
        const std::string_view key = part.unescaped_key();
        const std::string where = "tensor '" + name + "': " + std::string(key);
        if (key == "shape") {
          tensor.shape = json_integers(part.value(), where);
          check_shape(tensor.shape, where);
        } else if (key == "split") {
          tensor.split = read_levels<int>(
              part.value(), where, file_.factors.size(),
              [&](JsonValue entry) { return dimension_of(json_integer(entry, where), where); });
        } else if (key == "held") {
          tensor.held = json_flag(part.value(), where);
        }
      }
      for (const auto& dimension : tensor.split) {
        if (!dimension) continue;
        if (*dimension < 0 || static_cast<std::size_t>(*dimension) >= tensor.shape.size()) {
          fail_input("tensor '{}': split: {} is no dimension of a tensor of rank {}", name,
                     *dimension, tensor.shape.size());
        }
      }
      file_.tensors[name] = std::move(tensor);
    }
  }

  void read_ops(simdjson::ondemand::object ops) {
    for (auto field : ops) {
      const std::string name(std::string_view(field.unescaped_key()));
      SavedPartition::Op op;
      for (auto part : json_object(field.value(), "op '" + name + "'")) {
        const std::string_view key = part.unescaped_key();
        const std::string where = "op '" + name + "': " + std::string(key);
        if (key == "type") {
          op.type = json_string(part.value(), where);
        } else if (key == "strategy") {
          op.strategy =
              read_levels<std::string>(part.value(), where, file_.factors.size(),
                                       [&](JsonValue entry) { return json_string(entry, where); });
        }
      }
      file_.ops[name] = std::move(op);
    }
  }

  SavedPartition file_;
};

// Puts cuts of a tensor with the dimensions `at` (the number of parts) and `at + 1` (what each has)
// into those of the tensor in which both are one. That cannot say what cuts each part, nor what
// gives parts to groups unevenly: false where there was such a cut.
bool join_dimensions(std::size_t at, const std::vector<int>& factors,
                     SavedPartition::Tensor& tensor) {
  const int joined = static_cast<int>(at);
  std::int64_t parts = tensor.shape[at];
  bool all = true;
  for (std::size_t level = 0; level < tensor.split.size(); ++level) {
    std::optional<int>& dimension = tensor.split[level];
    if (!dimension || *dimension < joined) continue;
    if (*dimension > joined + 1) {
      --*dimension;
    } else if (*dimension == joined && parts % factors[level] == 0) {
      parts /= factors[level];
    } else {
      dimension.reset();
      all = false;
    }
  }
  return all;
}

// The cuts of a tensor in the model's own dimensions, where the partition has two for one of them:
// parts that lie side by side, as gates do in a matrix of weights. False where a cut was lost,
// nothing where the tensor is another.
std::optional<bool> put_into_shape(const std::vector<std::int64_t>& shape,
                                   const std::vector<int>& factors,
                                   SavedPartition::Tensor& tensor) {
  if (tensor.shape == shape) return true;
  if (tensor.shape.size() != shape.size() + 1) return std::nullopt;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    std::vector<std::int64_t> joined = tensor.shape;
    joined[at] *= joined[at + 1];
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    if (joined != shape) continue;
    const bool all = join_dimensions(at, factors, tensor);
    tensor.shape = shape;
    return all;
  }
  return std::nullopt;
}

}  // namespace

const SavedPartition::Tensor* SavedPartition::find_tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

const SavedPartition::Op* SavedPartition::find_op(const std::string& name) const {
  const auto found = ops.find(name);
  return found == ops.end() ? nullptr : &found->second;
}

bool is_partition_json(const std::string& text) {
  // Its own files say so at once; what else says it further on is read, and refused, as what it is.
  constexpr std::size_t kHead = 200;
  return std::string_view(text).substr(0, kHead).find(kPartitionFormat) != std::string_view::npos;
}

SavedPartition read_partition_json(const std::string& text) {
  JsonText json(text);
  return reading_json([&] { return PartitionReader().read(json.document()); });
}

LostCuts fit_partition(SavedPartition& partition, const Graph& graph) {
  const bool other = !partition.graph.empty() && partition.graph != graph.name();
  const std::string made_for =
      other ? fmt::format("; it was made for '{}', not '{}'", partition.graph, graph.name()) : "";
  LostCuts lost;
  bool known = false;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const bool source = graph.is_source(op) && graph.role(op) != OpRole::kConstant;
    const auto outputs = graph.outputs(op);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = outputs.size() == 1 ? std::string(graph.op_name(op))
                                                   : fmt::format("{}:{}", graph.op_name(op), i);
      const auto found = partition.tensors.find(name);
      if (found == partition.tensors.end()) {
        if (source && graph.role(op) == OpRole::kParameter &&
            !graph.consumers(outputs[i]).empty()) {
          fail_input("the partition says nothing of parameter '{}'{}", name, made_for);
        }
        continue;
      }
      known |= source;
      if (!graph.has_shape(outputs[i])) continue;
      const auto shape = graph.shape(outputs[i]);
      const std::optional<bool> whole =
          put_into_shape({shape.begin(), shape.end()}, partition.factors, found->second);
      if (!whole && source) {
        fail_input("tensor '{}': is [{}] in the partition, and [{}] in the model{}", name,
                   fmt::join(found->second.shape, ", "), fmt::join(shape, ", "), made_for);
      }
      if (!whole) partition.tensors.erase(found);
      if (!whole || !*whole) (source ? lost.sources : lost.inside).push_back(name);
    }
  }
  if (!known) {
    fail_input("the partition names no weight and no input of the model{}", made_for);
  }
  return lost;
}

}  // namespace emplace

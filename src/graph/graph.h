// A model's step: ops that produce and consume tensors. Compact arrays, immutable, and valid by
// construction: ops are in topological order, every tensor has one producer, names are unique.
// Built with GraphBuilder (graph/graph_builder.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csr.h"
#include "base/decimal.h"
#include "base/ids.h"
#include "base/string_pool.h"
#include "base/units.h"

#include "graph/attributes.h"
#include "graph/dtype.h"

namespace emplace {

enum class Phase : std::uint8_t { kForward, kBackward, kUpdate };

std::string_view phase_name(Phase phase);
std::optional<Phase> parse_phase(std::string_view name);

// What the simulator needs to know of an op's type; every other type is kCompute.
enum class OpRole : std::uint8_t { kCompute, kParameter, kBuffer, kInput, kConstant };

OpRole role_of_type(std::string_view type);

// How long an op was measured to take on a device of this name or kind.
struct MeasuredTime {
  StringId device;  // a device name or a device kind
  Decimal microseconds;
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }

  OpId num_ops() const { return static_cast<OpId>(op_type_.size()); }
  TensorId num_tensors() const { return static_cast<TensorId>(tensor_bytes_.size()); }
  std::size_t num_edges() const { return consumers_.total(); }  // (tensor, consumer) pairs

  // Tensors that an op reads, as listed (the first is what a view aliases; one may occur twice),
  // and those it writes.
  std::span<const TensorId> inputs(OpId op) const { return inputs_[op]; }
  std::span<const TensorId> outputs(OpId op) const { return outputs_[op]; }
  // Ops that must finish first without handing over data. Ascending, no repeats.
  std::span<const OpId> after(OpId op) const { return after_[op]; }

  std::string_view op_name(OpId op) const { return names_.get(op); }
  std::optional<OpId> find_op(std::string_view name) const;
  std::string_view type(OpId op) const { return strings_.get(op_type_[op]); }
  OpRole role(OpId op) const { return role_[op]; }
  bool is_source(OpId op) const { return role_[op] != OpRole::kCompute; }
  Phase phase(OpId op) const { return phase_[op]; }
  bool is_view(OpId op) const { return view_[op] != 0; }
  // Floating-point operations, and bytes read and written; nothing where the file does not say.
  std::optional<std::int64_t> flops(OpId op) const;
  std::optional<Bytes> bytes_moved(OpId op) const;
  Bytes persistent_bytes(OpId op) const { return persistent_bytes_[op]; }
  Bytes temp_bytes(OpId op) const { return temp_bytes_[op]; }
  std::span<const MeasuredTime> measured_times(OpId op) const { return times_[op]; }
  std::string_view module(OpId op) const { return strings_.get(module_[op]); }
  StringId module_id(OpId op) const { return module_[op]; }
  std::string_view colocate(OpId op) const { return strings_.get(colocate_[op]); }
  StringId colocate_id(OpId op) const { return colocate_[op]; }  // kEmptyString: none
  // Device names or kinds that the op may use; empty: any.
  std::span<const StringId> allowed_devices(OpId op) const { return allowed_devices_[op]; }

  // Of the operator, where the graph's source says them.
  const Attributes& attributes(OpId op) const { return attribute_sets_[attributes_[op]]; }

  // The op's types, modules, colocation names and device names.
  const StringPool& strings() const { return strings_; }

  OpId producer(TensorId tensor) const { return producer_[tensor]; }
  // Distinct ops that read the tensor, ascending.
  std::span<const OpId> consumers(TensorId tensor) const { return consumers_[tensor]; }
  Bytes bytes(TensorId tensor) const { return tensor_bytes_[tensor]; }          // when sent
  Bytes memory_bytes(TensorId tensor) const { return tensor_memory_[tensor]; }  // where it lies
  bool has_shape(TensorId tensor) const { return dtype_[tensor] != DType::kUnknown; }
  std::span<const std::int64_t> shape(TensorId tensor) const { return shapes_[tensor]; }
  DType dtype(TensorId tensor) const { return dtype_[tensor]; }

 private:
  friend class GraphBuilder;
  Graph();

  static constexpr std::int64_t kUnknown = -1;

  std::string name_;
  std::string source_;
  StringPool strings_;
  StringPool names_;  // op names; a name's StringId is the op's index

  std::vector<StringId> op_type_;
  std::vector<OpRole> role_;
  std::vector<Phase> phase_;
  std::vector<std::uint8_t> view_;
  std::vector<std::int64_t> flops_;
  std::vector<Bytes> bytes_moved_;
  std::vector<Bytes> persistent_bytes_;
  std::vector<Bytes> temp_bytes_;
  std::vector<StringId> module_;
  std::vector<StringId> colocate_;
  std::vector<std::uint32_t> attributes_;   // an index into attribute_sets_
  std::vector<Attributes> attribute_sets_;  // the first has no entries
  Csr<TensorId> inputs_;
  Csr<TensorId> outputs_;
  Csr<OpId> after_;
  Csr<MeasuredTime> times_;
  Csr<StringId> allowed_devices_;

  std::vector<Bytes> tensor_bytes_;
  std::vector<Bytes> tensor_memory_;
  std::vector<OpId> producer_;
  std::vector<DType> dtype_;
  Csr<std::int64_t> shapes_;
  Csr<OpId> consumers_;
};

}  // namespace emplace

// Builds a Graph from code. Ops must be added in topological order; `build` checks the whole and
// throws an Error that names the op and the field. Updates get an `after` for every op that reads
// their parameter (graph/update_order.h).
//
//   GraphBuilder builder("two-layers");
//   const TensorId x = builder.add_tensor({.shape = {32, 64}, .dtype = DType::kFloat32});
//   builder.add_op({.name = "x", .type = "input", .outputs = {x}});
//   ...
//   const Graph graph = std::move(builder).build();
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace emplace {

// Either shape and dtype, or bytes.
struct TensorSpec {
  std::vector<std::int64_t> shape = {};
  DType dtype = DType::kUnknown;
  std::optional<Bytes> bytes = std::nullopt;
  std::optional<Bytes> memory_bytes = std::nullopt;  // what a copy occupies, if not its size
  std::optional<Bytes> sent_bytes = std::nullopt;    // what a transfer carries, if not its size
};

struct OpSpec {
  std::string name;
  std::string type;
  std::vector<TensorId> inputs = {};
  std::vector<TensorId> outputs = {};
  Phase phase = Phase::kForward;
  std::optional<std::int64_t> flops = std::nullopt;
  std::optional<Bytes> bytes_moved = std::nullopt;
  std::vector<std::pair<std::string, Decimal>> time_us = {};  // by device name or kind
  Bytes persistent_bytes = 0;
  Bytes temp_bytes = 0;
  bool view = false;
  std::string module = {};
  std::vector<std::string> after = {};
  std::string colocate = {};
  std::vector<std::string> devices = {};
  Attributes attributes = {};
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name, std::string source = {});

  void set_name(std::string name) { graph_.name_ = std::move(name); }
  void set_source(std::string source) { graph_.source_ = std::move(source); }

  TensorId add_tensor(const TensorSpec& spec);
  OpId add_op(const OpSpec& spec);

  // An op with outputs of these shapes, made and returned in one call.
  std::vector<TensorId> add(OpSpec spec, const std::vector<TensorSpec>& outputs);

  // Whether an op of this name was added.
  bool has_op(std::string_view name) const { return graph_.names_.find(name).has_value(); }
  OpId num_ops() const { return static_cast<OpId>(graph_.op_type_.size()); }
  TensorId num_tensors() const { return static_cast<TensorId>(graph_.tensor_bytes_.size()); }

  Graph build() &&;

 private:
  struct LaterName {  // an `after` that names an op not yet added
    OpId op;
    std::string name;
  };

  std::uint32_t intern_attributes(const Attributes& attributes);
  void check_order() const;
  [[noreturn]] void report_order(OpId op, OpId needs) const;
  void link_after();
  void lay_out_after();
  void order_updates();
  void link_consumers();

  Graph graph_;
  std::map<Attributes, std::uint32_t> attribute_index_;
  std::vector<std::pair<OpId, OpId>> after_pairs_;
  std::vector<LaterName> later_names_;
};

}  // namespace emplace

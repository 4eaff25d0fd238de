// Checks a graph and lays it out: flat arrays by op and by tensor, names interned.
//
// Invariants of what is built: every tensor has one producer, which comes before its readers; an op
// comes after all ops that it names in `after`; names are unique; sizes are at most 2^60. A name in
// `after` may be that of an op added later until build() resolves it, and then the order decides:
// the first op that needs a later one is an error, and only then a search finds out whether it is
// part of a cycle. Linear in ops and edges, with names hashed.
#include "graph/graph_builder.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

#include "graph/update_order.h"

namespace emplace {
namespace {

Bytes shape_bytes(const TensorSpec& spec, TensorId id) {
  std::int64_t bits = dtype_bits(spec.dtype);
  for (const std::int64_t dim : spec.shape) {
    if (dim < 0) fail_input("tensor {}: shape: dimension {} is negative", id, dim);
    if (dim > limits::kTensorBytes) {
      fail_input("tensor {}: shape: dimension {} is too large; expected {} at most", id, dim,
                 limits::kTensorBytes);
    }
    if (__builtin_mul_overflow(bits, dim, &bits) || bits / 8 > limits::kTensorBytes) {
      fail_input("tensor {}: shape: its size overflows; expected {} bytes at most", id,
                 limits::kTensorBytes);
    }
  }
  return (bits + 7) / 8;
}

// `what()` says what the value belongs to; it is asked only when something is wrong.
template <class What>
void check_size(std::int64_t value, const What& what, std::string_view field) {
  if (value < 0) fail_input("{}: {}: {} is negative", what(), field, value);
  if (value > limits::kTensorBytes) {
    fail_input("{}: {}: {} is too large; expected {} at most", what(), field, value,
               limits::kTensorBytes);
  }
}

// Names go to JSON and to terminals.
template <class What>
void check_name(std::string_view name, const What& what, std::string_view field) {
  if (name.size() > limits::kNameBytes) {
    fail_input("{}: {}: has {} bytes; a name has at most {}", what(), field, name.size(),
               limits::kNameBytes);
  }
  const std::string_view fault = fault_of_name(name);
  if (!fault.empty()) fail_input("{}: {}: '{}' {}", what(), field, printable(name), fault);
}

// What an op is called in an error about its own name.
std::string short_name(const std::string& name) {
  constexpr std::size_t kShown = 200;
  return printable(name.size() > kShown ? name.substr(0, kShown) + "..." : name);
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name, std::string source) {
  graph_.name_ = std::move(name);
  graph_.source_ = std::move(source);
  graph_.names_ = StringPool(StringPool::WithoutEmpty{});
}

TensorId GraphBuilder::add_tensor(const TensorSpec& spec) {
  const TensorId id = num_tensors();
  if (id >= limits::kTensors) fail_input("the graph has more than {} tensors", limits::kTensors);
  if (spec.shape.size() > limits::kRank) {
    fail_input("tensor {}: shape: has {} dimensions; a tensor has at most {}", id,
               spec.shape.size(), limits::kRank);
  }
  if (spec.bytes && spec.dtype != DType::kUnknown) {
    fail_input("tensor {}: has both bytes and a dtype; expected one of the two forms", id);
  }
  if (!spec.bytes && spec.dtype == DType::kUnknown) {
    fail_input("tensor {}: has neither shape and dtype nor bytes", id);
  }
  const Bytes bytes = spec.bytes ? *spec.bytes : shape_bytes(spec, id);
  const Bytes memory = spec.memory_bytes.value_or(bytes);
  const auto what = [id] { return fmt::format("tensor {}", id); };
  check_size(bytes, what, "bytes");
  check_size(memory, what, "memory_bytes");
  const Bytes sent = spec.sent_bytes.value_or(bytes);
  check_size(sent, what, "sent_bytes");
  graph_.tensor_bytes_.push_back(sent);
  graph_.tensor_memory_.push_back(memory);
  graph_.dtype_.push_back(spec.dtype);
  graph_.shapes_.push_back(spec.shape);
  graph_.producer_.push_back(kNoOp);
  return id;
}

OpId GraphBuilder::add_op(const OpSpec& spec) {
  const OpId id = num_ops();
  const auto what = [&] { return fmt::format("op '{}'", short_name(spec.name)); };
  if (id >= limits::kOps) fail_input("the graph has more than {} ops", limits::kOps);
  if (spec.name.empty()) fail_input("op {}: name: is empty", id);
  if (spec.type.empty()) fail_input("{}: type: is empty", what());
  check_name(spec.name, what, "name");
  check_name(spec.type, what, "type");
  check_name(spec.module, what, "module");
  check_name(spec.colocate, what, "colocate");
  for (const auto& [device, time] : spec.time_us) check_name(device, what, "time_us");
  for (const std::string& device : spec.devices) check_name(device, what, "devices");
  for (const auto& [name, value] : spec.attributes.entries()) check_name(name, what, "attributes");
  if (graph_.names_.intern(spec.name) != id) fail_input("{}: name: is used twice", what());
  for (const TensorId tensor : spec.inputs) {
    if (tensor >= num_tensors()) {
      fail_input("{}: inputs: there is no tensor {} (the graph has {})", what(), tensor,
                 num_tensors());
    }
  }
  for (const TensorId tensor : spec.outputs) {
    if (tensor >= num_tensors()) {
      fail_input("{}: outputs: there is no tensor {} (the graph has {})", what(), tensor,
                 num_tensors());
    }
    if (graph_.producer_[tensor] != kNoOp) {
      fail_input("{}: outputs: tensor {} is already produced by op '{}'", what(), tensor,
                 graph_.names_.get(graph_.producer_[tensor]));
    }
    graph_.producer_[tensor] = id;
  }
  if (spec.view && spec.inputs.empty()) fail_input("{}: view: a view needs an input", what());
  if (spec.flops) check_size(*spec.flops, what, "flops");
  if (spec.bytes_moved) check_size(*spec.bytes_moved, what, "bytes_moved");
  check_size(spec.persistent_bytes, what, "persistent_bytes");
  check_size(spec.temp_bytes, what, "temp_bytes");

  graph_.op_type_.push_back(graph_.strings_.intern(spec.type));
  graph_.role_.push_back(role_of_type(spec.type));
  graph_.phase_.push_back(spec.phase);
  graph_.view_.push_back(spec.view ? 1 : 0);
  graph_.flops_.push_back(spec.flops.value_or(Graph::kUnknown));
  graph_.bytes_moved_.push_back(spec.bytes_moved.value_or(Graph::kUnknown));
  graph_.persistent_bytes_.push_back(spec.persistent_bytes);
  graph_.temp_bytes_.push_back(spec.temp_bytes);
  graph_.module_.push_back(graph_.strings_.intern(spec.module));
  graph_.colocate_.push_back(graph_.strings_.intern(spec.colocate));
  graph_.attributes_.push_back(intern_attributes(spec.attributes));
  graph_.inputs_.push_back(spec.inputs);
  graph_.outputs_.push_back(spec.outputs);

  std::vector<MeasuredTime> times;
  for (const auto& [device, microseconds] : spec.time_us) {
    if (microseconds.negative()) {
      fail_input("{}: time_us: {} for '{}' is negative", what(), microseconds.to_double(), device);
    }
    times.push_back({graph_.strings_.intern(device), microseconds});
  }
  graph_.times_.push_back(times);
  std::vector<StringId> devices;
  for (const std::string& device : spec.devices) devices.push_back(graph_.strings_.intern(device));
  graph_.allowed_devices_.push_back(devices);

  for (const std::string& name : spec.after) {
    const auto before = graph_.names_.find(name);
    if (before && *before == id) fail_input("{}: after: names itself, a cycle", what());
    if (before) {
      after_pairs_.emplace_back(id, *before);
    } else {
      later_names_.push_back({id, name});
    }
  }
  return id;
}

std::uint32_t GraphBuilder::intern_attributes(const Attributes& attributes) {
  if (attributes.empty()) return 0;
  const auto index = static_cast<std::uint32_t>(graph_.attribute_sets_.size());
  const auto [at, added] = attribute_index_.try_emplace(attributes, index);
  if (added) graph_.attribute_sets_.push_back(attributes);
  return at->second;
}

std::vector<TensorId> GraphBuilder::add(OpSpec spec, const std::vector<TensorSpec>& outputs) {
  for (const TensorSpec& output : outputs) spec.outputs.push_back(add_tensor(output));
  add_op(spec);
  return spec.outputs;
}

Graph GraphBuilder::build() && {
  if (num_ops() == 0) fail_input("the graph is empty: it has no ops");
  link_after();
  check_order();
  link_consumers();
  order_updates();
  // Of a file's name, which may be anything, and of no use as a key.
  graph_.name_ = printable(graph_.name_);
  graph_.source_ = printable(graph_.source_);
  return std::move(graph_);
}

void GraphBuilder::link_after() {
  for (const LaterName& later : later_names_) {
    const auto needs = graph_.names_.find(later.name);
    if (!needs) {
      fail_input("op '{}': after: there is no op '{}'", graph_.names_.get(later.op), later.name);
    }
    after_pairs_.emplace_back(later.op, *needs);
  }
  lay_out_after();
}

void GraphBuilder::lay_out_after() {
  std::sort(after_pairs_.begin(), after_pairs_.end());
  after_pairs_.erase(std::unique(after_pairs_.begin(), after_pairs_.end()), after_pairs_.end());
  graph_.after_ = Csr<OpId>::from_pairs(num_ops(), after_pairs_);
}

void GraphBuilder::order_updates() {
  const auto pairs = updates_after_readers(graph_);
  if (pairs.empty()) return;
  after_pairs_.insert(after_pairs_.end(), pairs.begin(), pairs.end());
  lay_out_after();
}

void GraphBuilder::check_order() const {
  for (OpId op = 0; op < num_ops(); ++op) {
    for (const TensorId tensor : graph_.inputs_[op]) {
      const OpId producer = graph_.producer_[tensor];
      if (producer == kNoOp) {
        fail_input("op '{}': inputs: no op produces tensor {}", graph_.names_.get(op), tensor);
      }
      if (producer >= op) report_order(op, producer);
    }
    for (const OpId before : graph_.after_[op]) {
      if (before >= op) report_order(op, before);
    }
  }
  for (TensorId tensor = 0; tensor < num_tensors(); ++tensor) {
    if (graph_.producer_[tensor] == kNoOp) fail_input("tensor {}: no op produces it", tensor);
  }
}

// `op` needs `needs`, which does not come before it: a cycle if `needs` also depends on `op`, and
// otherwise only an order that is not topological.
void GraphBuilder::report_order(OpId op, OpId needs) const {
  std::vector<OpId> came_from(num_ops(), kNoOp);
  std::vector<OpId> stack{needs};
  came_from[needs] = needs;
  const auto visit = [&](OpId from, OpId to) {
    if (to == kNoOp || came_from[to] != kNoOp) return;
    came_from[to] = from;
    stack.push_back(to);
  };
  while (!stack.empty() && came_from[op] == kNoOp) {
    const OpId at = stack.back();
    stack.pop_back();
    for (const TensorId tensor : graph_.inputs_[at]) visit(at, graph_.producer_[tensor]);
    for (const OpId before : graph_.after_[at]) visit(at, before);
  }
  const auto name = [&](OpId id) { return graph_.names_.get(id); };
  if (came_from[op] == kNoOp) {
    fail_input("op '{}': needs op '{}', which comes after it; expected a topological order",
               name(op), name(needs));
  }
  std::string path = fmt::format("'{}'", name(op));
  constexpr int kLongest = 8;
  int shown = 0;
  for (OpId at = op; at != needs; at = came_from[at]) {
    if (++shown > kLongest) {
      path += " -> ...";
      break;
    }
    path += fmt::format(" -> '{}'", name(came_from[at]));
  }
  fail_input("op '{}': is part of a cycle: {} -> '{}'", name(op), path, name(op));
}

void GraphBuilder::link_consumers() {
  std::vector<std::pair<TensorId, OpId>> pairs;
  pairs.reserve(graph_.inputs_.total());
  std::vector<OpId> last_reader(num_tensors(), kNoOp);
  for (OpId op = 0; op < num_ops(); ++op) {
    for (const TensorId tensor : graph_.inputs_[op]) {
      if (last_reader[tensor] == op) continue;
      last_reader[tensor] = op;
      pairs.emplace_back(tensor, op);
    }
  }
  graph_.consumers_ = Csr<OpId>::from_pairs(num_tensors(), pairs);
}

}  // namespace emplace

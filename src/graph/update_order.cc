#include "graph/update_order.h"

#include <cstdint>

namespace emplace {
namespace {

using Bits = std::uint64_t;

// Where the backward pass begins: its ops that read nothing of it. An op that a beginning depends
// on comes before all that depends on the beginning. Of the first 64 beginnings, that is; of more,
// nothing is said.
class Beginnings {
 public:
  explicit Beginnings(const Graph& graph)
      : graph_(graph), before_(graph.num_ops(), 0), behind_(graph.num_ops(), 0) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      for (const TensorId tensor : graph.inputs(op)) behind_[op] |= behind_[graph.producer(tensor)];
      if (graph.phase(op) != Phase::kBackward || graph.is_source(op) || reads_backward(op))
        continue;
      if (next_ == 0) continue;
      before_[op] = next_;
      behind_[op] |= next_;
      next_ <<= 1;
    }
    for (OpId op = graph.num_ops(); op-- > 0;) {
      for (const TensorId tensor : graph.inputs(op)) before_[graph.producer(tensor)] |= before_[op];
    }
  }

  bool order(OpId earlier, OpId later) const { return (before_[earlier] & behind_[later]) != 0; }

 private:
  bool reads_backward(OpId op) const {
    for (const TensorId tensor : graph_.inputs(op)) {
      const OpId producer = graph_.producer(tensor);
      if (graph_.phase(producer) == Phase::kBackward && !graph_.is_source(producer)) return true;
    }
    return false;
  }

  const Graph& graph_;
  Bits next_ = 1;
  std::vector<Bits> before_;  // by op: the beginnings that depend on it
  std::vector<Bits> behind_;  // by op: the beginnings that it depends on
};

class Readers {
 public:
  explicit Readers(const Graph& graph) : graph_(graph), beginnings_(graph) {}

  void add(OpId update, TensorId tensor) {
    for (const OpId reader : graph_.consumers(tensor)) {
      if (reader >= update) break;
      if (graph_.is_view(reader)) {
        for (const TensorId output : graph_.outputs(reader)) add(update, output);
      } else if (graph_.phase(reader) != Phase::kUpdate && !beginnings_.order(reader, update)) {
        pairs_.emplace_back(update, reader);
      }
    }
  }

  std::vector<std::pair<OpId, OpId>> take() && { return std::move(pairs_); }

 private:
  const Graph& graph_;
  Beginnings beginnings_;
  std::vector<std::pair<OpId, OpId>> pairs_;
};

bool has_updates(const Graph& graph) {
  for (OpId op = graph.num_ops(); op-- > 0;) {
    if (graph.phase(op) == Phase::kUpdate) return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<OpId, OpId>> updates_after_readers(const Graph& graph) {
  if (!has_updates(graph)) return {};
  Readers readers(graph);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kUpdate || graph.is_source(op) || graph.is_view(op)) continue;
    for (TensorId tensor : graph.inputs(op)) {
      while (graph.is_view(graph.producer(tensor))) {
        tensor = graph.inputs(graph.producer(tensor))[0];
      }
      const bool parameter = graph.role(graph.producer(tensor)) == OpRole::kParameter;
      if (parameter) readers.add(op, tensor);
    }
  }
  return std::move(readers).take();
}

}  // namespace emplace

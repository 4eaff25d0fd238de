// The part of a divided graph that moves tensors between workers: blocks of pieces where they lie,
// what puts them together elsewhere, and reductions of partial results (tensor/lower.h says which
// ops these are).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"

#include "graph/graph.h"
#include "graph/graph_builder.h"

#include "tensor/movement.h"
#include "tensor/network.h"

namespace emplace {

// What every worker has of a tensor (or of an op's output), in the graph that is made.
struct Value {
  Spread spread;
  std::vector<TensorId> pieces;  // by worker
  OpId producer = 0;             // of the original graph
};

// Thrown where a divided graph would have more ops than limits::kDividedOps.
struct TooManyPieces : Error {
  using Error::Error;
};

class Movers {
 public:
  // `devices` are the names of the workers' devices. Without a network everything goes straight
  // from worker to worker.
  Movers(const Graph& graph, const Workers& workers, const std::vector<std::string>& devices,
         Network* network);

  // Ops that move data are from now on for this one.
  void begin(OpId op);
  // The op's pieces are there: what others wait for that are not to be sent too early.
  void end(OpId op) { computed_.push_back(op); }

  TensorId add_tensor(const tdl::Region& region, TensorId like);
  void add_op(OpSpec spec, Worker worker);
  Worker home(TensorId tensor) const { return home_[tensor]; }

  // The region for the worker, of the value's n-th partial result: one tensor, which may lie
  // elsewhere and be sent when it is read, unless it is wanted `here`.
  TensorId assemble(const Value& value, TensorId like, Worker worker, const tdl::Region& region,
                    int partial, bool here = false);
  // Everybody's region of a value that is not partial, in stages; nothing where it is better for
  // each to assemble its own.
  std::optional<std::vector<TensorId>> gather(const Value& value, TensorId like,
                                              const std::vector<tdl::Region>& needed);
  // Reduces partial results so that they lie as `spread` says.
  Value reduce(TensorId like, tdl::Reducer reducer, const Value& made, Spread spread);
  // The present op changed these regions of a weight's pieces: everybody's piece gets what others
  // changed of it.
  void share_changes(const Value& weight, TensorId like, const Spread& changed);

  Bytes moved() const { return moved_; }
  std::vector<Worker> take_workers() && { return std::move(worker_of_); }
  Graph take_graph() && { return std::move(builder_).build(); }

 private:
  // A region that a worker has: of a value's piece, or as a tensor that was moved there.
  struct Held {
    tdl::Region region;
    Worker at = 0;
    std::optional<TensorId> tensor;
    double stretch = 1;  // of sending it (Stage::stretch)
  };
  using Holdings = std::vector<std::vector<Held>>;  // by worker

  OpSpec mover(std::string_view type, Worker worker);
  TensorId slice(const Value& value, TensorId like, const Block& block, Worker to);
  TensorId sent(TensorId tensor, const tdl::Region& region, TensorId like, Worker to);
  TensorId join(std::vector<TensorId> parts, const std::vector<tdl::Region>& blocks,
                const tdl::Region& region, TensorId like, Worker worker);
  TensorId sum(std::vector<TensorId> inputs, const tdl::Region& region, TensorId like,
               tdl::Reducer reducer, Worker worker);
  std::string wait_for(OpId producer, Worker to) const;
  Bytes bytes_of(const tdl::Region& region, TensorId like) const;
  void count_sent(TensorId tensor, const tdl::Region& region, TensorId like, Worker to);

  TensorId tensor_at(const Value& value, TensorId like, const Held& held, Worker to);
  Held relay(const Value& value, TensorId like, const Held& held, Worker to);
  void exchange(const Value& value, TensorId like, const Stage& stage, bool last, Holdings& held);

  // By worker: the sums of regions that it has after a stage of a reduction.
  using Sums = std::vector<std::vector<std::pair<tdl::Region, TensorId>>>;
  struct Reduction {
    TensorId like;
    tdl::Reducer reducer;
    const Value& made;
    bool first;  // stage, of the partial results themselves
    Sums sums;   // of the stage before
  };
  TensorId contribution(const Reduction& reduction, Worker at, const tdl::Region& region);
  TensorId sum_directly(const Reduction& reduction, const std::vector<Worker>& group, Worker worker,
                        const tdl::Region& region);
  TensorId sum_around(const Reduction& reduction, const std::vector<Worker>& group, Worker worker,
                      const tdl::Region& region);

  using SliceKey = std::tuple<TensorId, std::vector<std::int64_t>, Shape, bool, std::string>;

  const Graph& graph_;
  const Workers& workers_;
  const std::vector<std::string>& devices_;
  Network* network_;
  GraphBuilder builder_;
  std::vector<Worker> worker_of_;
  std::vector<Worker> home_;  // by tensor
  Bytes moved_ = 0;
  OpId op_ = 0;                          // the present one
  bool updated_ = false;                 // what moves is what it changed
  double stretch_ = 1;                   // of what is sent now; not 1: it was measured as a whole
  std::size_t movers_ = 0;               // of it
  std::vector<OpId> computed_;           // ops that are no sources, so far
  std::map<SliceKey, TensorId> slices_;  // for the present op
};

// "NAME@w", worker w's piece of an op.
std::string piece_name(const Graph& graph, OpId op, Worker worker);

std::vector<std::int64_t> begin_of(const tdl::Region& region);
Shape shape_of(const tdl::Region& region);
// A region's part of a tensor.
double share_of(const Graph& graph, const tdl::Region& region, TensorId tensor);
std::int64_t scaled(std::int64_t amount, double share);

}  // namespace emplace

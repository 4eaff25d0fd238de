// How long the pieces of ops last: all that ops can be cut into, compiled as the divided graph is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/graph_builder.h"

#include "cost/op_work.h"
#include "cost/problem.h"

#include "tensor/partition_problem.h"
#include "tensor/topology.h"

namespace emplace {

inline constexpr std::array kProductClasses{OpClass::kMatMul, OpClass::kLinear,
                                            OpClass::kMatMulGrad, OpClass::kBatchedMatMul};

class PieceTimes {
 public:
  // `problem` has the input's ops whole. All three outlive this. Of ops that there is no time for
  // within the limit nothing is known.
  PieceTimes(const PartitionInput& input, const Problem& problem, const WorkerDevices& on,
             const Budget* limit = nullptr);

  // By worker, a piece.
  using Way = std::vector<OpId>;
  // By the cuts; nullptr: the op is not described, computes nothing, was measured, can be cut in
  // too many ways, or came too late.
  const std::map<Cuts, Way>* ways(OpId op) const;
  Nanoseconds duration(const Way& way, Worker worker) const {
    return pieces_->duration(way[worker], on_.devices[worker]);
  }
  // Whether that is what its pieces last in a divided graph, whatever else the plan says. Of others
  // it is an estimate.
  bool is_certain(OpId op);

 private:
  static constexpr std::size_t kMostWays = 2000;
  static constexpr std::size_t kMostPieces = 200'000;
  using Ways = std::map<Cuts, Way>;
  // Ops of one signature differ in what the graph says of their work, and in types.
  using Key = std::tuple<std::uint32_t, std::optional<std::int64_t>, std::optional<Bytes>, Phase,
                         std::vector<DType>>;

  Key key_of(OpId op) const;
  bool depends_on_operands(OpId op);
  const Ways* add(OpId op);
  void add_way(OpId op, const tdl::Description& description, const Cuts& cuts, Ways& ways);
  OpId add_piece(OpId op, const tdl::Description& description, const tdl::Piece& piece);
  TensorId source(const Shape& shape, DType dtype);

  bool is_late() const { return limit_ != nullptr && limit_->spent(0); }

  const Budget* limit_;  // while pieces are collected
  const PartitionInput& input_;
  const WorkerDevices& on_;
  const Cluster& cluster_;
  WorkReader reader_;
  GraphBuilder builder_;
  OpId next_op_ = 0;
  std::size_t num_pieces_ = 0;
  std::map<Key, Ways> known_;
  std::vector<const Ways*> ways_of_op_;
  std::map<std::vector<Shape>, OpId> shapes_;  // pieces of the present op
  std::map<std::pair<Shape, DType>, TensorId> sources_;
  std::shared_ptr<const Problem> pieces_;
};

}  // namespace emplace
